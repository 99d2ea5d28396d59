import type { Duplex } from "node:stream";

import { SlotList, type Slotted } from "#core/base/slot-list.ts";
import type { Micros } from "#core/base/units.ts";

import { nowMicros } from "../base/clock.ts";

/** Something in flight whose limits are checked now and then. */
export interface Swept extends Slotted {
  sweep(at: Micros): void;
  /** Whether its answer is owed or under way on a socket: all of the request came, or some of the answer went. */
  answersOn(socket: Duplex): boolean;
  /** Where its client can still be answered: it learns that it is not waited for any more. */
  dismiss?(): void;
}

/**
 * Looked at in one turn of the event loop, in 0.1 to 0.2 ms. 2,000 streams at once kept the loop from all of them for 3 to
 * 5 ms of CPU, four times a second.
 */
const AT_ONCE = 64;

/** Wants to know where a sweep over all that is in flight begins and ends. */
export interface SweepListener {
  sweepBegins(): void;
  sweepEnds(): void;
}

/**
 * What is in flight. One timer checks all limits of all of them, a few in each turn of the event loop, so that what streams
 * need goes on between; it runs only while something is there.
 *
 * A plain array, since a Map or Set through which every request passes makes them all outlive it: each of its hash
 * tables that was outgrown points to the next one and still holds its entries, so that once one table is old, all that
 * ever passed through the later ones waits for a full collection (4 KB a request and a scavenge of 10 ms for every
 * thousand, seen).
 */
export class InFlight {
  readonly #everyMillis: number;
  readonly #listener: SweepListener | undefined;
  readonly #members = new SlotList<Swept>();
  #timer: NodeJS.Timeout | undefined;
  /** The next part of a sweep that is under way. */
  #rest: NodeJS.Immediate | undefined;

  constructor(everyMillis: number, listener?: SweepListener) {
    this.#everyMillis = everyMillis;
    this.#listener = listener;
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
    this.#members.remove(member);
  }

  /** Whether any of them answers on a socket. Looks at all: only for what is rare. */
  answering(socket: Duplex): boolean {
    return this.#members.some((member) => member.answersOn(socket));
  }

  each(visit: (member: Swept) => void): void {
    this.#members.each(visit);
  }

  stop(): void {
    clearInterval(this.#timer);
    clearImmediate(this.#rest);
    this.#timer = undefined;
    this.#rest = undefined;
  }

  /** One that takes longer than the time to the next goes on in its place. */
  #sweep(): void {
    if (this.#rest !== undefined) return;
    this.#listener?.sweepBegins();
    this.#sweepBelow(this.#members.size);
  }

  /** Each at its own time, since one may report something to the router as it is swept, and the next must not be older. */
  #sweepBelow(from: number): void {
    this.#rest = undefined;
    const left = this.#members.eachBelow(from, AT_ONCE, (member) => member.sweep(nowMicros()));
    if (left > 0) {
      this.#rest = setImmediate(() => this.#sweepBelow(left)).unref();
      return;
    }
    this.#listener?.sweepEnds();
    if (this.#members.size === 0) this.stop();
  }
}
