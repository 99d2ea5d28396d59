import { RequestTable } from "#core/base/request-table.ts";
import type { Micros } from "#core/base/units.ts";
import { answerRoom } from "./answer-room.ts";
import { ArrivalQueue } from "./arrival-queue.ts";
import { type EngineConfig, queueMicros } from "./config.ts";
import { DeadlineHeap } from "./deadline-heap.ts";
import type { EngineRequest, SubmitOutcome } from "./request.ts";
import { Sequence } from "./sequence.ts";
import type { WaitQueue } from "./wait-queue.ts";

/** Who is in the engine: by id, by the time when the scheduler will see them, by deadline. */
export class Roster {
  readonly #config: EngineConfig;
  readonly #arrivals = new ArrivalQueue();
  readonly #deadlines = new DeadlineHeap();
  readonly #active = new RequestTable<Sequence>();
  readonly #pool: Sequence[] = [];
  #submissions = 0;

  constructor(config: EngineConfig) {
    this.#config = config;
  }

  /** Takes the request in, if it can ever be served. */
  enter(at: Micros, request: EngineRequest): Sequence | Exclude<SubmitOutcome, "queued"> {
    const { promptTokens } = request;
    const target = answerRoom(this.#config, promptTokens, request.outputTokens);
    if (typeof target === "string") return target;
    if (request.deadlineAt !== undefined && request.deadlineAt <= at) return "expired";
    if (this.#active.has(request.id)) return "duplicate";

    const visibleAt = at + queueMicros(this.#config.queueDelay, promptTokens);
    const sequence = this.#pool.pop() ?? new Sequence();
    sequence.reset(request, this.#submissions++, at, visibleAt, target);
    this.#active.set(request.id, sequence);
    this.#arrivals.push(sequence);
    if (request.deadlineAt !== undefined) this.#deadlines.push(request.deadlineAt, sequence);
    return sequence;
  }

  /** Moves the requests that have become visible into the waiting queue, or whose blocks came to those fetched. */
  receive(at: Micros, waiting: WaitQueue, fetched: Sequence[]): boolean {
    let received = false;
    for (let next = this.#arrivals.peek(); next !== undefined && next.visibleAt <= at; next = this.#arrivals.peek()) {
      received = true;
      this.#arrivals.shift();
      if (next.state === "fetching") {
        next.state = "fetched";
        fetched.push(next);
        continue;
      }
      next.state = "waiting";
      waiting.push(next);
    }
    return received;
  }

  /** Its blocks are on their way, and come at `at`. */
  fetching(sequence: Sequence, at: Micros): void {
    sequence.state = "fetching";
    sequence.visibleAt = at;
    this.#arrivals.push(sequence);
  }

  find(id: string): Sequence | undefined {
    return this.#active.get(id);
  }

  /** When the next request becomes visible; Infinity if none is on its way. */
  nextVisibleAt(): Micros {
    return this.#arrivals.peek()?.visibleAt ?? Infinity;
  }

  /** The next deadline of a request that is here; Infinity if there is none. */
  nextDeadlineAt(): Micros {
    return this.#deadlines.nextAt() ?? Infinity;
  }

  /** The request with that deadline. */
  takeExpired(): Sequence {
    return this.#deadlines.take();
  }

  /** A request that was not yet visible goes. */
  removeArriving(sequence: Sequence): void {
    this.#arrivals.remove(sequence);
  }

  /** Its id is free again, though a running step may still need the request. */
  forget(sequence: Sequence): void {
    if (this.#active.get(sequence.request.id) === sequence) this.#active.delete(sequence.request.id);
  }

  /** The request is over; its object will serve another one. */
  retire(sequence: Sequence): void {
    this.forget(sequence);
    sequence.state = "ended";
    sequence.order = -1;
    this.#pool.push(sequence);
  }
}
