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
