import type { Placed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { isAsking } from "#core/input.ts";
import { RequestTable } from "#core/request-table.ts";
import type { AfterFault, FailedStage } from "#core/retry/after-fault.ts";
import type { Micros } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import type { RequestObserver } from "../gateway-parts.ts";
import type { RouterSeat } from "../router-seat.ts";
import type { RouterTap } from "../router-tap.ts";
import type { CountedPrompt } from "../status/decisive.ts";
import { Bell } from "./bell.ts";
import { writeDecision } from "./decision-mail.ts";
import { readAny, readInput } from "./input-mail.ts";
import { MAIL, type Note, REPLY } from "./mail.ts";
import { MessageReader } from "./message-reader.ts";
import { Outbox } from "./outbox.ts";
import { readRequest } from "./request-mail.ts";
import { SharedRing } from "./shared-ring.ts";
import { readSummary } from "./summary-mail.ts";
import type { WorkerMemory } from "./worker-memory.ts";
import type { WorkerSigns } from "./worker-signs.ts";

/** What the thread that decides has of its own. */
export interface DecidingParts {
  readonly tap: RouterTap;
  readonly seat: RouterSeat;
  readonly signs: WorkerSigns;
  readonly observe: RequestObserver;
  /** Answers carry x-gnomon-* headers. */
  readonly sendsOwnHeaders: boolean;
}

export interface WorkerDeskOptions extends DecidingParts {
  /** Numbers the workers of a process, those that are gone included, from 1. */
  readonly worker: number;
  readonly memory: WorkerMemory;
}

interface OpenRequest extends CountedPrompt {
  readonly id: string;
}

/** Messages of one worker that are worked off before the next one's. */
const BATCH_MAX = 64;

/**
 * One worker's place at the thread that decides: its mail becomes inputs of the router in the order in which it was sent,
 * and decisions go back. What it has in flight ends with it.
 */
export class WorkerDesk {
  readonly #options: WorkerDeskOptions;
  readonly #inbox: SharedRing;
  readonly #outbox: Outbox;
  readonly #reader = new MessageReader();
  /** Between arrival and end. */
  readonly #open = new RequestTable<OpenRequest>();
  #takenAt: Micros = 0;
  /** Inputs are accepted in order of time, whichever thread they come from. */
  readonly #at = (happened: Micros): Micros => Math.max(this.#options.tap.lastAt, Math.min(this.#takenAt, happened));

  constructor(options: WorkerDeskOptions) {
    this.#options = options;
    this.#inbox = new SharedRing(options.memory.toDecide);
    this.#outbox = new Outbox(new SharedRing(options.memory.toWorker), new Bell(options.memory.worker));
  }

  get inFlight(): number {
    return this.#open.size;
  }

  /** Works off what the worker sent; returns how many messages that were. */
  take(): number {
    let count = 0;
    this.#takenAt = nowMicros();
    while (count < BATCH_MAX && this.#inbox.read(this.#reader.room) !== undefined) {
      count++;
      try {
        this.#accept(this.#reader.byte());
      } catch (error) {
        this.#options.observe.bug?.(error);
      }
    }
    if (count > 0) this.#outbox.ring();
    return count;
  }

  /** The worker is gone: what it had in flight is over. Returns how many requests that were. */
  end(): number {
    while (this.take() > 0);
    const { tap, signs, worker } = this.#options;
    const lost = [...this.#open.values()];
    for (const { id: requestId } of lost) {
      tap.accept({
        kind: "request-finished",
        at: nowMicros(),
        requestId,
        outcome: "failed",
        promptTokens: undefined,
        cachedTokens: undefined,
        outputTokens: undefined,
      });
    }
    signs.left(worker);
    this.#outbox.close();
    return lost.length;
  }

  #accept(kind: number): void {
    const { seat, observe, signs, worker } = this.#options;
    const from = this.#reader;
    switch (kind) {
      case MAIL.arrived:
        return this.#arrived();
      case MAIL.summary:
        return observe.finished(readSummary(from));
      case MAIL.retried:
        return observe.retried(from.name() as Fault);
      case MAIL.fellBack:
        return observe.tokenizerFellBack(from.name());
      case MAIL.refund:
        return seat.refundContinuation();
      case MAIL.note:
        return this.#note(JSON.parse(from.text()) as Note);
      case MAIL.sweep:
        return signs.swept(worker, from);
      case MAIL.afterFault:
      case MAIL.afterBreak:
      case MAIL.mayLeave:
      case MAIL.hedge:
      case MAIL.again:
        return this.#answer(kind);
    }
    const input = readInput(kind, from, this.#at);
    if (input === undefined) throw new Error(`a worker sent a message of kind ${kind}`);
    if (input.kind === "request-finished") this.#open.delete(input.requestId);
    seat.accept(input);
  }

  #arrived(): void {
    const { seat, observe } = this.#options;
    const request = readRequest(this.#reader);
    const { id, promptTokens, promptTokensExact: exact } = request;
    const failed = (error: unknown): void => {
      observe.bug?.(error);
      const { writer } = this.#outbox;
      writer.begin(REPLY.defect);
      writer.text(id);
      this.#outbox.send(true);
    };
    const open: OpenRequest = { id, promptTokens, exact };
    this.#open.set(id, open);
    try {
      seat.arrive(request, (decision, waited) => this.#decided(open, decision, waited), failed);
    } catch (error) {
      failed(error);
    }
  }

  #decided(open: OpenRequest, decision: Placed, queuedMicros: Micros): void {
    if (decision.kind === "routed") this.#options.seat.earnRetry();
    const { writer } = this.#outbox;
    writer.begin(REPLY.decided);
    writer.text(open.id);
    writer.number(queuedMicros);
    writeDecision(writer, decision, this.#whyOf(decision, open));
    this.#outbox.send(true);
  }

  #whyOf(decision: Placed, prompt: CountedPrompt | undefined): string {
    const { seat, sendsOwnHeaders } = this.#options;
    if (!sendsOwnHeaders || decision.kind !== "routed" || prompt === undefined) return "";
    return seat.whyOf(decision, prompt);
  }

  /** The worker stands still until it has the answer. */
  #answer(kind: number): void {
    const { writer } = this.#outbox;
    try {
      if (kind === MAIL.mayLeave) {
        const may = this.#mayLeave();
        writer.begin(REPLY.leave);
        writer.byte(may ? 1 : 0);
      } else if (kind === MAIL.again) this.#writePlaced(this.#again());
      else if (kind === MAIL.hedge) this.#writeAfter(this.#options.seat.hedge(this.#reader.text()));
      else this.#writeAfter(kind === MAIL.afterFault ? this.#afterFault() : this.#afterBreak());
    } catch (error) {
      this.#options.observe.bug?.(error);
      writer.begin(REPLY.failed);
    }
    this.#outbox.send(true);
    this.#outbox.ring();
  }

  #again(): Placed {
    const input = readAny(this.#reader, this.#at);
    if (!isAsking(input) || input.kind === "request-arrived" || input.kind === "request-released")
      throw new Error(`a worker asks by ${input.kind}`);
    return this.#options.seat.again(input);
  }

  #writePlaced(decision: Placed): void {
    const { writer } = this.#outbox;
    writer.begin(REPLY.placed);
    writer.text(decision.requestId);
    writeDecision(writer, decision, this.#whyOf(decision, this.#open.get(decision.requestId)));
  }

  #writeAfter(after: AfterFault): void {
    const { writer } = this.#outbox;
    writer.begin(REPLY.after);
    if (after.kind === "give-up") {
      writer.text("");
      writer.name(after.why);
      return;
    }
    const { decision } = after;
    writer.text(decision.requestId);
    writer.name("");
    writeDecision(writer, decision, this.#whyOf(decision, this.#open.get(decision.requestId)));
  }

  #afterFault(): AfterFault {
    const from = this.#reader;
    const [requestId, fault, attempts] = [from.text(), from.name() as Fault, from.number()];
    return this.#options.seat.afterFault(requestId, fault, attempts, from.name() as FailedStage);
  }

  #afterBreak(): AfterFault {
    const from = this.#reader;
    const [requestId, fault] = [from.text(), from.name() as Fault];
    const [outputTokens, continuations, answerHashes] = [from.number(), from.number(), from.words()];
    const answer = answerHashes.length > 0 ? { answerHashes } : {};
    return this.#options.seat.afterBreak({ requestId, fault, outputTokens, continuations, ...answer });
  }

  #mayLeave(): boolean {
    const from = this.#reader;
    const [requestId, fault, times] = [from.text(), from.name() as Fault, from.number()];
    return this.#options.seat.mayLeave({ requestId, fault, times, continues: from.byte() === 1 });
  }

  #note(note: Note): void {
    const { observe, tap } = this.#options;
    if (note.kind === "fault") observe.fault?.(note.event);
    else if (note.kind === "bug") observe.bug?.(Object.assign(new Error("in a worker"), { stack: note.frames }));
    else tap.accept({ kind: "profile-changed", at: nowMicros(), name: note.name, profile: note.spec });
  }
}
