const MAPPED = "::ffff:";
/** Of an IPv6 address, what a provider gives one customer at least. */
const GROUPS_OF_NETWORK = 4;
const GROUPS = 8;

/**
 * Whose an address is, as far as it shows: an IPv4 address itself, of an IPv6 address its network of 64 bits, in which
 * anybody has as many addresses as he likes. "" where there is none.
 */
export function clientNetwork(address: string | undefined): string {
  if (address === undefined) return "";
  if (address.startsWith(MAPPED) && address.includes(".")) return address.slice(MAPPED.length);
  if (!address.includes(":")) return address;
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const last = tail === "" ? [] : tail.split(":");
    while (groups.length + last.length < GROUPS) groups.push("0");
    groups.push(...last);
  }
  return `${groups.slice(0, GROUPS_OF_NETWORK).join(":")}::/64`;
}
