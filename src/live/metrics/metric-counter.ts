import type { Registry } from "prom-client";
import type { LabelSlots } from "./metric-labels.ts";
import { type MetricRow, registerFamily } from "./metric-family.ts";

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
