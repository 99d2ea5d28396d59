/** Reports whose way is being timed; older ones are forgotten. */
const TIMED_MAX = 1_024;
/** Times that the figures are taken over. */
const KEPT_MAX = 512;

/**
 * How long it takes from something that this replica does until its report has come back over the link: what others see
 * of it is so old.
 */
export class LagWatch {
  readonly #sentAt = new Map<number, number>();
  readonly #millis = new Float64Array(KEPT_MAX);
  #count = 0;

  /** A report is sent; the first of its news waited since then. */
  sent(sequence: number, sinceMillis: number): void {
    this.#sentAt.set(sequence, sinceMillis);
    if (this.#sentAt.size <= TIMED_MAX) return;
    for (const first of this.#sentAt.keys()) {
      this.#sentAt.delete(first);
      return;
    }
  }

  received(sequence: number): void {
    const sentAt = this.#sentAt.get(sequence);
    if (sentAt === undefined) return;
    this.#sentAt.delete(sequence);
    this.#millis[this.#count++ % KEPT_MAX] = performance.now() - sentAt;
  }

  /** When the oldest report that has not come back was sent, as of `sent`; undefined where none is on its way. */
  get waitsSince(): number | undefined {
    return this.#sentAt.values().next().value;
  }

  /** What is on its way may never come back. */
  forget(): void {
    this.#sentAt.clear();
  }

  /** Of the latest reports that came back; undefined before the first. */
  get millis(): { readonly p50: number; readonly p99: number } | undefined {
    const kept = this.#millis.slice(0, Math.min(this.#count, KEPT_MAX)).sort();
    if (kept.length === 0) return undefined;
    const at = (share: number) => kept[Math.min(kept.length - 1, Math.floor(share * kept.length))]!;
    return { p50: at(0.5), p99: at(0.99) };
  }
}
