import type { Micros } from "#core/units.ts";
import type { ExchangeResult } from "./exchange-result.ts";

/** Requests whose figures are kept; later ones are counted as `dropped`. */
const SAMPLES_MAX = 4_000_000;

/** One finished request: the result, and what had been planned. */
export interface Sample extends ExchangeResult {
  readonly dueMicros: Micros;
  readonly wantedOutputTokens: number;
}

const COLUMNS = [
  "dueMicros",
  "sentMicros",
  "firstTokenMicros",
  "lastTokenMicros",
  "endMicros",
  "promptTokens",
  "cachedTokens",
  "completionTokens",
  "gatewayHitTokens",
  "wantedOutputTokens",
] as const;
type Column = (typeof COLUMNS)[number];

/** Finished requests by column: about 90 bytes each. */
export class SampleLog {
  dropped = 0;
  readonly outcomes: Sample["outcome"][] = [];
  readonly #columns = new Map<Column, Float64Array>(COLUMNS.map((name) => [name, new Float64Array(1_024)]));
  readonly #endpoints: number[] = [];
  readonly #endpointNames: string[] = [];
  readonly #endpointIndex = new Map<string, number>();

  get size(): number {
    return this.outcomes.length;
  }

  get endpointNames(): readonly string[] {
    return this.#endpointNames;
  }

  add(sample: Sample): void {
    if (this.size >= SAMPLES_MAX) {
      this.dropped++;
      return;
    }
    const at = this.size;
    for (const name of COLUMNS) {
      let column = this.column(name);
      if (at >= column.length) {
        const larger = new Float64Array(column.length * 2);
        larger.set(column);
        this.#columns.set(name, (column = larger));
      }
      column[at] = sample[name];
    }
    let endpoint = this.#endpointIndex.get(sample.endpoint);
    if (endpoint === undefined) {
      endpoint = this.#endpointNames.push(sample.endpoint) - 1;
      this.#endpointIndex.set(sample.endpoint, endpoint);
    }
    this.#endpoints.push(endpoint);
    this.outcomes.push(sample.outcome);
  }

  /** Values by request; longer than `size`. */
  column(name: Column): Float64Array {
    return this.#columns.get(name) ?? new Float64Array(0);
  }

  endpointOf(at: number): number {
    return this.#endpoints[at] ?? 0;
  }
}
