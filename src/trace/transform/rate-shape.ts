import type { Micros } from "#core/base/units.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";

/** A stretch of time with its own rate, relative to the mean. */
export interface RateWindow {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly factor: number;
}

/** A rate that rises in a straight line from its lowest to its highest and falls again, in every period. */
export interface Diurnal {
  readonly periodSeconds: number;
  readonly peakAtSeconds: number;
  /** Highest rate over lowest. */
  readonly peakToTrough: number;
}

/** Bursts of a higher rate in every period; what is between them has the rate that keeps the mean. */
export interface Bursts {
  readonly burstSeconds: number;
  readonly quietSeconds: number;
  readonly burstFactor: number;
}

/** Straight lines are climbed in so many steps a period. */
const DIURNAL_STEPS = 96;

/**
 * How a rate changes in the course of time. Arrivals are drawn on a clock of their own that runs as fast as the rate,
 * and given at the time when the real clock gets there; so every process keeps its character under every shape.
 */
export class RateShape {
  readonly #windows: readonly RateWindow[];
  readonly #diurnal: Diurnal | undefined;
  readonly #bursts: Bursts | undefined;

  constructor(windows: readonly RateWindow[], diurnal: Diurnal | undefined, bursts: Bursts | undefined) {
    this.#windows = [...windows].sort((a, b) => a.startSeconds - b.startSeconds);
    this.#diurnal = diurnal;
    this.#bursts = bursts;
  }

  /** When `amount` of the shaped clock's time has passed since `at`, both in microseconds; Infinity for never. */
  after(at: Micros, amount: number): number {
    let left = amount;
    let now = at;
    for (;;) {
      const factor = this.#factorAt(now);
      const until = this.#changesAt(now);
      if (factor > 0 && now + left / factor <= until) return now + left / factor;
      if (until === Infinity) return Infinity;
      left -= factor * (until - now);
      now = until;
    }
  }

  #factorAt(at: Micros): number {
    const seconds = at / MICROS_PER_SECOND;
    const window = this.#windows.find(
      ({ startSeconds, endSeconds }) => seconds >= startSeconds && seconds < endSeconds,
    );
    const windowed = window?.factor ?? (this.#windows.length > 0 ? 0 : 1);
    return windowed * this.#diurnalFactor(at) * this.#burstFactor(at);
  }

  /** The mean over a period is 1. */
  #diurnalFactor(at: Micros): number {
    if (this.#diurnal === undefined) return 1;
    const { periodSeconds, peakAtSeconds, peakToTrough } = this.#diurnal;
    const step = Math.floor((at * DIURNAL_STEPS) / (periodSeconds * MICROS_PER_SECOND));
    const peakStep = Math.round((peakAtSeconds * DIURNAL_STEPS) / periodSeconds);
    const place = (((step - peakStep) % DIURNAL_STEPS) + DIURNAL_STEPS) % DIURNAL_STEPS;
    const toPeak = Math.min(place, DIURNAL_STEPS - place) / (DIURNAL_STEPS / 2);
    const trough = 2 / (1 + peakToTrough);
    return trough * peakToTrough + (trough - trough * peakToTrough) * toPeak;
  }

  #burstFactor(at: Micros): number {
    if (this.#bursts === undefined) return 1;
    const { burstSeconds, quietSeconds, burstFactor } = this.#bursts;
    const period = (burstSeconds + quietSeconds) * MICROS_PER_SECOND;
    if (at % period < burstSeconds * MICROS_PER_SECOND) return burstFactor;
    return Math.max(0, (burstSeconds + quietSeconds - burstFactor * burstSeconds) / quietSeconds);
  }

  /** The next moment at which the rate may change. */
  #changesAt(at: Micros): number {
    let next = Infinity;
    for (const { startSeconds, endSeconds } of this.#windows) {
      for (const seconds of [startSeconds, endSeconds]) {
        const edge = seconds * MICROS_PER_SECOND;
        if (edge > at && edge < next) next = edge;
      }
    }
    if (this.#diurnal !== undefined) {
      const step = (this.#diurnal.periodSeconds * MICROS_PER_SECOND) / DIURNAL_STEPS;
      next = Math.min(next, multipleAfter(at, step));
    }
    if (this.#bursts !== undefined) {
      const { burstSeconds, quietSeconds } = this.#bursts;
      const period = (burstSeconds + quietSeconds) * MICROS_PER_SECOND;
      const begun = Math.floor(at / period) * period;
      const quietAt = begun + burstSeconds * MICROS_PER_SECOND;
      next = Math.min(next, quietAt > at ? quietAt : multipleAfter(at, period));
    }
    return next;
  }
}

function multipleAfter(at: Micros, step: number): number {
  const next = (Math.floor(at / step) + 1) * step;
  return next > at ? next : next + step;
}
