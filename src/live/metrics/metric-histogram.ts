import type { Registry } from "prom-client";
import { NO_LABELS, type MetricRow, registerFamily } from "./metric-family.ts";

/** Histograms with the same buckets, one per slot of a label (or of several, packed by the caller). */
export class HistogramTable {
  readonly #name: string;
  readonly #bounds: Float64Array;
  readonly #boundLabels: readonly Readonly<Record<string, string>>[];
  readonly #labelsOf: (slot: number) => Readonly<Record<string, string>>;
  /** Per slot: one count per bucket, one beyond the last, and the sum. */
  #cells: Float64Array;
  readonly #used: number[] = [];
  readonly #shared = new Map<number, Readonly<Record<string, string>>>();

  /** Bounds ascend; a value lies in the first bucket whose bound is not below it. */
  constructor(
    registry: Registry,
    family: { readonly name: string; readonly help: string; readonly bounds: readonly number[] },
    labelsOf: (slot: number) => Readonly<Record<string, string>>,
  ) {
    this.#name = family.name;
    this.#bounds = Float64Array.from(family.bounds);
    this.#boundLabels = [...family.bounds.map((bound) => ({ le: String(bound) })), { le: "+Inf" }];
    this.#labelsOf = labelsOf;
    this.#cells = new Float64Array(this.#width);
    registerFamily(registry, { name: family.name, help: family.help, type: "histogram", rows: () => this.#rows() });
  }

  get #width(): number {
    return this.#bounds.length + 2;
  }

  observe(slot: number, value: number): void {
    const at = slot * this.#width;
    if (this.#cells.length < at + this.#width) this.#grow(at + this.#width);
    if (!this.#shared.has(slot)) this.#use(slot);
    let low = 0;
    let high = this.#bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#bounds[middle]! < value) low = middle + 1;
      else high = middle;
    }
    this.#cells[at + low]!++;
    this.#cells[at + this.#bounds.length + 1]! += value;
  }

  #use(slot: number): void {
    this.#used.push(slot);
    this.#shared.set(slot, this.#labelsOf(slot));
  }

  #grow(length: number): void {
    const grown = new Float64Array(2 * length);
    grown.set(this.#cells);
    this.#cells = grown;
  }

  #rows(): MetricRow[] {
    const rows: MetricRow[] = [];
    for (const slot of this.#used) {
      const sharedLabels = this.#shared.get(slot)!;
      const at = slot * this.#width;
      let count = 0;
      for (let i = 0; i <= this.#bounds.length; i++) {
        count += this.#cells[at + i]!;
        rows.push({ metricName: `${this.#name}_bucket`, labels: this.#boundLabels[i]!, sharedLabels, value: count });
      }
      const sum = this.#cells[at + this.#bounds.length + 1]!;
      rows.push({ metricName: `${this.#name}_sum`, labels: NO_LABELS, sharedLabels, value: sum });
      rows.push({ metricName: `${this.#name}_count`, labels: NO_LABELS, sharedLabels, value: count });
    }
    return rows;
  }
}
