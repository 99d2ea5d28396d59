import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointDirectory } from "./endpoint-directory.ts";

/** `IP:PORT` of an endpoint's origin, as a proxy names it; an IPv6 address keeps its brackets. */
function addressOf(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
}

/** Endpoints by the address that a proxy names them by. Several at one address are ranks of one engine; the first is it. */
export class EndpointAddresses {
  protected readonly addresses = new Map<string, string>();
  readonly #ids = new Map<string, EndpointId[]>();

  constructor(directory: EndpointDirectory) {
    directory.listen({
      joined: ({ id, url }) => {
        const address = addressOf(url);
        this.addresses.set(id, address);
        this.#ids.set(address, [...(this.#ids.get(address) ?? []), id].sort());
      },
      left: ({ id, url }) => {
        const address = addressOf(url);
        this.addresses.delete(id);
        const others = (this.#ids.get(address) ?? []).filter((other) => other !== id);
        if (others.length === 0) this.#ids.delete(address);
        else this.#ids.set(address, others);
      },
    });
  }

  /** All endpoints at an address; none where nobody is known there. */
  at(address: string): readonly EndpointId[] {
    return this.#ids.get(address) ?? [];
  }
}
