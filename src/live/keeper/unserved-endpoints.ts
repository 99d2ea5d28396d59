import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { LastingFault } from "./lasting-faults.ts";

/** As the alert GnomonEndpointGetsNothing has them. */
const HOLD_MICROS = 30 * 60 * 1_000_000;
const OTHERS_MIN = 1_000;

interface Seen {
  readonly placed: number;
  /** How many requests had been placed anywhere when one was found here, or it was first seen to be well. */
  readonly at: number;
}

/** Endpoints that could serve, and get nothing while others get plenty: as each look at the router's rows finds them. */
export class UnservedEndpoints {
  readonly #rows: (at: number) => readonly EndpointRow[];
  #placed = 0;
  #seen: ReadonlyMap<EndpointId, Seen> = new Map();

  constructor(rows: (at: number) => readonly EndpointRow[]) {
    this.#rows = rows;
  }

  faults(at: number): LastingFault[] {
    const rows = this.#rows(at);
    const before = this.#seen;
    // One that left and is back counts anew.
    for (const { id, placed } of rows) this.#placed += Math.max(0, placed - (before.get(id)?.placed ?? 0));
    const latestAt = (row: EndpointRow): number => {
      const known = before.get(row.id);
      return known?.placed === row.placed && isWell(row) ? known.at : this.#placed;
    };
    this.#seen = new Map(rows.map((row) => [row.id, { placed: row.placed, at: latestAt(row) }]));
    return rows.flatMap((row): LastingFault[] => {
      const latest = this.#seen.get(row.id)!.at;
      if (this.#placed - latest < OTHERS_MIN) return [];
      return [
        {
          kind: "endpoint-gets-nothing",
          key: `${row.id} ${latest}`,
          endpoint: row.id,
          detail: `it is well, and none of the latest ${this.#placed - latest} requests went there`,
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
