import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { TraceHeader } from "../record.ts";

/** Who was there, and under which profiles, at a point of a trace: what a header written there has to say. */
export class FleetState {
  readonly #header: TraceHeader;
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #cordoned = new Set<string>();
  #profiles: Readonly<Record<string, ProfileSpec>>;

  constructor(header: TraceHeader) {
    this.#header = header;
    this.#profiles = header.router.profiles;
    for (const endpoint of header.endpoints) this.#endpoints.set(endpoint.id, endpoint);
  }

  take(input: Input): void {
    const { kind } = input;
    if (kind === "endpoint-joined" || kind === "endpoint-changed")
      this.#endpoints.set(input.endpoint.id, input.endpoint);
    else if (kind === "endpoint-left") {
      this.#endpoints.delete(input.endpoint);
      this.#cordoned.delete(input.endpoint);
    } else if (kind === "endpoint-cordoned") this.#cordoned.add(input.endpoint);
    else if (kind === "endpoint-uncordoned") this.#cordoned.delete(input.endpoint);
    else if (kind === "profile-changed") this.#profiles = { ...this.#profiles, [input.name]: input.profile };
  }

  get cordoned(): readonly string[] {
    return [...this.#cordoned].sort();
  }

  /** The run's header as it would stand here. */
  header(segment: number): TraceHeader {
    const endpoints = [...this.#endpoints.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return { ...this.#header, segment, endpoints, router: { ...this.#header.router, profiles: this.#profiles } };
  }
}
