import type { TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { HangDetector } from "#live/keeper/hang-detector.ts";

/** The process's clock in a test's hand: it stands still but for a microsecond a reading, until it is put on. */
export interface HeldClock {
  advance(millis: number): void;
  /** Resolves after so many whole sweeps over all that is in flight have begun and ended from now on. */
  swept(sweeps?: number): Promise<void>;
}

const MILLIS_PER_READING = 0.001;

/** Holds the clock until the test is over. Sweeps go on by the real one, and find the time that is here. */
export function holdClock(t: TestContext): HeldClock {
  let now = performance.now();
  t.mock.method(performance, "now", () => (now += MILLIS_PER_READING));
  const begun = t.mock.method(HangDetector.prototype, "sweepBegins");
  const ended = t.mock.method(HangDetector.prototype, "sweepEnds");
  return {
    advance(millis) {
      now += millis;
    },
    async swept(sweeps = 1) {
      const last = begun.mock.callCount() + sweeps;
      while (ended.mock.callCount() < last) await setTimeout(1);
    },
  };
}
