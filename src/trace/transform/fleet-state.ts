import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { TraceHeader } from "../codec/record.ts";
import { routerAfter } from "./router-after.ts";

type Standing = Pick<TraceHeader, "router" | "endpoints">;

/** Who was there, and under which profiles, at a point of a trace: what a header written there has to say. */
export class FleetState<Header extends Standing = TraceHeader> {
  readonly #header: Header;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #cordoned = new Set<string>();
  readonly #suspended = new Map<string, HangReason>();
  readonly #unhealthy = new Set<string>();
  readonly #asleep = new Set<string>();
  #router: Standing["router"];

  constructor(header: Header) {
    this.#header = header;
    this.#router = header.router;
    for (const endpoint of header.endpoints) this.#endpoints.set(endpoint.id, endpoint);
  }

  take(input: Input): void {
    const { kind } = input;
    if (kind === "endpoint-joined" || kind === "endpoint-changed")
      this.#endpoints.set(input.endpoint.id, input.endpoint);
    else if (kind === "endpoint-left") {
      this.#endpoints.delete(input.endpoint);
      this.#cordoned.delete(input.endpoint);
      this.#suspended.delete(input.endpoint);
      this.#unhealthy.delete(input.endpoint);
      this.#asleep.delete(input.endpoint);
    } else if (kind === "endpoint-cordoned") this.#cordoned.add(input.endpoint);
    else if (kind === "endpoint-uncordoned") this.#cordoned.delete(input.endpoint);
    else if (kind === "endpoint-suspended") this.#suspended.set(input.endpoint, input.reason);
    else if (kind === "endpoint-checked") put(this.#unhealthy, input.endpoint, !input.healthy);
    else if (kind === "endpoint-slept") put(this.#asleep, input.endpoint, input.asleep);
    else if (kind === "endpoint-resumed") this.#suspended.delete(input.endpoint);
    else this.#router = routerAfter(this.#router, input);
  }

  /** What a header does not say: who was cordoned, unhealthy, asleep or suspended, as inputs at `at`, in order of id. */
  standing(at: Micros): Input[] {
    const cordoned = [...this.#cordoned].sort();
    const unhealthy = [...this.#unhealthy].sort();
    const asleep = [...this.#asleep].sort();
    const suspended = [...this.#suspended].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      ...cordoned.map((endpoint): Input => ({ kind: "endpoint-cordoned", at, endpoint })),
      ...unhealthy.map((endpoint): Input => ({ kind: "endpoint-checked", at, endpoint, healthy: false })),
      ...asleep.map((endpoint): Input => ({ kind: "endpoint-slept", at, endpoint, asleep: true })),
      ...suspended.map(([endpoint, reason]): Input => ({ kind: "endpoint-suspended", at, endpoint, reason })),
    ];
  }

  /** What of the run's header is otherwise here. */
  get about(): Standing {
    const endpoints = [...this.#endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return { endpoints, router: this.#router };
  }

  /** The run's header as it would stand here. */
  header(segment: number): Header & { readonly segment: number } {
    return { ...this.#header, segment, ...this.about };
  }
}

function put(set: Set<string>, name: string, belongs: boolean): void {
  if (belongs) set.add(name);
  else set.delete(name);
}
