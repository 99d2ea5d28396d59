type Numbers = Float64Array | Int32Array | Int16Array | Uint16Array | Uint8Array;

/** Numbers of one kind that grow at the end, without an object each. */
export class NumberColumn<T extends Numbers> {
  readonly #create: new (length: number) => T;
  #values: T;
  #length = 0;

  constructor(create: new (length: number) => T) {
    this.#create = create;
    this.#values = new create(1024);
  }

  get length(): number {
    return this.#length;
  }

  at(index: number): number {
    return this.#values[index] ?? NaN;
  }

  /** Sets one that is there, or appends the next. */
  put(index: number, value: number): void {
    if (index === this.#values.length) {
      const wide = new this.#create(2 * index);
      wide.set(this.#values);
      this.#values = wide;
    }
    this.#values[index] = value;
    if (index >= this.#length) this.#length = index + 1;
  }

  push(value: number): void {
    this.put(this.#length, value);
  }

  add(index: number, value: number): void {
    this.put(index, this.at(index) + value);
  }

  /** A view of all values; it is stale after the next growth. */
  view(): T {
    return this.#values.subarray(0, this.#length) as T;
  }
}
