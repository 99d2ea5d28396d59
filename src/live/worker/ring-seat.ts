import type { Placed, Routed } from "#core/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";
import { RequestTable } from "#core/request-table.ts";
import type { AfterFault, FailedStage, GiveUpReason } from "#core/retry/after-fault.ts";
import type { BrokenAnswer } from "#core/retry/after-break.ts";
import type { Micros } from "#core/units.ts";
import type { OnDecided, LeavingAttempt, RouterSeat } from "../router-seat.ts";
import { type CountedPrompt, decisiveText } from "../status/decisive.ts";
import { Bell } from "./bell.ts";
import { readDecision } from "./decision-mail.ts";
import { writeAny, writeInput } from "./input-mail.ts";
import { MAIL, REPLY } from "./mail.ts";
import { MailLoop } from "./mail-loop.ts";
import { MessageReader } from "./message-reader.ts";
import { Outbox } from "./outbox.ts";
import { writeRequest } from "./request-mail.ts";
import { SharedRing } from "./shared-ring.ts";
import type { WorkerMemory } from "./worker-memory.ts";

/** A thread that decides and does not answer for so long will not. */
const ANSWER_MILLIS_MAX = 5_000;
const LOOK_MILLIS = 100;

type Answer = AfterFault | Placed | boolean;

interface Waiting {
  readonly decided: OnDecided;
  readonly failed: (error: Error) => void;
}

interface Arrived {
  readonly requestId: string;
  /** Undefined where deciding was a defect. */
  readonly decision: Placed | undefined;
  readonly queuedMicros: Micros;
}

/**
 * The router of the thread that decides for all, as a worker's requests see it. Arrivals are answered by mail; what is
 * asked of a request in flight is rare, and this thread stops for the answer.
 */
export class RingSeat implements RouterSeat {
  readonly outbox: Outbox;
  readonly #inbox: SharedRing;
  readonly #reader = new MessageReader();
  readonly #bell: Bell;
  readonly #loop: MailLoop;
  readonly #waiting = new RequestTable<Waiting>();
  /** Decisions that came while this thread waited for an answer. */
  #held: Arrived[] = [];
  #answer: Answer | Error | undefined;

  readonly #ready: (endpoint: EndpointId) => void;

  /** `ready` is called before a request goes to an endpoint. */
  constructor(memory: WorkerMemory, ready: (endpoint: EndpointId) => void = () => {}) {
    this.#ready = ready;
    this.outbox = new Outbox(new SharedRing(memory.toDecide), new Bell(memory.deciding));
    this.#inbox = new SharedRing(memory.toWorker);
    this.#bell = new Bell(memory.worker);
    this.#loop = new MailLoop(this.#bell, () => this.#take());
  }

  arrive(request: RouteRequest, decided: OnDecided, failed: (error: Error) => void): void {
    const { writer } = this.outbox;
    writer.begin(MAIL.arrived);
    writeRequest(writer, request);
    this.outbox.send(true);
    this.#waiting.set(request.id, { decided, failed });
    this.#loop.expect();
  }

  accept(input: Exclude<Input, AskingInput>): void {
    if (input.kind === "request-finished") this.#waiting.delete(input.requestId);
    writeInput(this.outbox.writer, input);
    this.outbox.send(false);
  }

  again(input: RequestAgain): Placed {
    const { writer } = this.outbox;
    writer.begin(MAIL.again);
    writeAny(writer, input);
    const answer = this.#ask();
    if (typeof answer === "boolean" || !("at" in answer)) throw new Error("a question was answered by another answer");
    return answer;
  }

  afterFault(requestId: string, fault: Fault, attempts: number, stage: FailedStage = "answer"): AfterFault {
    const { writer } = this.outbox;
    writer.begin(MAIL.afterFault);
    writer.text(requestId);
    writer.name(fault);
    writer.number(attempts);
    writer.name(stage);
    return this.#after();
  }

  afterBreak({ requestId, fault, outputTokens, answerHashes, continuations }: BrokenAnswer): AfterFault {
    const { writer } = this.outbox;
    writer.begin(MAIL.afterBreak);
    writer.text(requestId);
    writer.name(fault);
    writer.number(outputTokens);
    writer.number(continuations);
    writer.words(answerHashes ?? NO_WORDS);
    return this.#after();
  }

  hedge(requestId: string): AfterFault {
    const { writer } = this.outbox;
    writer.begin(MAIL.hedge);
    writer.text(requestId);
    return this.#after();
  }

  mayLeave({ requestId, fault, times, continues }: LeavingAttempt): boolean {
    const { writer } = this.outbox;
    writer.begin(MAIL.mayLeave);
    writer.text(requestId);
    writer.name(fault);
    writer.number(times);
    writer.byte(continues ? 1 : 0);
    return this.#ask() === true;
  }

  /** Done where the decision is made. */
  earnRetry(): void {}

  refundContinuation(): void {
    this.outbox.writer.begin(MAIL.refund);
    this.outbox.send(false);
  }

  /** The budget is where the decisions are made. */
  changeRetries(): void {}

  whyOf(decision: Routed, prompt: CountedPrompt): string {
    return "why" in decision && typeof decision.why === "string" ? decision.why : decisiveText(decision, prompt);
  }

  stop(): void {
    this.outbox.ring();
    this.#loop.close();
  }

  #after(): AfterFault {
    const answer = this.#ask();
    if (typeof answer === "boolean" || "at" in answer) throw new Error("a question was answered by another answer");
    return answer;
  }

  /** Sends what the writer holds and stops this thread until it is answered. */
  #ask(): Answer {
    this.#answer = undefined;
    this.outbox.send(true);
    let answer = this.#answered();
    const until = performance.now() + ANSWER_MILLIS_MAX;
    while (answer === undefined) {
      this.outbox.ring();
      const { rings } = this.#bell;
      this.#bell.sleeps();
      if (this.#read((arrived) => this.#held.push(arrived)) === 0) {
        if (performance.now() > until) throw new Error("the thread that decides does not answer");
        this.#bell.wait(rings, LOOK_MILLIS);
      }
      answer = this.#answered();
    }
    this.#bell.wakes();
    this.#loop.expect();
    if (answer instanceof Error) throw answer;
    if (typeof answer === "object") {
      if (answer.kind === "retry") this.#ready(answer.decision.endpoint);
      else if (answer.kind === "routed") this.#ready(answer.endpoint);
    }
    return answer;
  }

  #answered(): Answer | Error | undefined {
    return this.#answer;
  }

  #take(): number {
    const held = this.#held;
    if (held.length > 0) this.#held = [];
    for (const arrived of held) this.#deliver(arrived);
    return held.length + this.#read((arrived) => this.#deliver(arrived));
  }

  #read(arrived: (one: Arrived) => void): number {
    const from = this.#reader;
    let count = 0;
    while (this.#inbox.read(from.room) !== undefined) {
      count++;
      const kind = from.byte();
      if (kind === REPLY.after) this.#answer = readAfter(from);
      else if (kind === REPLY.placed) this.#answer = readDecision(from, from.text());
      else if (kind === REPLY.leave) this.#answer = from.byte() === 1;
      else if (kind === REPLY.failed) this.#answer = new Error(DEFECT);
      else arrived(this.#arrived(kind === REPLY.decided));
    }
    return count;
  }

  #arrived(isDecided: boolean): Arrived {
    const requestId = this.#reader.text();
    if (!isDecided) return { requestId, decision: undefined, queuedMicros: 0 };
    const queuedMicros = this.#reader.number();
    return { requestId, decision: readDecision(this.#reader, requestId), queuedMicros };
  }

  /** Nobody waits where the client left meanwhile. */
  #deliver({ requestId, decision, queuedMicros }: Arrived): void {
    const waiting = this.#waiting.get(requestId);
    if (waiting === undefined) return;
    this.#waiting.delete(requestId);
    if (decision === undefined) return waiting.failed(new Error(DEFECT));
    if (decision.kind === "routed") this.#ready(decision.endpoint);
    waiting.decided(decision, queuedMicros);
  }
}

const DEFECT = "the thread that decides met a defect";
const NO_WORDS = new Int32Array(0);

function readAfter(from: MessageReader): AfterFault {
  const requestId = from.text();
  const why = from.name();
  // Written from a reason of this program.
  if (why !== "") return { kind: "give-up", why: why as GiveUpReason };
  const decision = readDecision(from, requestId);
  if (decision.kind === "rejected") throw new Error("a retry was rejected");
  return { kind: "retry", decision };
}
