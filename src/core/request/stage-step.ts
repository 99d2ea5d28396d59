import type { Fault } from "../endpoint/fault.ts";
import type { RouteRequest } from "./request.ts";

/** Which of two endpoints answers a request that both have: the one that had it first, or the one that stood by. */
export type StandbyWinner = "first" | "second";

/** What an input of a stage means for where its request is, for whoever follows requests and knows no stage. */
export type StageStep = StoodBy | Settled | AskedAnew | WentOn | Unmoved;

/** The endpoint of its decision has the request too, while nothing of an answer came. */
export interface StoodBy {
  readonly kind: "stood-by";
}

/** One of both has the request from now on; `fault` is what the other one failed by, if it did. */
export interface Settled {
  readonly kind: "settled";
  readonly winner: StandbyWinner;
  readonly fault: Fault | undefined;
}

/** An answer of which the client has nothing is given up, and the endpoint of its decision is asked for this. */
export interface AskedAnew {
  readonly kind: "asked-anew";
  readonly request: RouteRequest;
  /** Output tokens of what is given up. */
  readonly tokens: number;
  /** Why nobody can simulate such a request. */
  readonly leftOut: string;
}

/** Its answer broke behind a part that its client has, and the endpoint of its decision goes on behind that. */
export interface WentOn {
  readonly kind: "went-on";
  /** What the endpoint failed by that had it. */
  readonly fault: Fault;
  /** Output tokens before, which are prompt there, and the blocks that they fill behind the prompt's, where known. */
  readonly outputTokens: number;
  readonly answerHashes: Int32Array | undefined;
}

export interface Unmoved {
  readonly kind: "unmoved";
}

/** The step of each input of a stage. */
export type StepsOf<I extends { readonly kind: string }> = {
  readonly [K in I["kind"]]: (input: Extract<I, { readonly kind: K }>) => StageStep;
};
