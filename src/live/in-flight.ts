import type { Micros } from "#core/units.ts";

import { nowMicros } from "./clock.ts";

/** Something in flight whose limits are checked now and then. */
export interface Swept {
  sweep(at: Micros): void;
}

/** What is in flight, by id. One timer checks all limits of all of them; it runs only while something is there. */
export class InFlight {
  readonly #everyMillis: number;
  readonly #members = new Map<string, Swept>();
  #timer: NodeJS.Timeout | undefined;

  constructor(everyMillis: number) {
    this.#everyMillis = everyMillis;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Returns the id under which the member is kept: the one wished for, or one like it where that is taken. */
  add(wished: string, member: Swept): string {
    const id = this.#members.has(wished) ? this.#another(wished) : wished;
    this.#members.set(id, member);
    this.#timer ??= setInterval(() => this.#sweep(), this.#everyMillis).unref();
    return id;
  }

  /** The timer stops at the next sweep that finds nobody, so that sparse traffic does not set it anew each time. */
  remove(id: string): void {
    this.#members.delete(id);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #another(wished: string): string {
    let n = 2;
    while (this.#members.has(`${wished}.${n}`)) n++;
    return `${wished}.${n}`;
  }

  #sweep(): void {
    if (this.#members.size === 0) return this.stop();
    const at = nowMicros();
    for (const member of this.#members.values()) member.sweep(at);
  }
}
