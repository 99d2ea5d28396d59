const SECTION = (Math.sqrt(5) - 1) / 2;

/** Looks for the least value of a function of one valley, one place after another: golden sections of what is left. */
export class GoldenSearch {
  #low: number;
  #high: number;
  /** The lower of the two inner places, and the upper one; NaN for a value that is not known yet. */
  #values: [number, number] = [NaN, NaN];
  readonly #places: [number, number];

  constructor(low: number, high: number) {
    this.#low = low;
    this.#high = high;
    this.#places = [high - SECTION * (high - low), low + SECTION * (high - low)];
  }

  /** Where the function is to be asked. */
  get next(): number {
    return this.#places[Number.isNaN(this.#values[0]) ? 0 : 1];
  }

  take(value: number): void {
    this.#values[Number.isNaN(this.#values[0]) ? 0 : 1] = value;
    const [below, above] = this.#values;
    if (Number.isNaN(below) || Number.isNaN(above)) return;
    const [lower, upper] = this.#places;
    if (below <= above) {
      this.#high = upper;
      this.#places[1] = lower;
      this.#places[0] = this.#high - SECTION * (this.#high - this.#low);
      this.#values = [NaN, below];
    } else {
      this.#low = lower;
      this.#places[0] = upper;
      this.#places[1] = this.#low + SECTION * (this.#high - this.#low);
      this.#values = [above, NaN];
    }
  }
}
