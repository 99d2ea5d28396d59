import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { EndpointAddresses } from "../endpoints/addresses.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { type AnswerHeaders, headerOf } from "../http/headers.ts";

/**
 * Headers of answers by which routers and proxies name the engine, in lower case:
 * SMG; Envoy with an endpoint picker, where it is configured to show that; AIBrix; Envoy where it shows its upstream;
 * nginx's usual name for `$upstream_addr`; production-stack where it is patched to; and this project's own gateway.
 */
const SERVED_HEADERS = [
  "x-smg-routed-worker-id",
  "x-gateway-destination-endpoint-served",
  "x-gateway-destination-endpoint",
  "target-pod",
  "x-envoy-upstream-host-address",
  "x-envoy-upstream-host",
  "x-upstream-addr",
  "x-backend-server",
  "x-gnomon-endpoint",
] as const;

/** Texts of headers whose endpoints are remembered. */
const REMEMBERED_MAX = 4_096;
/** A longer text names no endpoint. */
const TEXT_MAX = 512;

/** Finds in the head of an answer which endpoints it may have come from. */
export class ServedHeader {
  readonly #names: readonly string[];
  readonly #directory: EndpointDirectory;
  readonly #addresses: EndpointAddresses;
  readonly #known = new Map<string, readonly EndpointId[]>();
  /** Texts that named no endpoint of the list. */
  unlisted = 0;
  /** The last of them. */
  lastUnlisted = "";

  /** `names` come before the usual ones. */
  constructor(directory: EndpointDirectory, names: readonly string[] = []) {
    this.#names = [...new Set([...names.map((name) => name.toLowerCase()), ...SERVED_HEADERS])];
    this.#directory = directory;
    this.#addresses = new EndpointAddresses(directory);
    const forget = (): void => this.#known.clear();
    directory.listen({ joined: forget, left: forget });
  }

  /**
   * The endpoint, or the ranks at an address that nothing else is stated of; none where no header has one of the list. Where a
   * proxy states with whom it was connected, that is it, unless a header has it more exactly.
   */
  endpointsOf(headers: AnswerHeaders, upstream?: string): readonly EndpointId[] {
    const connected = upstream === undefined ? NONE : this.#of(upstream);
    if (connected.length === 1) return connected;
    const named = this.#named(headers);
    return named.length > 0 ? named : connected;
  }

  #named(headers: AnswerHeaders): readonly EndpointId[] {
    for (const name of this.#names) {
      if (headers[name] === undefined) continue;
      const found = this.#of(headerOf(headers, name));
      if (found.length > 0) return found;
    }
    return NONE;
  }

  #of(text: string): readonly EndpointId[] {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const found = text.length > TEXT_MAX ? NONE : this.#find(text);
    if (found.length === 0) {
      this.unlisted++;
      this.lastUnlisted = text.slice(0, TEXT_MAX);
    } else if (this.#known.size < REMEMBERED_MAX) this.#known.set(text, found);
    return found;
  }

  #find(text: string): readonly EndpointId[] {
    // Who went down a list names all that it tried, the one that answered at the end.
    const last = text.split(",").at(-1)!.trim();
    if (this.#directory.get(last) !== undefined) return [last];
    const [, address = "", rank] = ADDRESS.exec(last) ?? [];
    const there = this.#addresses.at(address.toLowerCase());
    if (rank === undefined || there.length < 2) return there;
    return there.filter((id) => this.#directory.get(id)?.dataParallelRank === Number(rank));
  }
}

const NONE: readonly EndpointId[] = [];
/** With or without a scheme and a path; a data-parallel rank behind an @. */
const ADDRESS = /^(?:https?:\/\/)?([\w.-]+:\d+|\[[\da-f:.]+\]:\d+)(?:\/[^@]*)?(?:@(\d+))?$/i;
