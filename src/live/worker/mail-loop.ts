import type { Bell } from "./bell.ts";

/** Turns of the event loop without a message after which a thread sleeps. */
const QUIET_TURNS = 1;

/**
 * Looks for messages in shared memory: every turn of the event loop while some come, and when the bell rings after that.
 * Under load messages are so taken several at a time and nobody is woken.
 */
export class MailLoop {
  readonly #bell: Bell;
  readonly #take: () => number;
  #quiet = 0;
  #isAwake = true;
  #isOpen = true;
  /** Rings so far as the bell is waited on; a thread that woke by itself need not wait anew. */
  #waitsSince: number | undefined;

  /** `take` works off all that is there and returns how many messages that were. It must not throw. */
  constructor(bell: Bell, take: () => number) {
    this.#bell = bell;
    this.#take = take;
    setImmediate(this.#turn);
  }

  /** Messages will come soon. */
  expect(): void {
    this.#quiet = 0;
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#bell.wakes();
    setImmediate(this.#turn);
  }

  close(): void {
    this.#isOpen = false;
    this.#bell.ring();
  }

  readonly #turn = (): void => {
    if (!this.#isOpen) return;
    if (this.#take() > 0) this.#quiet = 0;
    else this.#quiet++;
    if (this.#quiet <= QUIET_TURNS) {
      setImmediate(this.#turn);
      return;
    }
    this.#sleep();
  };

  #sleep(): void {
    const { rings } = this.#bell;
    this.#bell.sleeps();
    // What came between the last look and this.
    if (this.#take() > 0) {
      this.#bell.wakes();
      this.#quiet = 0;
      setImmediate(this.#turn);
      return;
    }
    this.#isAwake = false;
    if (this.#waitsSince === rings) return;
    this.#waitsSince = rings;
    this.#bell.whenRung(rings, () => this.#rung(rings));
  }

  #rung(since: number): void {
    if (this.#waitsSince === since) this.#waitsSince = undefined;
    if (this.#isAwake) return;
    this.#isAwake = true;
    this.#quiet = 0;
    this.#turn();
  }
}
