import type { Routed } from "#core/input/decision.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { TokenTexts } from "../beside/token-texts.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { AttemptSubject } from "../log/attempt-events.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import type { SentContent } from "../request/engine-body.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt } from "../tokenizer/text/tokenizer.ts";
import type { Answer, AnswerHead, Delivery, EventReader, TokenReader } from "./answer.ts";
import type { Usage } from "./answer-json.ts";
import type { AnswerReader, AnswerReport } from "./answer-reader.ts";
import type { AnswersIndexed } from "./choose-reader.ts";

/** A request whose stream may be kept. */
export interface KeepableRequest extends ClientRequest, RequestLife {
  keeper: StreamKeeper | undefined;
  readonly router: PathRouter;
  readonly answerReader: AnswerReader | undefined;
  readonly shared: {
    readonly counters: GatewayCounters;
    readonly observe: RequestObserver;
    readonly directory: Pick<EndpointDirectory, "get" | "all">;
    readonly answersIndexed: AnswersIndexed;
    readonly tokenTexts: TokenTexts;
  };
}

/** Its attempts, of which the next one gets another content. */
export interface KeptAttempts extends AttemptSubject {
  /** As the first endpoint got it. */
  readonly firstBody: Buffer;
  /** What is sent next. */
  content: SentContent;
  continueAt(routed: Routed): void;
}

/** Begins to keep a request's stream, if it does: its `keeper`. Returns what the engine gets beside the client's fields. */
export type KeepStream = (
  exchange: KeepableRequest,
  parsed: ParsedRequest,
  prompt: TokenizedPrompt,
) => object | undefined;

/** A stage that keeps of a stream what it needs to go on elsewhere where it breaks, or why it could not. */
export interface StreamKeeper {
  /** What reads the tokens of its events, or what reads them whole: one of both, or none. */
  readonly tokens: TokenReader | undefined;
  readonly events: EventReader | undefined;
  /** Why it could not go on where it is; undefined where it could. */
  readonly unfit: string | undefined;
  /** Output tokens that went before the endpoint at hand. */
  readonly continuedTokens: number;
  /** Undefined where it never goes on. */
  stage(attempts: KeptAttempts): PathStage | undefined;
  /** Carries what the endpoint answers at which it goes on; undefined where such a head is of no use. */
  goesOn(delivery: Delivery, head: AnswerHead): Answer | undefined;
  /** What it lacks where its model has ended, with so many tokens of this endpoint; undefined where that has not. */
  missing(tokensSeen: number): string | undefined;
  /** What the end of its request reports of the answer; undefined where that is not known here. */
  report(usage: Usage | undefined): AnswerReport | undefined;
  /** For the counts: it does not go on, for this or for why it is unfit. */
  cut(why?: string): void;
  /** Another endpoint answers anew. */
  reset(): void;
  /** Its request is over. */
  close(): void;
}
