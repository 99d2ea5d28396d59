import type { Micros } from "#core/base/units.ts";
import type { ExchangeResult } from "./exchange-result.ts";
import type { Spans } from "./imbalance.ts";

/** Requests whose figures are kept; later ones are counted as `dropped`. */
const SAMPLES_MAX = 4_000_000;

/** One finished request: the result, and what had been planned. */
export interface Sample extends ExchangeResult {
  /** That was asked. */
  readonly url: string;
  readonly dueMicros: Micros;
  readonly wantedOutputTokens: number;
  /** Answers that it asks for. */
  readonly sequences: number;
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
  "sequences",
] as const;
type Column = (typeof COLUMNS)[number];

/** Finished requests by column: about 90 bytes each. */
export class SampleLog {
  dropped = 0;
  readonly outcomes: Sample["outcome"][] = [];
  readonly #columns = new Map<Column, Float64Array>(COLUMNS.map((name) => [name, new Float64Array(1_024)]));
  readonly #reported = new NameColumn();
  readonly #urls = new NameColumn();

  get size(): number {
    return this.outcomes.length;
  }

  /** Endpoints that a gateway reported, or the URLs where none did. */
  get endpointNames(): readonly string[] {
    return this.#endpoints.names;
  }

  /** When each request was in flight, as the driver saw it. */
  get spans(): Spans {
    return {
      size: this.size,
      endpoints: this.endpointNames.length,
      sent: this.column("sentMicros"),
      ended: this.column("endMicros"),
      endpointOf: (at) => this.endpointOf(at),
    };
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
    this.#reported.add(sample.endpoint);
    this.#urls.add(sample.url);
    this.outcomes.push(sample.outcome);
  }

  /** Values by request; longer than `size`. */
  column(name: Column): Float64Array {
    return this.#columns.get(name) ?? new Float64Array(0);
  }

  /** Place in `endpointNames`, or -1 where the gateway did not report one: closed before it answered. */
  endpointOf(at: number): number {
    return this.#endpoints.indexOf(at);
  }

  get #endpoints(): NameColumn {
    return this.#reported.names.length > 0 ? this.#reported : this.#urls;
  }
}

/** A column of names, each kept once. */
class NameColumn {
  readonly names: string[] = [];
  readonly #values: number[] = [];
  readonly #places = new Map<string, number>([["", -1]]);

  add(name: string): void {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.names.push(name) - 1;
      this.#places.set(name, place);
    }
    this.#values.push(place);
  }

  indexOf(at: number): number {
    return this.#values[at] ?? -1;
  }
}
