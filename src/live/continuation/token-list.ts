/** Token ids that grow at their end. */
export class TokenList {
  #ids: Int32Array;
  length = 0;

  constructor(room: number = TOKENS_MIN) {
    this.#ids = new Int32Array(Math.max(1, room));
  }

  /** What it takes of memory. */
  get bytes(): number {
    return this.#ids.byteLength;
  }

  push(id: number): void {
    if (this.length === this.#ids.length) {
      const wide = new Int32Array(2 * this.length);
      wide.set(this.#ids);
      this.#ids = wide;
    }
    this.#ids[this.length++] = id;
  }

  /** Those up to `count` alone. */
  truncate(count: number): void {
    this.length = Math.min(this.length, count);
  }

  /** The first ones; a view that later ids do not change. */
  first(count: number): Int32Array {
    return this.#ids.subarray(0, Math.max(0, Math.min(count, this.length)));
  }
}

const TOKENS_MIN = 64;
