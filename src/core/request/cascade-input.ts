import type { RouteRequest } from "./request.ts";
import type { Micros } from "../base/units.ts";
import type { StepsOf } from "./stage-step.ts";

export type CascadeInput = RequestEscalated | AnswerJudged;

/**
 * Why an answer is kept. sure: its mean is at the threshold or above. full: as many escalations are under way as may be.
 * held-bytes: there was no room to hold it until it could be judged. unread: the engine sent no log-probabilities.
 * no-endpoint: nobody takes the request at the next model.
 */
export type KeptReason = "sure" | "full" | "held-bytes" | "unread" | "no-endpoint";
export const KEPT_REASONS: readonly KeptReason[] = ["sure", "full", "held-bytes", "unread", "no-endpoint"];

/** What an answer's tokens are worth. */
export interface Judged {
  readonly requestId: string;
  /** Mean of the natural logarithms of the tokens' probabilities, at most 0; 0 where none was read. */
  readonly meanLogprob: number;
  /** Tokens that it is the mean of. */
  readonly tokens: number;
}

/** A cascade keeps an answer, and the client gets it. */
export interface AnswerJudged extends Judged {
  readonly kind: "answer-judged";
  readonly at: Micros;
  readonly kept: KeptReason;
}

/**
 * A cascade gives an answer up of which its client has nothing, and asks another model. The charge at the endpoint is
 * released and its blocks stay, as it computed them.
 */
export interface RequestEscalated extends Judged {
  readonly kind: "request-escalated";
  readonly at: Micros;
  /** As the other model gets it: its name, and the prompt in its tokens and blocks. The id is the same. */
  readonly request: RouteRequest;
}

export const CASCADE_STEPS: StepsOf<CascadeInput> = {
  // What both models did lies in its times; a request to one model cannot stand for it.
  "request-escalated": ({ request, tokens }) => ({
    kind: "asked-anew",
    request,
    tokens,
    leftOut: "a cascade took it to another model",
  }),
  "answer-judged": () => ({ kind: "unmoved" }),
};
