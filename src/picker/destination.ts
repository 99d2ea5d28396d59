import type { Routed } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { EndpointAddresses } from "#live/endpoints/addresses.ts";
import type { ProcessingRequest } from "./wire.ts";

/** Endpoints by address, and what a proxy states and is answered of them. */
export class Addresses extends EndpointAddresses {
  /**
   * The decision's endpoint, then up to `fallbacksMax` others that its filters left, the highest totals first: what a
   * proxy goes down where the first does not answer. Undefined where the endpoint is gone since the decision.
   */
  destination({ endpoint, breakdown }: Routed, fallbacksMax: number): string | undefined {
    const first = this.addresses.get(endpoint);
    if (first === undefined || fallbacksMax === 0) return first;
    const { candidates, totals } = breakdown;
    const others = candidates
      .map(({ endpoint: id }, i) => ({ id, total: totals[i]! }))
      .filter(({ id, total }) => id !== endpoint && !Number.isNaN(total))
      .sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1))
      .map(({ id }) => this.addresses.get(id))
      .filter((address) => address !== undefined && address !== first);
    return [first, ...new Set(others)].slice(0, fallbacksMax + 1).join(",");
  }

  /**
   * Endpoints that the proxy allows for this request; undefined where it leaves the choice open. An empty list, or one of
   * unknown addresses, allows none.
   */
  subset({ subset }: ProcessingRequest): readonly EndpointId[] | undefined {
    return subset && addressesIn(subset).flatMap((address) => this.at(address));
  }

  /** Where the proxy states that a response came from; undefined where it does not, or the address is unknown. */
  served({ served }: ProcessingRequest): EndpointId | undefined {
    return served === undefined ? undefined : this.at(served)[0];
  }
}

/** Proxies send a list, or one string with commas. */
function addressesIn(texts: readonly string[]): string[] {
  return texts
    .flatMap((text) => text.split(","))
    .map((text) => text.trim())
    .filter((text) => text !== "");
}
