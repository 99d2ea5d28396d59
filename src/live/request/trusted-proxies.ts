import { BlockList, isIPv6 } from "node:net";

/** Whether the address of a socket's other end is that of a proxy that is trusted. */
export type TrustedProxies = (address: string | undefined) => boolean;

/** Of addresses and networks, such as 10.0.0.7 and 10.1.0.0/16; undefined where there are none. */
export function trustedProxies(networks: readonly string[]): TrustedProxies | undefined {
  if (networks.length === 0) return undefined;
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = isIPv6(address) ? "ipv6" : "ipv4";
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return (address) => address !== undefined && list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
