import type { AdmissionController } from "../admission-controller.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import { newTokens } from "../endpoint/gauge.ts";
import { Ledger } from "../endpoint/ledger.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { assert } from "../base/assert.ts";
import type { AskedAnew, Settled, WentOn } from "../request/stage-step.ts";
import { type StageAsking, type StageInput, stepOf } from "../request/stage-inputs.ts";
import { behindAnswer } from "../request/behind-answer.ts";
import type { PrefillFailed, TransferFailed } from "../request/prefill-input.ts";
import type { AttemptFailedInput, Input, RequestFinished, RequestMoved, RequestRetried } from "../input/input.ts";
import { mayHaveStandby, type Pending, triedIfItFails } from "../pending.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";
import { seenTpotMicros } from "../latency/latency-model.ts";
import { RequestTable } from "../base/request-table.ts";
import type { Micros } from "../base/units.ts";
import { AwaitedAnswers } from "./awaited-answers.ts";
import { PrefillCharges, type PrefillPlace } from "./prefill-charges.ts";
import { StandbyCharges } from "./standby-charges.ts";

/** What becomes of requests after they were decided. */
export type PlacementInput =
  | Extract<
      Input,
      {
        readonly kind:
          | "first-token"
          | "prefill-finished"
          | "prefill-failed"
          | "transfer-failed"
          | "progress"
          | "attempt-failed"
          | "request-moved"
          | "request-finished"
          | "answer-known";
      }
    >
  | Exclude<StageInput, StageAsking>;

/** Requests in flight, what each is charged where, and which blocks are expected there because of it. */
export class Placements {
  readonly pending = new RequestTable<Pending>();
  readonly #ledger = new Ledger();
  readonly #prefills: PrefillCharges;
  readonly #standbys: StandbyCharges;
  readonly #fleet: Fleet;
  readonly #index: PrefixIndex;
  readonly #answers: AwaitedAnswers;
  readonly #admission: AdmissionController;
  /** Inputs naming requests that are not in flight: one that came after the end, or a gap in a trace. */
  strayInputs = 0;

  constructor(fleet: Fleet, index: PrefixIndex, admission: AdmissionController) {
    this.#fleet = fleet;
    this.#index = index;
    this.#prefills = new PrefillCharges(index);
    this.#standbys = new StandbyCharges(index, this.#ledger);
    this.#answers = new AwaitedAnswers(fleet, index);
    this.#admission = admission;
  }

  /** Charges at endpoints: one of each request that is sent, and one more where a second endpoint has a part in it. */
  get openCharges(): number {
    return this.#ledger.open + this.#prefills.open + this.#standbys.open;
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
      case "prefill-finished":
        this.#prefillFinished(input.at, input.requestId);
        break;
      case "prefill-failed":
        this.#prefillFailed(input);
        break;
      case "transfer-failed":
        this.#transferFailed(input);
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
        break;
      default:
        this.#ofStage(input);
    }
  }

  /**
   * A decision was made: the request is charged there, and its blocks are expected there. Where another endpoint computes
   * the prompt, that one is charged the prompt's tokens, and this one the last of them, which it computes anew. A request
   * that an endpoint has already is charged at both.
   */
  place(at: Micros, pending: Pending, state: EndpointState, prefill?: PrefillPlace): void {
    if (pending.state !== undefined) return this.#standbys.place(at, pending, state);
    const { request } = pending;
    this.#ledger.charge(request.id, state, {
      sequences: request.sequences,
      promptTokens: request.promptTokens,
      newTokens: prefill === undefined ? newTokens(state, request.promptTokens) : 1,
    });
    if (prefill !== undefined) this.#prefills.place(at, pending, prefill);
    const { blocks, promptTokensExact } = request;
    pending.insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    pending.state = state;
    state.placed++;
    pending.sentAt = at;
    // An array that is pushed to has room for 16 more.
    if (pending.tried.length === 0) pending.tried = [state.id];
    else pending.tried.push(state.id);
    pending.attempts++;
    if (prefill?.isFirst !== true) state.breaker.sent(at);
  }

  #prefillFinished(at: Micros, requestId: string): void {
    const pending = this.pending.get(requestId);
    if (pending?.state === undefined) {
      this.strayInputs++;
      return;
    }
    // Where both phases run side by side, the answer may begin before the other endpoint reports.
    if (pending.firstTokenAt !== undefined) return;
    const ahead = pending.prefill?.isFirst === true;
    if (!this.#prefills.finished(at, pending)) this.strayInputs++;
    else if (ahead) {
      pending.sentAt = at;
      pending.state.breaker.sent(at);
    }
  }

  #prefillFailed({ at, requestId, fault }: PrefillFailed): void {
    const pending = this.pending.get(requestId);
    if (pending?.state === undefined || pending.prefill === undefined) {
      this.strayInputs++;
      return;
    }
    if (!pending.prefill.isFirst) pending.state.breaker.undecided(pending.sentAt);
    pending.tried = [...triedIfItFails(pending)];
    this.#prefills.failed(at, pending, fault);
    this.#release(pending, at, true);
  }

  #transferFailed({ at, requestId }: TransferFailed): void {
    const pending = this.pending.get(requestId);
    const state = pending?.state;
    if (pending === undefined || state === undefined) {
      this.strayInputs++;
      return;
    }
    state.breaker.undecided(pending.sentAt);
    pending.tried = pending.tried.filter((id) => id !== state.id);
    pending.transferFailed = true;
    this.#release(pending, at, true);
  }

  #firstToken(at: Micros, requestId: string): void {
    const pending = this.pending.get(requestId);
    if (pending?.state === undefined) {
      this.strayInputs++;
      return;
    }
    if (pending.firstTokenAt !== undefined) return;
    if (pending.prefill !== undefined) this.#prefills.finished(at, pending);
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

  #attemptFailed({ at, requestId, fault }: AttemptFailedInput): void {
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
  #wentOn(at: Micros, requestId: string, step: WentOn): Pending {
    const { fault, outputTokens } = step;
    const pending = this.pending.get(requestId);
    assert(pending?.state !== undefined, "a request that goes on was under way");
    const begun = pending.firstTokenAt !== undefined;
    // Where its endpoint left, who has that name now is another one.
    if (begun) pending.tried = this.#fleet.get(pending.state.id) === pending.state ? [pending.state.id] : [];
    pending.state.attemptFailed(at, fault, pending.sentAt);
    this.#release(pending, at, !begun);
    pending.continuedTokens = outputTokens;
    pending.request = behindAnswer(pending.asked, step);
    return pending;
  }

  /** An endpoint that was lost or hung is back: whoever left it, or is still with the one that was lost, may go there. */
  returned(endpoint: EndpointId): void {
    const state = this.#fleet.get(endpoint);
    for (const pending of this.pending.values()) {
      const isThere = pending.state === state || pending.prefill?.state === state || pending.standby?.state === state;
      if (!isThere && pending.tried.includes(endpoint)) pending.tried = pending.tried.filter((id) => id !== endpoint);
    }
  }

  /** One that is to be sent again. */
  retried({ requestId }: RequestRetried): Pending {
    const pending = this.pending.get(requestId);
    assert(pending !== undefined, "a retried request is in flight");
    assert(pending.state === undefined, "a request is retried after its attempt failed");
    return pending;
  }

  /** One about which a stage asks: another endpoint is to have it too, to make another answer, or to go on. */
  ofStage(input: StageAsking): Pending {
    const pending = this.pending.get(input.requestId);
    const step = stepOf(input);
    if (step.kind === "asked-anew") return this.#anew(input.at, input.requestId, step);
    if (step.kind === "went-on") return this.#wentOn(input.at, input.requestId, step);
    assert(
      pending !== undefined && mayHaveStandby(pending),
      "a request for which another endpoint stands by waits at one endpoint",
    );
    return pending;
  }

  /** The answer is given up; the engine did its work. */
  #anew(at: Micros, requestId: string, { request, tokens }: AskedAnew): Pending {
    const before = this.pending.get(requestId);
    assert(before?.state !== undefined, "a request that is asked anew was under way");
    const { sentAt, firstTokenAt } = before;
    const tpotMicros = seenTpotMicros(firstTokenAt, at, tokens, before.request.sequences);
    before.state.requestEnded(at, "ok", { sentAt, firstTokenAt, tpotMicros });
    this.#release(before, at, false);
    const pending = { ...before, request, asked: request, tried: [], continuedTokens: 0, transferFailed: false };
    this.pending.set(requestId, pending);
    return pending;
  }

  #ofStage(input: Exclude<StageInput, StageAsking>): void {
    const step = stepOf(input);
    if (step.kind === "settled") this.#settled(input.at, input.requestId, step);
  }

  #settled(at: Micros, requestId: string, step: Settled): void {
    const pending = this.pending.get(requestId);
    if (pending === undefined || !this.#standbys.settled(at, pending, step)) this.strayInputs++;
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
    const { at, requestId, outcome, outputTokens, answerHashes, answerFollows } = input;
    const pending = this.pending.take(requestId);
    if (pending === undefined) {
      this.strayInputs++;
      return;
    }
    if (pending.permit !== undefined || pending.waiting !== undefined) this.#admission.ended(pending, input);
    const { state, sentAt, firstTokenAt } = pending;
    if (state === undefined) return;
    const own = outputTokens === undefined ? undefined : outputTokens - pending.continuedTokens;
    if (pending.prefill?.isFirst === true) this.#prefills.ended(at, pending, outcome);
    else {
      const tpotMicros = seenTpotMicros(firstTokenAt, at, own, pending.request.sequences);
      state.requestEnded(at, outcome, { sentAt, firstTokenAt, tpotMicros });
    }
    this.#release(pending, at, outcome !== "ok" && firstTokenAt === undefined);
    if (answerHashes !== undefined || answerFollows === true)
      this.#answers.finished(input, state, pending.asked.blocks);
  }

  #release(pending: Pending, at: Micros, withdraw: boolean): void {
    this.#ledger.release(pending.request.id);
    if (pending.prefill !== undefined) this.#prefills.release(at, pending, withdraw);
    if (pending.standby !== undefined) this.#standbys.drop(at, pending);
    if (pending.insertion !== undefined) {
      if (withdraw) this.#index.withdraw(pending.insertion);
      else this.#index.computed?.(pending.insertion, at);
    }
    pending.insertion = undefined;
    pending.state = undefined;
    pending.firstTokenAt = undefined;
  }
}
