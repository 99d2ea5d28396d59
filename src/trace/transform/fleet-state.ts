import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import type { Input } from "#core/input.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Micros } from "#core/units.ts";
import type { TraceHeader } from "../record.ts";

/** Who was there, and under which profiles, at a point of a trace: what a header written there has to say. */
export class FleetState {
  readonly #header: TraceHeader;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #cordoned = new Set<string>();
  readonly #suspended = new Map<string, HangReason>();
  #profiles: Readonly<Record<string, ProfileSpec>>;
  #blockTokens: number;

  constructor(header: TraceHeader) {
    this.#header = header;
    this.#profiles = header.router.profiles;
    this.#blockTokens = header.router.blockTokens;
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
    } else if (kind === "endpoint-cordoned") this.#cordoned.add(input.endpoint);
    else if (kind === "endpoint-uncordoned") this.#cordoned.delete(input.endpoint);
    else if (kind === "endpoint-suspended") this.#suspended.set(input.endpoint, input.reason);
    else if (kind === "endpoint-resumed") this.#suspended.delete(input.endpoint);
    else if (kind === "profile-changed") this.#profiles = { ...this.#profiles, [input.name]: input.profile };
    else if (kind === "block-size-changed") this.#blockTokens = input.blockTokens;
  }

  /** What a header does not say: who was cordoned or suspended, as inputs at `at`, in order of id. */
  standing(at: Micros): Input[] {
    const cordoned = [...this.#cordoned].sort();
    const suspended = [...this.#suspended].sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      ...cordoned.map((endpoint): Input => ({ kind: "endpoint-cordoned", at, endpoint })),
      ...suspended.map(([endpoint, reason]): Input => ({ kind: "endpoint-suspended", at, endpoint, reason })),
    ];
  }

  /** The run's header as it would stand here. */
  header(segment: number): TraceHeader {
    const endpoints = [...this.#endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    const router = { ...this.#header.router, profiles: this.#profiles, blockTokens: this.#blockTokens };
    return { ...this.#header, segment, endpoints, router };
  }
}
