import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { LastingFault } from "./lasting-faults.ts";

/** As the alert GnomonEndpointGetsNothing has them. */
const HOLD_MICROS = 30 * 60 * 1_000_000;
const OTHERS_MIN = 1_000;

/** Endpoints that could serve, and get nothing while others get plenty. */
export class UnservedEndpoints {
  readonly #rows: (at: number) => readonly EndpointRow[];
  #routed = 0;
  /** How many requests had been routed when an endpoint got its latest one, or was first seen to be well. */
  readonly #routedAtLatest = new Map<EndpointId, number>();

  constructor(rows: (at: number) => readonly EndpointRow[]) {
    this.#rows = rows;
  }

  /** As of TapListener. */
  accepted(input: Input, decision: Decision | undefined): void {
    if (input.kind === "endpoint-left") this.#routedAtLatest.delete(input.endpoint);
    if (decision?.kind !== "routed") return;
    this.#routedAtLatest.set(decision.endpoint, ++this.#routed);
  }

  faults(at: number): LastingFault[] {
    return this.#rows(at).flatMap((row): LastingFault[] => {
      const latest = isWell(row) ? (this.#routedAtLatest.get(row.id) ?? this.#routed) : this.#routed;
      this.#routedAtLatest.set(row.id, latest);
      if (this.#routed - latest < OTHERS_MIN) return [];
      return [
        {
          kind: "endpoint-gets-nothing",
          key: `${row.id} ${latest}`,
          endpoint: row.id,
          detail: `it is well, and none of the latest ${this.#routed - latest} requests went there`,
          done: "nothing; `gnomon explain` shows which scorer or filter never leaves it",
          holdMicros: HOLD_MICROS,
        },
      ];
    });
  }
}

function isWell({ cordoned, asleep, breaker, standing, ejected }: EndpointRow): boolean {
  return !cordoned && !asleep && breaker === "closed" && standing === "well" && ejected === "";
}
