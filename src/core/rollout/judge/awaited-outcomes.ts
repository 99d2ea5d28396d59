import type { Micros } from "../../base/units.ts";
import { type RolloutOutcome, TIME_METRICS, type Times } from "./outcome.ts";

/** Outcomes that wait; beyond them the oldest goes on without a prediction. */
const AWAITED_MAX = 32_768;

export interface AwaitedOutcome {
  readonly id: string;
  /** When the request ended. */
  readonly endAt: Micros;
  readonly outcome: RolloutOutcome;
}

/** Requests that have ended and wait for what the simulator predicts of them, oldest first. */
export class AwaitedOutcomes {
  readonly #waiting: Map<string, AwaitedOutcome>;
  /** Outcomes that got their prediction, and those that went on without. */
  predicted: number;
  unpredicted: number;

  constructor(saved?: SavedAwaited) {
    this.#waiting = new Map(saved?.waiting.map((one) => [one.id, one]));
    this.predicted = saved?.predicted ?? 0;
    this.unpredicted = saved?.unpredicted ?? 0;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get all(): IterableIterator<AwaitedOutcome> {
    return this.#waiting.values();
  }

  /** Returns what has to go on without a prediction for want of room. */
  add(one: AwaitedOutcome): RolloutOutcome | undefined {
    this.#waiting.set(one.id, one);
    if (this.#waiting.size <= AWAITED_MAX) return undefined;
    const [oldest] = this.#waiting.values();
    return this.#without(oldest!);
  }

  /** The outcome of a request with what is predicted of it; undefined where it does not wait. */
  take(id: string, predicted: Times): RolloutOutcome | undefined {
    const one = this.#waiting.get(id);
    if (one === undefined) return undefined;
    if (TIME_METRICS.every((metric) => predicted[metric] === undefined)) return this.#without(one);
    this.#waiting.delete(id);
    this.predicted++;
    return { ...one.outcome, predicted };
  }

  /** Those of windows up to that one have waited long enough. */
  release(untilWindow: number): RolloutOutcome[] {
    const due = [...this.#waiting.values()].filter(({ outcome }) => outcome.window <= untilWindow);
    return due.map((one) => this.#without(one));
  }

  saved(): SavedAwaited {
    return { waiting: [...this.#waiting.values()], predicted: this.predicted, unpredicted: this.unpredicted };
  }

  #without({ id, outcome }: AwaitedOutcome): RolloutOutcome {
    this.#waiting.delete(id);
    this.unpredicted++;
    return outcome;
  }
}

export interface SavedAwaited {
  readonly waiting: readonly AwaitedOutcome[];
  readonly predicted: number;
  readonly unpredicted: number;
}
