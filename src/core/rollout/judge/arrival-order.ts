import type { Micros } from "../../base/units.ts";
import { movedOutcome, type RolloutOutcome } from "./outcome.ts";

/** Outcomes that wait for requests that came before them; beyond them the oldest slice goes on as it is. */
const HELD_MAX = 32_768;

interface Slice {
  /** Requests that came in it and have not ended. */
  open: number;
  /** Those that have, and wait for what is predicted of them. */
  awaited: number;
  readonly ended: RolloutOutcome[];
}

export interface SavedOrder {
  /** By when each slice began: requests that have not ended, those that wait for a prediction, and outcomes. */
  readonly slices: readonly (readonly [Micros, number, number, readonly RolloutOutcome[]])[];
  /** Null where nothing was given up. */
  readonly givenUpUntil: Micros | null;
  readonly early: number;
}

/**
 * Requests in the order in which they came, by slices of time. At any time those that have ended lack the slowest of those
 * that came last, and of a slower arm they lack more: it would look quicker than it is, most of all in a burst. So what has
 * ended waits until all that came before it has ended too, of either arm, or has had its time: what is let go on is always
 * all that came until some time.
 */
export class ArrivalOrder {
  readonly #slices: Map<Micros, Slice>;
  /** When the last slice began that was let go although some of it had not ended. */
  #givenUpUntil: Micros;
  /** Outcomes that wait. */
  #held = 0;
  /** Outcomes that went on before their turn for want of room. */
  early: number;

  constructor(saved?: SavedOrder) {
    this.#slices = new Map(
      saved?.slices.map(([at, open, awaited, ended]) => [at, { open, awaited, ended: [...ended] }]),
    );
    for (const { ended } of this.#slices.values()) this.#held += ended.length;
    this.#givenUpUntil = saved?.givenUpUntil ?? -Infinity;
    this.early = saved?.early ?? 0;
  }

  /** One came in the slice that began then. */
  arrived(at: Micros): void {
    if (at <= this.#givenUpUntil) return;
    const slice = this.#slices.get(at);
    if (slice === undefined) this.#slices.set(at, { open: 1, awaited: 0, ended: [] });
    else slice.open++;
  }

  withdrawn(at: Micros): void {
    const slice = this.#slices.get(at);
    if (slice !== undefined) slice.open--;
  }

  /** One has ended and waits for what is predicted of it. */
  awaits(at: Micros): void {
    const slice = this.#slices.get(at);
    if (slice === undefined) return;
    slice.open--;
    slice.awaited++;
  }

  /**
   * One of that slice has ended: outcomes that go on now, none where it waits or where its slice was given up. What nobody
   * saw coming goes on at once.
   */
  ended(at: Micros, outcome: RolloutOutcome, wasAwaited = false): readonly RolloutOutcome[] {
    const slice = this.#slices.get(at);
    if (slice === undefined) return at <= this.#givenUpUntil ? [] : [outcome];
    if (wasAwaited) slice.awaited--;
    else slice.open--;
    slice.ended.push(outcome);
    this.#held++;
    if (this.#held <= HELD_MAX) return [];
    const [oldest] = this.#slices.keys();
    const early = this.#letGo(oldest!);
    this.early += early.length;
    return early;
  }

  /** What is in its turn: slices that began until `over`, up to the first of which something is open and that began after `limit`. */
  release(over: Micros, limit: Micros): RolloutOutcome[] {
    const released: RolloutOutcome[] = [];
    for (const at of [...this.#slices.keys()].sort((one, other) => one - other)) {
      const { open, awaited } = this.#slices.get(at)!;
      const isWhole = open + awaited <= 0;
      if (at > (isWhole ? over : limit)) break;
      if (!isWhole) this.#givenUpUntil = Math.max(this.#givenUpUntil, at);
      released.push(...this.#letGo(at));
    }
    return released;
  }

  saved(): SavedOrder {
    const slices = [...this.#slices].map(([at, { open, awaited, ended }]) => [at, open, awaited, [...ended]] as const);
    const givenUpUntil = Number.isFinite(this.#givenUpUntil) ? this.#givenUpUntil : null;
    return { slices, givenUpUntil, early: this.early };
  }

  #letGo(at: Micros): RolloutOutcome[] {
    const { ended } = this.#slices.get(at)!;
    this.#slices.delete(at);
    this.#held -= ended.length;
    return ended;
  }
}

/** The same on a clock that shows `byMicros` more at the same time; unless it `runs`, nothing is in flight any more. */
export function movedOrder({ slices, givenUpUntil, early }: SavedOrder, byMicros: Micros, runs: boolean): SavedOrder {
  return {
    slices: slices.map(([at, open, awaited, ended]) => {
      return [at + byMicros, runs ? open : 0, awaited, ended.map((one) => movedOutcome(one, byMicros))];
    }),
    givenUpUntil: givenUpUntil === null ? null : givenUpUntil + byMicros,
    early,
  };
}
