import type { Registry } from "prom-client";
import { type MetricRow, registerFamily, NO_LABELS } from "./metric-family.ts";

/** A label of a counter: its name and the slots of its values. */
export interface CounterLabel {
  readonly name: string;
  readonly slots: LabelSlots;
}

/** A counter by up to four labels whose values have slots. Series are as many as combinations that occurred. */
export class CounterTable {
  readonly #labels: readonly CounterLabel[];
  readonly #values = new Map<number, number>();
  readonly #shared = new Map<number, Readonly<Record<string, string>>>();

  constructor(registry: Registry, name: string, help: string, labels: readonly CounterLabel[]) {
    this.#labels = labels;
    registerFamily(registry, { name, help, type: "counter", rows: () => this.#rows() });
  }

  /** One slot per label, in their order. */
  add(amount: number, a: number, b = 0, c = 0, d = 0): void {
    const key = this.#key(a, b, c, d);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  /** Forgets the series that have this slot at label number `label`. */
  drop(label: number, slot: number): void {
    for (const key of this.#values.keys()) {
      if (this.#slotsOf(key)[label] !== slot) continue;
      this.#values.delete(key);
      this.#shared.delete(key);
    }
  }

  #key(a: number, b: number, c: number, d: number): number {
    const labels = this.#labels;
    let key = a;
    if (labels.length > 1) key = key * labels[1]!.slots.max + b;
    if (labels.length > 2) key = key * labels[2]!.slots.max + c;
    if (labels.length > 3) key = key * labels[3]!.slots.max + d;
    return key;
  }

  #slotsOf(key: number): number[] {
    const slots: number[] = [];
    let rest = key;
    for (let i = this.#labels.length - 1; i >= 0; i--) {
      const { max } = this.#labels[i]!.slots;
      slots[i] = i === 0 ? rest : rest % max;
      rest = Math.floor(rest / max);
    }
    return slots;
  }

  #rows(): MetricRow[] {
    const rows: MetricRow[] = [];
    for (const [key, value] of this.#values) {
      let sharedLabels = this.#shared.get(key);
      if (sharedLabels === undefined) this.#shared.set(key, (sharedLabels = this.#labelsOf(key)));
      rows.push({ value, sharedLabels, labels: {} });
    }
    return rows;
  }

  #labelsOf(key: number): Record<string, string> {
    const slots = this.#slotsOf(key);
    return Object.fromEntries(this.#labels.map(({ name, slots: names }, i) => [name, names.name(slots[i]!)]));
  }
}

/** The label that stands for all values that got no slot of their own. */
const OTHER_LABEL = "other";
/** A value that would read as that label gets one more "_" before it, and so does what would then read as such a one. */
const LIKE_OTHER = /^_*other$/;

/**
 * Small numbers for a label's values, so that tables of series are addressed by numbers and stay bounded: slot 0 is
 * "other" and takes whatever comes when all slots are taken.
 */
export class LabelSlots {
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [OTHER_LABEL];
  readonly #free: number[] = [];
  /** Slots that there may be, "other" included. */
  readonly max: number;
  /** Times that a value had to share "other". */
  overflows = 0;

  constructor(max: number) {
    this.max = max;
  }

  /** The value's slot; takes a new one where there is room. */
  slot(value: string): number {
    const known = this.#slots.get(value);
    if (known !== undefined) return known;
    const slot = this.#free.pop() ?? this.#names.length;
    if (slot >= this.max) {
      this.overflows++;
      return 0;
    }
    this.#names[slot] = LIKE_OTHER.test(value) ? `_${value}` : value;
    this.#slots.set(value, slot);
    return slot;
  }

  /** The value's slot, or undefined when it has none. */
  known(value: string): number | undefined {
    return this.#slots.get(value);
  }

  /** Counts a value that shall not have a slot. */
  other(): number {
    this.overflows++;
    return 0;
  }

  /** Frees a value's slot; returns it, for its series to be dropped, or undefined when it had none. */
  release(value: string): number | undefined {
    const slot = this.#slots.get(value);
    if (slot === undefined) return undefined;
    this.#slots.delete(value);
    this.#free.push(slot);
    return slot;
  }

  name(slot: number): string {
    return this.#names[slot]!;
  }
}

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
