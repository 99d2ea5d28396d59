import type { Decision, Routed } from "../input/decision.ts";
import type { BreakerChange } from "../endpoint/breaker.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import { newTokens } from "../endpoint/gauge.ts";
import { behindAnswer } from "../request/behind-answer.ts";
import type { PrefillFinished } from "../request/prefill-input.ts";
import type { AskedAnew, StandbyWinner, WentOn } from "../request/stage-step.ts";
import { isStageInput, type StageInput, stepOf } from "../request/stage-inputs.ts";
import type { AnswerKnown, Input, RequestFinished, RequestMoved } from "../input/input.ts";
import { notedToPeers } from "../request/noted.ts";
import { type BlockChain, continued, EMPTY_CHAIN } from "../prompt/block-chain.ts";
import { RecentRequests, RequestTable } from "../base/request-table.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { PeerCharged, PeerNews } from "../request/peer-news.ts";

/** Ended requests whose answers are awaited, as in the router. */
const AWAITED_MAX = 1_024;

/** An own request between its first charge and its end. */
interface Sent {
  readonly number: number;
  readonly request: RouteRequest;
  /** Output tokens that endpoints before made, behind which it goes on. */
  continuedTokens: number;
  /** Its current attempt; undefined between attempts. */
  charged: PeerCharged | undefined;
  sentAt: Micros;
  firstTokenAt: Micros | undefined;
  outputTokens: number;
  /** A second endpoint that has it too; others get to know of it where it answers. */
  standby?: Routed;
}

/** What a router's inputs and decisions are to the others that send requests to the same endpoints. */
export class OwnNews {
  readonly #requests = new RequestTable<Sent>();
  /** The same by number, in order. */
  readonly #open = new Map<number, Sent>();
  readonly #awaited = new RecentRequests<{ readonly endpoint: EndpointId; readonly blocks: BlockChain }>(AWAITED_MAX);
  #numbered = 0;
  #news: PeerNews[] = [];

  /** News since they were last taken. */
  get size(): number {
    return this.#news.length;
  }

  take(): readonly PeerNews[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /** All that is in flight, without prompts. */
  snapshot(): PeerCharged[] {
    const charges: PeerCharged[] = [];
    for (const { charged, firstTokenAt, outputTokens } of this.#open.values()) {
      if (charged !== undefined) charges.push(firstTokenAt === undefined ? charged : { ...charged, outputTokens });
    }
    return charges;
  }

  /** An input that the router accepted, with its decision. */
  follow(input: Input, decision: Decision | undefined): void {
    const { kind } = input;
    if (kind === "request-arrived") {
      if (decision?.kind === "routed") this.#charge(input.at, this.#arrived(input.at, input.request), decision);
      else if (decision?.kind === "queued") this.#arrived(input.at, input.request);
    } else if (kind === "request-retried" || kind === "request-released") {
      const sent = this.#requests.get(input.requestId);
      if (sent !== undefined && decision?.kind === "routed") this.#charge(input.at, sent, decision);
    } else if (kind === "prefill-failed" || kind === "transfer-failed") this.#phaseFailed(input.requestId);
    else if (kind === "prefill-finished") this.#prefilled(input);
    else if (kind === "request-moved") this.#moved(input);
    else if (kind === "first-token" || kind === "progress" || kind === "attempt-failed") this.#went(input);
    else if (kind === "request-finished") this.#finished(input);
    else if (kind === "answer-known") this.#answer(input);
    else if (isStageInput(input)) this.#ofStage(input, decision);
  }

  /** An own breaker opened or closed. */
  breaker(endpoint: EndpointId, change: BreakerChange): void {
    const pauseMicros = change.state === "open" ? change.pauseMicros : 0;
    this.#news.push({ kind: "breaker", endpoint, state: change.state, pauseMicros });
  }

  #arrived(at: Micros, request: RouteRequest): Sent {
    const rest = { continuedTokens: 0, charged: undefined, sentAt: at, firstTokenAt: undefined, outputTokens: 0 };
    const sent: Sent = { number: ++this.#numbered, request, ...rest };
    this.#requests.set(request.id, sent);
    return sent;
  }

  #ofStage(input: StageInput, decision: Decision | undefined): void {
    const { at, requestId } = input;
    const sent = this.#requests.get(requestId);
    if (sent === undefined) return;
    const step = stepOf(input);
    if (step.kind === "settled") this.#settled(sent, step.winner);
    else if (step.kind === "asked-anew") this.#anew(at, sent, step, decision);
    else if (step.kind === "went-on") this.#wentOn(at, sent, step, decision);
    else if (step.kind === "stood-by" && decision?.kind === "routed") sent.standby = decision;
  }

  #anew(at: Micros, before: Sent, { request }: AskedAnew, decision: Decision | undefined): void {
    this.#failed(before);
    const sent = { ...before, request, continuedTokens: 0 };
    this.#requests.set(before.request.id, sent);
    if (decision?.kind === "routed") this.#charge(at, sent, decision);
  }

  #wentOn(at: Micros, sent: Sent, step: WentOn, decision: Decision | undefined): void {
    this.#failed(sent);
    sent.continuedTokens = step.outputTokens;
    if (decision?.kind === "routed") this.#charge(at, sent, decision, behindAnswer(sent.request, step));
  }

  #moved({ at, requestId, endpoint }: RequestMoved): void {
    const sent = this.#requests.get(requestId);
    const charged = sent?.charged;
    if (sent === undefined || charged === undefined || charged.endpoint === endpoint) return;
    this.#failed(sent);
    sent.charged = { ...charged, endpoint };
    sent.sentAt = at;
    this.#news.push({ ...sent.charged, blocks: sent.request.blocks });
  }

  #settled(sent: Sent, winner: StandbyWinner): void {
    const { standby } = sent;
    if (standby === undefined) return;
    delete sent.standby;
    if (winner === "first") return;
    this.#failed(sent);
    this.#charge(standby.at, sent, standby);
  }

  #failed(sent: Sent): void {
    if (sent.charged === undefined) return;
    sent.charged = undefined;
    sent.firstTokenAt = undefined;
    sent.outputTokens = 0;
    this.#news.push({ kind: "failed", request: sent.number });
  }

  #phaseFailed(requestId: string): void {
    const sent = this.#requests.get(requestId);
    if (sent !== undefined) this.#failed(sent);
  }

  #charge(at: Micros, sent: Sent, decision: Routed, asSent: RouteRequest = sent.request): void {
    const { attempt, endpoint, profile, reason } = decision;
    const { model, tenant, user, outputTokensMax, session, sequences, promptTokens, promptTokensExact, blocks } =
      asSent;
    const { prefill } = decision;
    const noted = notedToPeers(decision);
    const prefillNoted = prefill && notedToPeers(prefill);
    const added = prefill === undefined ? newTokens(decision, promptTokens) : 1;
    const shared = prefill && {
      prefill: {
        endpoint: prefill.endpoint,
        newTokens: newTokens(prefill, promptTokens),
        ...(prefillNoted && { noted: prefillNoted }),
      },
    };
    const what = { request: sent.number, attempt, endpoint, profile, reason, model, tenant, session };
    const charged = {
      kind: "charged",
      ...what,
      sequences,
      promptTokens,
      promptTokensExact,
      newTokens: added,
      blocks,
      ...(user !== undefined && { user }),
      ...(outputTokensMax !== undefined && { outputTokensMax }),
      ...shared,
      ...(noted && { noted }),
    } as const;
    sent.charged = { ...charged, blocks: EMPTY_CHAIN };
    sent.sentAt = at;
    this.#open.set(sent.number, sent);
    this.#news.push(charged);
  }

  /** The prompt is computed; in what is charged now, no other endpoint is. */
  #prefilled({ at, requestId }: PrefillFinished): void {
    const sent = this.#requests.get(requestId);
    if (sent?.charged?.prefill === undefined || sent.firstTokenAt !== undefined) return;
    const { prefill: _done, ...charged } = sent.charged;
    sent.charged = charged;
    this.#news.push({ kind: "prefilled", request: sent.number, prefillMicros: at - sent.sentAt });
    sent.sentAt = at;
  }

  #went(input: Extract<Input, { readonly kind: "first-token" | "progress" | "attempt-failed" }>): void {
    const sent = this.#requests.get(input.requestId);
    if (sent?.charged === undefined) return;
    const { number: request } = sent;
    if (input.kind === "attempt-failed") this.#failed(sent);
    else if (input.kind === "progress") {
      if (sent.firstTokenAt === undefined || input.outputTokens <= sent.outputTokens) return;
      sent.outputTokens = input.outputTokens;
      this.#news.push({ kind: "progress", request, outputTokens: input.outputTokens });
    } else if (sent.firstTokenAt === undefined) {
      sent.firstTokenAt = input.at;
      sent.outputTokens = 1;
      this.#news.push({ kind: "first-token", request, ttftMicros: input.at - sent.sentAt });
    }
  }

  #finished(input: RequestFinished): void {
    const { at, requestId, outcome, promptTokens, outputTokens, answerHashes, answerFollows } = input;
    const sent = this.#requests.get(requestId);
    if (sent === undefined) return;
    this.#requests.delete(requestId);
    // One that only waited was sent nowhere.
    if (!this.#open.delete(sent.number)) return;
    const { charged, firstTokenAt, request } = sent;
    const decodeMicros = firstTokenAt === undefined ? undefined : at - firstTokenAt;
    const own = outputTokens === undefined ? undefined : outputTokens - sent.continuedTokens;
    const counts = { promptTokens, outputTokens: own, decodeMicros };
    this.#news.push({ kind: "released", request: sent.number, outcome, ...counts });
    if (charged === undefined) return;
    const ended = { endpoint: charged.endpoint, blocks: request.blocks };
    if (answerFollows === true) this.#awaited.set(requestId, ended);
    else this.#held(ended.endpoint, ended.blocks, answerHashes);
  }

  #answer({ requestId, answerHashes }: AnswerKnown): void {
    const ended = this.#awaited.get(requestId);
    if (ended === undefined) return;
    this.#awaited.delete(requestId);
    this.#held(ended.endpoint, ended.blocks, answerHashes);
  }

  #held(endpoint: EndpointId, prompt: BlockChain, answerHashes: Int32Array | undefined): void {
    if (answerHashes === undefined) return;
    this.#news.push({ kind: "held", endpoint, session: undefined, blocks: continued(prompt, answerHashes) });
  }
}
