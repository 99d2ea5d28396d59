import type { Placed, Routed } from "../input/decision.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { CascadeDesk } from "./cascade-desk.ts";
import type { AnswerJudged, Judged, KeptReason, RequestEscalated } from "../request/cascade-input.ts";
import type { CascadeStep } from "./cascade-spec.ts";

/** What a host brings: the way into the router, and the clock. */
export interface CascadeHost {
  now(): Micros;
  judged(input: AnswerJudged): void;
  escalated(input: RequestEscalated): Placed;
}

/** An answer that can be judged, and the request as the next model would get it. */
export interface JudgedAnswer extends Judged {
  readonly step: CascadeStep;
  /** Its request left its first model before. */
  readonly escalated: boolean;
  readonly next: RouteRequest;
}

export type AfterAnswer =
  | { readonly kind: "keep"; readonly why: KeptReason }
  | { readonly kind: "escalate"; readonly decision: Routed };

/**
 * What becomes of an answer of which its client has nothing: it is kept, or the next model is asked. Where that one has
 * no endpoint it is kept too; the router does not count it at its engine any more then.
 */
export function afterAnswer(host: CascadeHost, desk: CascadeDesk, answer: JudgedAnswer): AfterAnswer {
  const { requestId, meanLogprob, tokens, step, escalated, next } = answer;
  const judged = { requestId, meanLogprob, tokens };
  const kept = desk.keeps(step, meanLogprob, tokens);
  if (kept !== undefined) return keep(host, judged, kept);
  const decision = host.escalated({ kind: "request-escalated", at: host.now(), ...judged, request: next });
  if (decision.kind === "rejected") return keep(host, judged, "no-endpoint");
  if (!escalated) desk.began();
  return { kind: "escalate", decision };
}

/** Keeps an answer and informs the router. */
export function keep(host: Pick<CascadeHost, "now" | "judged">, judged: Judged, why: KeptReason): AfterAnswer {
  host.judged({ kind: "answer-judged", at: host.now(), ...judged, kept: why });
  return { kind: "keep", why };
}
