import { assert } from "#core/base/assert.ts";
import type { Micros } from "#core/base/units.ts";
import type { WorkloadRequest } from "./workload-request.ts";
import { DueQueue } from "./due-queue.ts";

export interface Planned {
  readonly request: WorkloadRequest;
  /** False for a turn that is left out: it is over as soon as it is due, so that what follows it can go on. */
  readonly send: boolean;
}

export interface Due extends Planned {
  readonly dueMicros: Micros;
}

export interface ScheduleOptions {
  /** Factor on all recorded times. */
  readonly timeScale: number;
  /** Arrivals come so many times as fast; think times are not changed. */
  readonly rateScale: number;
}

/** Finished conversations whose last turn is remembered, for what may still refer to it. */
const FINISHED_SESSIONS_MAX = 100_000;

interface Session {
  readonly name: string;
  readonly pending: Planned[];
  /** A turn is queued or in flight. */
  busy: boolean;
  lastTurn: number;
  lastEndMicros: Micros | undefined;
  notBefore: Micros;
  /** Sub-agents belong to the conversation that spawned them. */
  readonly counts: boolean;
}

/**
 * Decides when each request is due. First turns come at their recorded arrival (open loop); a follow-up turn comes its
 * think time after the completion of the turn before and of all that it joins (closed loop), never at its recorded
 * time, which would carry the recorded system's speed into this one. Microseconds from the start of the run.
 */
export class Schedule {
  readonly #options: ScheduleOptions;
  readonly #queue = new DueQueue<Due>();
  readonly #sessions = new Map<string, Session>();
  readonly #finished = new Map<string, Session>();
  readonly #blocked = new Set<Session>();
  #active = 0;
  #waiting = 0;

  constructor(options: ScheduleOptions) {
    this.#options = options;
  }

  /** Conversations with a turn in flight or to come, among what was added. */
  get activeSessions(): number {
    return this.#active;
  }

  /** Requests that were added and not taken. */
  get size(): number {
    return this.#queue.size + this.#waiting;
  }

  get nextDue(): Micros | undefined {
    return this.#queue.nextDue;
  }

  /** The turn that follows in the conversation, as far as it was added; undefined where the next is no direct follower. */
  nextTurn(session: string): WorkloadRequest | undefined {
    const next = session === "" ? undefined : this.#sessions.get(session)?.pending[0]?.request;
    return next?.thinkMicros === undefined ? undefined : next;
  }

  arrivalDue({ arrivalMicros }: Pick<WorkloadRequest, "arrivalMicros">): Micros {
    return Math.round((arrivalMicros * this.#options.timeScale) / this.#options.rateScale);
  }

  /** A first turn is due at its arrival, or at `notBefore` if that is later. */
  add(planned: Planned, nowMicros: Micros, notBefore: Micros = 0): void {
    const { request } = planned;
    if (request.session === "") {
      const dueMicros = Math.max(this.arrivalDue(request), notBefore);
      this.#queue.push(dueMicros, { request, send: planned.send, dueMicros });
      return;
    }
    const session = this.#session(request);
    if (request.thinkMicros === undefined) session.notBefore = notBefore;
    session.pending.push(planned);
    this.#waiting++;
    this.#advance(session, nowMicros);
  }

  /** The earliest request that is due, or undefined. `finished` must be called for it. */
  take(nowMicros: Micros): Due | undefined {
    const due = this.#queue.nextDue;
    return due === undefined || due > nowMicros ? undefined : this.#queue.pop();
  }

  /** A taken request is over, whatever came of it. */
  finished(request: WorkloadRequest, nowMicros: Micros): void {
    const session = this.#sessions.get(request.session);
    if (session === undefined) return;
    assert(session.busy, "a finished turn was under way");
    session.busy = false;
    session.lastTurn = request.turn;
    session.lastEndMicros = nowMicros;
    this.#advance(session, nowMicros);
    if (!session.busy && session.pending.length === 0) this.#retire(session);
    for (const blocked of this.#blocked) this.#advance(blocked, nowMicros);
  }

  #session(request: WorkloadRequest): Session {
    const known = this.#sessions.get(request.session);
    if (known !== undefined) return known;
    const session: Session = this.#finished.get(request.session) ?? {
      name: request.session,
      pending: [],
      busy: false,
      lastTurn: -1,
      lastEndMicros: undefined,
      notBefore: 0,
      counts: request.parent === undefined,
    };
    this.#finished.delete(request.session);
    this.#sessions.set(request.session, session);
    if (session.counts) this.#active++;
    return session;
  }

  #retire(session: Session): void {
    this.#sessions.delete(session.name);
    if (session.counts) this.#active--;
    this.#finished.set(session.name, session);
    const oldest = this.#finished.keys().next();
    if (this.#finished.size > FINISHED_SESSIONS_MAX && oldest.done !== true) this.#finished.delete(oldest.value);
  }

  /** Queues the session's next turn if all that it waits for is over. */
  #advance(session: Session, nowMicros: Micros): void {
    const [next] = session.pending;
    if (session.busy || next === undefined) return;
    const due = this.#due(session, next.request, nowMicros);
    if (due === undefined) {
      this.#blocked.add(session);
      return;
    }
    this.#blocked.delete(session);
    session.pending.shift();
    this.#waiting--;
    session.busy = true;
    this.#queue.push(due, { request: next.request, send: next.send, dueMicros: due });
  }

  #due(session: Session, request: WorkloadRequest, nowMicros: Micros): Micros | undefined {
    if (request.thinkMicros === undefined) {
      // A later turn with an arrival of its own still waits for the one before.
      const arrival = this.arrivalDue(request);
      return Math.max(arrival, session.notBefore, session.lastEndMicros ?? 0);
    }
    let after = session.lastEndMicros;
    if (request.parent !== undefined && session.lastTurn < 0) {
      const parent = this.#find(request.parent.session);
      if (parent !== undefined && parent.lastTurn < request.parent.turn) return undefined;
      after = parent?.lastEndMicros;
    }
    for (const name of request.joins) {
      if (this.#sessions.has(name)) return undefined;
      after = Math.max(after ?? 0, this.#finished.get(name)?.lastEndMicros ?? 0);
    }
    return Math.round((after ?? nowMicros) + request.thinkMicros * this.#options.timeScale);
  }

  #find(name: string): Session | undefined {
    return this.#sessions.get(name) ?? this.#finished.get(name);
  }
}
