import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";

/** Rejects with the socket's error when the address cannot be had. */
export function listen(server: Server, host: string, port: number): Promise<{ url: string }> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host }, () => {
      server.removeListener("error", reject);
      const { address, port: taken, family } = server.address() as AddressInfo;
      const scheme = server instanceof SecureServer ? "https" : "http";
      resolve({ url: `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${taken}` });
    });
  });
}
