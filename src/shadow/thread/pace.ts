import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

/** Longest rest in one piece: work gets on even where the thread's other work alone takes its share. */
const REST_MILLIS_MAX = 1_000;

export interface PaceClock {
  /** Processor time that this thread has taken, and the time of day, in milliseconds from any start. */
  readonly cpuMillis: () => number;
  readonly wallMillis: () => number;
  readonly sleep: (millis: number) => Promise<unknown>;
}

/** Keeps long work within a share of one core, and lets the thread's event loop turn between its pieces. */
export class Pace {
  readonly #share: number;
  readonly #clock: PaceClock;
  #cpuMillis = 0;
  #wallMillis = 0;

  /** `share` in (0, 1]; 1 never rests. */
  constructor(share: number, clock: PaceClock = THREAD) {
    this.#share = share;
    this.#clock = clock;
    this.begin();
  }

  /** What was idle before does not count. */
  begin(): void {
    this.#cpuMillis = this.#clock.cpuMillis();
    this.#wallMillis = this.#clock.wallMillis();
  }

  /**
   * To be awaited after each piece of work: sleeps until the time since the last rest is long enough for it. Of work that
   * comes as one piece, a rest may be as long as it takes.
   */
  async rest(restMillisMax = REST_MILLIS_MAX): Promise<void> {
    const { cpuMillis, wallMillis } = this.#clock;
    const wanted = (cpuMillis() - this.#cpuMillis) / this.#share;
    const left = wanted - (wallMillis() - this.#wallMillis);
    if (left >= 1) await this.#clock.sleep(Math.min(left, restMillisMax));
    else await turn();
    // Less than a millisecond is not slept, and adds up.
    if (left >= 1 || left <= 0) this.begin();
  }

  /** Does work in steps, with a rest after each. */
  async through<T>(steps: Generator<unknown, T>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      await this.rest();
    }
  }
}

/** Processor time of the calling thread, in microseconds. */
export function threadCpuMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

const THREAD: PaceClock = {
  cpuMillis: () => threadCpuMicros() / MICROS_PER_MILLI,
  wallMillis: () => performance.now(),
  sleep,
};
