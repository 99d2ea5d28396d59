import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { type HostLag, StepLateness } from "./step-lateness.ts";

/** A timer that fires this much early is taken to be on time: half of what a timer can resolve. */
const EARLY_MICROS_MAX = 500;
/** Longest that a timer can wait; a step that takes longer is looked at again. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/**
 * Engine time on the wall clock, with one timer for the engine's next event, read against the clock so that lateness never
 * adds up. It can stand still.
 */
export class EmulatorClock {
  readonly #timeScale: number;
  readonly #due: (at: Micros) => void;
  readonly #lateness = new StepLateness();
  #startedAtMs = performance.now();
  #timer: NodeJS.Timeout | undefined;
  #timerAt: Micros = Number.POSITIVE_INFINITY;
  /** Since when it stands still. */
  #frozenAtMs: number | undefined;
  #stopped = false;

  constructor(timeScale: number, due: (at: Micros) => void) {
    this.#timeScale = timeScale;
    this.#due = due;
  }

  get lag(): HostLag {
    return this.#lateness.lag();
  }

  now(): Micros {
    const elapsedMs = (this.#frozenAtMs ?? performance.now()) - this.#startedAtMs;
    return Math.floor(elapsedMs * MICROS_PER_MILLI * this.#timeScale);
  }

  /** Calls `due` at that time; undefined takes the last order back. */
  arm(next: Micros | undefined): void {
    const at = this.#stopped || this.#frozenAtMs !== undefined ? Infinity : (next ?? Infinity);
    if (at === this.#timerAt) return;
    this.#disarm();
    this.#timerAt = at;
    if (!Number.isFinite(at)) return;
    const delayMs = Math.round((at - this.now()) / MICROS_PER_MILLI / this.#timeScale);
    this.#timer = setTimeout(this.#onTimer, Math.min(DELAY_MS_MAX, Math.max(0, delayMs)));
  }

  freeze(): void {
    this.#frozenAtMs ??= performance.now();
    this.#disarm();
  }

  /** It goes on where it stood. */
  thaw(): void {
    if (this.#frozenAtMs === undefined) return;
    this.#startedAtMs += performance.now() - this.#frozenAtMs;
    this.#frozenAtMs = undefined;
  }

  /** For good. */
  stop(): void {
    this.#stopped = true;
    this.#disarm();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  readonly #onTimer = (): void => {
    const due = this.#timerAt;
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.now();
    const early = due - now;
    this.#lateness.add(-early / this.#timeScale);
    this.#due(early > 0 && early <= EARLY_MICROS_MAX * this.#timeScale ? due : now);
  };
}
