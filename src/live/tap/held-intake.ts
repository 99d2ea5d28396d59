import { assert } from "#core/base/assert.ts";
import type { Decision, Placed } from "#core/input/decision.ts";
import {
  type AskingInput,
  type BlocksStored,
  type Input,
  isAsking,
  type RequestAgain,
  type RequestArrived,
} from "#core/input/input.ts";
import { type ObservedPlace, UNOBSERVED } from "#core/request/observed-place.ts";
import type { Router } from "#core/router.ts";
import { type Micros, MICROS_PER_MILLI } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import { Intake } from "../base/intake.ts";
import { recordBytes } from "../recorder/record-queue.ts";
import type { FollowedInput, FrontListener } from "./front-intake.ts";

export interface HeldIntakeOptions {
  readonly router: Router;
  /** An arrival is held so long, until its place is known. */
  readonly holdMillis: number;
  /** What is held may take so many bytes; the oldest arrival gives way. */
  readonly holdBytesMax: number;
  /** An input that the router refused; it goes on with the next one. */
  readonly failed: (error: unknown) => void;
  readonly now?: () => Micros;
}

/** By what places became known, and which did not; each only grows. */
export type PlaceCounts = Record<ObservedPlace["by"], number>;

interface Held {
  readonly input: Input;
  /** Of an arrival, once it is known; undefined before, and of all other inputs. */
  place: ObservedPlace | undefined;
  /** The end of its request is held behind it. */
  ended: boolean;
}

/** One turn of the event loop works through what was held for so long at most. */
const SLICE_MILLIS = 1;
const LOOK_MILLIS = 100;

/**
 * The way to a router that stands beside another one and is to know of each request where that sent it. That shows later
 * than the arrival, so arrivals wait here for it, and all that came after them waits behind them: the router gets
 * everything in its order and with its time, some time late. What waits too long, or has no room, is let go without a
 * place; if that is learned after all, the request moves there.
 */
export class HeldIntake extends Intake implements FrontListener {
  readonly #options: HeldIntakeOptions;
  readonly #now: () => Micros;
  #queue: (Held | undefined)[] = [];
  #next = 0;
  #bytes = 0;
  /** Arrivals that are held without a place. */
  readonly #open = new Map<string, Held>();
  /** Requests in flight that were let go without one. */
  readonly #letGo = new Set<string>();
  readonly counts: PlaceCounts = { header: 0, "kv-events": 0, metrics: 0, log: 0, none: 0 };
  /** Arrivals let go since there was no room, and since they had waited long enough. */
  readonly givenWay = { room: 0, time: 0 };
  /** Requests that moved to a place which was learned too late, and places that were learned behind their end. */
  moved = 0;
  tooLate = 0;
  /** Is notified of blocks that engines report, as they come. */
  storedBlocks: ((input: BlocksStored) => void) | undefined;
  #goesOn = false;
  #looks: NodeJS.Timeout | undefined;

  constructor(options: HeldIntakeOptions) {
    super(options.router);
    this.#options = options;
    this.#now = options.now ?? nowMicros;
  }

  /** Inputs that wait. */
  get held(): number {
    return this.#queue.length - this.#next;
  }
  get heldBytes(): number {
    return this.#bytes;
  }

  status() {
    const first = this.#queue[this.#next];
    const { counts, givenWay, moved, tooLate, held, heldBytes } = this;
    const lagMicros = first === undefined ? 0 : Math.max(0, this.#now() - first.input.at);
    return { places: counts, givenWay, moved, tooLate, held, heldBytes, lagMicros };
  }

  override accept(input: RequestAgain): Placed;
  override accept(input: AskingInput): Decision;
  override accept(input: Input): Decision | undefined;
  override accept(input: Input): Decision | undefined {
    assert(!isAsking(input), "what asks for a decision is held by `arrived`");
    if (input.kind === "blocks-stored") this.storedBlocks?.(input);
    this.#push(input);
    return undefined;
  }

  arrived(input: RequestArrived): void {
    this.#open.set(input.request.id, this.#push(input));
  }

  followed(input: FollowedInput): void {
    this.#push(input);
    if (input.kind !== "request-finished") return;
    const open = this.#open.get(input.requestId);
    if (open !== undefined) open.ended = true;
    this.#letGo.delete(input.requestId);
  }

  /** Whether somebody still wants to know where a request went. */
  awaits(requestId: string): boolean {
    return this.#open.has(requestId) || this.#letGo.has(requestId);
  }

  /** It became known where a request went, or that it never will. */
  placed(requestId: string, place: ObservedPlace): void {
    const held = this.#open.get(requestId);
    if (held !== undefined) {
      this.#open.delete(requestId);
      held.place = place;
      this.counts[place.by]++;
      if (held === this.#queue[this.#next]) this.#goOn();
    } else if (place.by !== "none") this.#move(requestId, place);
  }

  /** Lets go of all that is held. */
  flush(): void {
    clearInterval(this.#looks);
    this.#looks = undefined;
    for (const requestId of this.#open.keys()) this.placed(requestId, UNOBSERVED);
    while (this.held > 0) this.#take();
  }

  #move(requestId: string, { endpoint }: ObservedPlace): void {
    if (!this.#letGo.delete(requestId)) {
      this.tooLate++;
      return;
    }
    this.moved++;
    this.#push({ kind: "request-moved", at: this.#now(), requestId, endpoint });
  }

  #push(input: Input): Held {
    const held: Held = { input, place: undefined, ended: false };
    this.#queue.push(held);
    this.#bytes += recordBytes(input, undefined);
    while (this.#bytes > this.#options.holdBytesMax && this.#letGoFirst("room"));
    this.#looks ??= setInterval(() => this.#look(), LOOK_MILLIS).unref();
    if (!this.#goesOn && !this.#isWaiting(this.#queue[this.#next]!)) this.#goOn();
    return held;
  }

  /** An arrival without a place. It is not in `#open` yet in the very call that brings it. */
  #isWaiting({ input, place }: Held): boolean {
    return input.kind === "request-arrived" && place === undefined;
  }

  /** Works through what waits for nothing, a slice at a time. */
  readonly #goOn = (): void => {
    this.#goesOn = false;
    const until = performance.now() + SLICE_MILLIS;
    for (let taken = 1; this.held > 0 && !this.#isWaiting(this.#queue[this.#next]!); taken++) {
      this.#take();
      if (taken % SLICE_LOOKS !== 0 || performance.now() < until) continue;
      this.#goesOn = true;
      setImmediate(this.#goOn);
      return;
    }
  };

  #take(): void {
    const { input, place } = this.#queue[this.#next]!;
    this.#queue[this.#next++] = undefined;
    this.#bytes -= recordBytes(input, undefined);
    if (this.#next > COMPACTED && 2 * this.#next > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#next);
      this.#next = 0;
    }
    try {
      super.accept(place === undefined ? input : { ...(input as RequestArrived), observed: place });
    } catch (error) {
      this.#options.failed(error);
    }
  }

  /** The oldest arrival goes on without a place; false where none waits. */
  #letGoFirst(why: keyof HeldIntake["givenWay"]): boolean {
    const first = this.#open.entries().next();
    if (first.done === true) return false;
    const [requestId, { ended }] = first.value;
    this.givenWay[why]++;
    if (!ended) this.#letGo.add(requestId);
    this.placed(requestId, UNOBSERVED);
    if (why === "time") return true;
    // At once, not in slices: there is no room.
    while (this.held > 0 && !this.#isWaiting(this.#queue[this.#next]!)) this.#take();
    return true;
  }

  #look(): void {
    const until = this.#now() - this.#options.holdMillis * MICROS_PER_MILLI;
    for (const held of this.#open.values()) {
      if (held.input.at > until) return;
      this.#letGoFirst("time");
    }
  }
}

/** Between two looks at the clock. */
const SLICE_LOOKS = 16;
/** What was taken is cut off the queue from so many on. */
const COMPACTED = 4_096;
