import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { expectWorkers, type InnerPlace } from "./worker/inner-request.ts";

export interface ListenHow {
  /** Others of this process listen at the same address, and connections are shared out among them. */
  readonly shared?: boolean;
}

/** Rejects with the socket's error when the address cannot be had. */
export function listen(
  server: Server,
  host: string,
  port: number,
  { shared: reusePort = false }: ListenHow = {},
): Promise<{ url: string }> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, reusePort }, () => {
      server.removeListener("error", reject);
      const { address, port: taken, family } = server.address() as AddressInfo;
      const scheme = server instanceof SecureServer ? "https" : "http";
      resolve({ url: `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${taken}` });
    });
  });
}

/** Takes what workers pass on, and nothing else. */
export function listenInner(server: Server, { path, token }: InnerPlace): Promise<void> {
  expectWorkers(server, token);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}
