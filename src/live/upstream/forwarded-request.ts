import type { RequestPath } from "#core/path/request-path.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import type { AnswerJudge, JudgedRequest } from "../answer/answer-judge.ts";
import type { AnswerReader } from "../answer/answer-reader.ts";
import type { ClientSide } from "../answer/client-side.ts";
import type { UnreadAnswers } from "../answer/unread-answers.ts";
import type { ServingChecks } from "../beside/serving-checks.ts";
import type { StreamKeeping } from "../continuation/keep-stream.ts";
import type { ContinuedRequest } from "../continuation/stream-continuation.ts";
import type { PrefilledRequest } from "../disaggregation/remote-prefill.ts";
import type { StagePerformers } from "./stage-performer.ts";

/** What forwarded requests share. */
export type ForwardParts = JudgedRequest["shared"] &
  ContinuedRequest["shared"] &
  PrefilledRequest["shared"] & {
    /** What clients have yet to read. */
    readonly unread: UnreadAnswers;
    /** Asks engines whether they still serve. */
    readonly serving: ServingChecks;
    readonly openFiles: { met(error: Error): void };
    readonly performers: StagePerformers;
  };

/** A request whose endpoint is decided, as its attempts and their answers need it. */
export interface ForwardedRequest extends ClientSide, StreamKeeping, JudgedRequest, ContinuedRequest, PrefilledRequest {
  readonly shared: ForwardParts;
  readonly life: RequestPath;
  readonly waits: WaitLimits;
  /** Where the answer's tokens can be found out and continue the prompt's blocks. */
  readonly answerReader: AnswerReader | undefined;
  readonly judge: AnswerJudge | undefined;
  model: string;
  prompt: JudgedRequest["prompt"];
}
