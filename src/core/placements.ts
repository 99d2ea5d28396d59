import type { AdmissionDesk } from "./admission-desk.ts";
import { AwaitedAnswers } from "./awaited-answers.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import { Ledger } from "./endpoint/ledger.ts";
import type { Fleet } from "./fleet.ts";
import { assert } from "./assert.ts";
import { continuedRequest } from "./continued-request.ts";
import type { AttemptFailed, Input, RequestContinued, RequestFinished, RequestMoved } from "./input.ts";
import type { Pending } from "./pending.ts";
import type { PrefixIndex } from "./prefix/prefix-index.ts";
import { RequestTable } from "./request-table.ts";
import type { Micros } from "./units.ts";

/** What becomes of requests after they were decided. */
export type PlacementInput = Extract<
  Input,
  {
    readonly kind:
      | "first-token"
      | "progress"
      | "attempt-failed"
      | "request-moved"
      | "request-finished"
      | "answer-known";
  }
>;

/** Requests in flight, what each is charged where, and which blocks are expected there because of it. */
export class Placements {
  readonly pending = new RequestTable<Pending>();
  readonly #ledger = new Ledger();
  readonly #fleet: Fleet;
  readonly #index: PrefixIndex;
  readonly #answers: AwaitedAnswers;
  readonly #admission: AdmissionDesk;
  /** Inputs naming requests that are not in flight: one that came after the end, or a gap in a trace. */
  strayInputs = 0;

  constructor(fleet: Fleet, index: PrefixIndex, admission: AdmissionDesk) {
    this.#fleet = fleet;
    this.#index = index;
    this.#answers = new AwaitedAnswers(fleet, index);
    this.#admission = admission;
  }

  /** Requests that are charged to some endpoint. */
  get openCharges(): number {
    return this.#ledger.open;
  }

  /** Blocks have another size from now on. */
  forgetAnswers(): void {
    this.#answers.forget();
  }

  follow(input: PlacementInput): void {
    switch (input.kind) {
      case "first-token":
        this.#firstToken(input.at, input.requestId);
        break;
      case "progress":
        this.#progress(input.requestId, input.outputTokens);
        break;
      case "attempt-failed":
        this.#attemptFailed(input);
        break;
      case "request-moved":
        this.#moved(input);
        break;
      case "request-finished":
        this.#finished(input);
        break;
      case "answer-known":
        if (!this.#answers.known(input)) this.strayInputs++;
    }
  }

  /** A decision was made: the request is charged there, and its blocks are expected there. */
  place(at: Micros, pending: Pending, state: EndpointState): void {
    const { request } = pending;
    this.#ledger.charge(request.id, state, {
      sequences: request.sequences,
      promptTokens: request.promptTokens,
      newTokens: Math.max(1, request.promptTokens - state.hitTokens),
    });
    const { blocks, promptTokensExact } = request;
    pending.insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    pending.state = state;
    pending.sentAt = at;
    pending.tried.push(state.id);
    pending.attempts++;
    state.breaker.sent(at);
  }

  #firstToken(at: Micros, requestId: string): void {
    const pending = this.pending.get(requestId);
    if (pending?.state === undefined) {
      this.strayInputs++;
      return;
    }
    if (pending.firstTokenAt !== undefined) return;
    pending.firstTokenAt = at;
    pending.state.firstToken(at, at - pending.sentAt);
    this.#ledger.firstToken(requestId);
    if (pending.insertion !== undefined) this.#index.computed?.(pending.insertion, at);
  }

  #progress(requestId: string, outputTokens: number): void {
    this.#ledger.progress(requestId, outputTokens);
    const pending = this.#admission.counts ? this.pending.get(requestId) : undefined;
    if (pending !== undefined) this.#admission.progress(pending, outputTokens);
  }

  #attemptFailed({ at, requestId, fault }: AttemptFailed): void {
    const pending = this.pending.get(requestId);
    if (pending?.state === undefined) {
      this.strayInputs++;
      return;
    }
    pending.state.attemptFailed(at, fault, pending.sentAt);
    this.#release(pending, at, true);
  }

  /**
   * The attempt broke off behind a part of its answer, with which the request goes on. Endpoints that had failed it before
   * this one made tokens may have it again.
   */
  sever(input: RequestContinued): Pending {
    const { at, requestId, fault, outputTokens } = input;
    const pending = this.pending.get(requestId);
    assert(pending?.state !== undefined, "a request that goes on was under way");
    const begun = pending.firstTokenAt !== undefined;
    if (begun) pending.tried = [pending.state.id];
    pending.state.attemptFailed(at, fault, pending.sentAt);
    this.#release(pending, at, !begun);
    pending.continuedTokens = outputTokens;
    pending.request = continuedRequest(pending.asked, input);
    return pending;
  }

  #moved({ at, requestId, endpoint }: RequestMoved): void {
    const pending = this.pending.get(requestId);
    const state = this.#fleet.get(endpoint);
    if (pending === undefined || state === undefined) {
      this.strayInputs++;
      return;
    }
    if (pending.state === state) return;
    if (pending.state !== undefined) this.#release(pending, at, pending.firstTokenAt === undefined);
    this.#fleet.refresh(at, pending.request);
    this.place(at, pending, state);
  }

  #finished(input: RequestFinished): void {
    const { at, requestId, outcome, outputTokens } = input;
    const pending = this.pending.get(requestId);
    if (pending === undefined) {
      this.strayInputs++;
      return;
    }
    this.pending.delete(requestId);
    this.#admission.ended(pending, input);
    const { state, sentAt, firstTokenAt } = pending;
    if (state === undefined) return;
    const own = outputTokens === undefined ? undefined : outputTokens - pending.continuedTokens;
    state.requestEnded(at, outcome, { sentAt, firstTokenAt, outputTokens: own });
    this.#release(pending, at, outcome !== "ok" && firstTokenAt === undefined);
    this.#answers.finished(input, state, pending.asked.blocks);
  }

  #release(pending: Pending, at: Micros, withdraw: boolean): void {
    this.#ledger.release(pending.request.id);
    if (pending.insertion !== undefined) {
      if (withdraw) this.#index.withdraw(pending.insertion);
      else this.#index.computed?.(pending.insertion, at);
    }
    pending.insertion = undefined;
    pending.state = undefined;
    pending.firstTokenAt = undefined;
  }
}
