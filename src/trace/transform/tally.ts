/** Counts by reason. Reasons are constant texts, so their number is bounded. */
export class Tally {
  readonly #counts = new Map<string, number>();

  count(reason: string, times = 1): void {
    if (times > 0) this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + times);
  }

  has(reason: string): boolean {
    return this.#counts.has(reason);
  }

  get size(): number {
    return this.#counts.size;
  }

  get total(): number {
    let total = 0;
    for (const count of this.#counts.values()) total += count;
    return total;
  }

  /** In order of first appearance. */
  entries(): [reason: string, count: number][] {
    return [...this.#counts];
  }
}
