import type { Micros } from "#core/units.ts";

import { nowMicros } from "./clock.ts";

/** Something in flight whose limits are checked now and then. */
export interface Swept {
  sweep(at: Micros): void;
}

/** One timer for all limits of all requests; it runs only while something is in flight. */
export class DeadlineSweep {
  readonly #everyMillis: number;
  readonly #members = new Set<Swept>();
  #timer: NodeJS.Timeout | undefined;

  constructor(everyMillis: number) {
    this.#everyMillis = everyMillis;
  }

  get size(): number {
    return this.#members.size;
  }

  add(member: Swept): void {
    this.#members.add(member);
    this.#timer ??= setInterval(() => this.#sweep(), this.#everyMillis).unref();
  }

  /** The timer stops at the next sweep that finds nobody, so that sparse traffic does not set it anew each time. */
  remove(member: Swept): void {
    this.#members.delete(member);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#members.clear();
  }

  #sweep(): void {
    if (this.#members.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const at = nowMicros();
    for (const member of this.#members) member.sweep(at);
  }
}
