import type { Routed } from "#core/input/decision.ts";
import type { PathStage } from "#core/path/stage.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import type { Asker } from "../base/loop-turn.ts";
import type { Route } from "../http/route.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import type { SentContent } from "../request/engine-body.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";

/** A request as the judge of its answers needs it, which may put another model in its place. */
export interface JudgedRequest extends Asker, RequestLife, Pick<ClientRequest, "routeId" | "path" | "stream"> {
  readonly shared: { readonly tokenizer: (model: string) => Tokenizer };
  model: string;
  prompt: ClientRequest["prompt"];
  /** Once the engine has reported its own count of the prompt, the tokenizer gets it. */
  expectCount(tokenizer: Tokenizer, tokenized: TokenizedPrompt): void;
}

/** Its attempts, of which the next one may be another request. */
export interface JudgedAttempts {
  /** What is sent next. */
  content: SentContent;
  continueAt(routed: Routed, begun: boolean): void;
}

/** What an answer itself has to ask of its judge. */
export interface AnswerJudgeReading {
  /** Reads an event; returns the place of what the client is to get null for. */
  readEvent(bytes: Buffer, start: number, end: number): readonly [number, number] | undefined;
  /** Reads an answer in one piece, and returns it as the client gets it. */
  readWhole(body: Buffer): Buffer;
}

/** A stage that reads the answers of its request, and holds them back until it decides whether the client gets them. */
export interface AnswerJudge extends AnswerJudgeReading {
  readonly stage: PathStage;
  /** The answer under way is held until it is judged. */
  readonly judging: boolean;
  /** It can be judged: enough of the answer is there, or as much as there is room for. */
  readonly isReady: boolean;
  /** When the client might have its answer; undefined while that is judged. */
  readonly decidedAt: Micros | undefined;
  /** What the engine gets beside the client's fields. */
  readonly fields: object | undefined;
  /** The router is about to decide on it; `hidesUsage`: the gateway asks for the counts of the stream. */
  arrives(request: RouteRequest, hidesUsage: boolean): void;
  /** An attempt begins. */
  reset(): void;
  /** No more of the answer can be held: it passes. */
  holdFull(exchange: JudgedRequest): void;
  /**
   * Judges what is there of an answer. True where the one who asks is to leave it alone: another model was asked, or that
   * is not known yet, and `goOn` is called if it is kept after all.
   */
  judge(exchange: JudgedRequest, attempts: JudgedAttempts, goOn?: () => void): boolean;
  /** It is over. */
  close(): void;
}

/** A request whose answers may be judged. */
export interface JudgeAsker {
  readonly route: Route;
  /** Somebody else writes the answer, and would not hold it back. */
  readonly answeredElsewhere?: true;
  judge?: AnswerJudge | undefined;
}

/** What judges the answers of those requests that ask for a name of its own in place of a model. */
export interface AnswerJudges {
  readonly names: readonly string[];
  /** Gives a request its judge; returns the model that it goes to, undefined where `name` is none of these. */
  begin(asking: JudgeAsker, name: string, parsed: ParsedRequest, body: Buffer): string | undefined;
}
