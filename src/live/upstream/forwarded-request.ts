import type { RequestPath } from "#core/path/request-path.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import type { AnswerJudge, JudgedRequest } from "../answer/answer-judge.ts";
import type { ClientSide } from "../answer/client-side.ts";
import type { UnreadAnswers } from "../answer/unread-answers.ts";
import type { ServingChecks } from "../beside/serving-checks.ts";
import type { KeepableRequest } from "../answer/stream-keeper.ts";
import type { PrefilledRequest } from "../disaggregation/remote-prefill.ts";
import type { StagePerformers } from "./stage-performer.ts";

/** What forwarded requests share. */
export type ForwardParts = JudgedRequest["shared"] &
  KeepableRequest["shared"] &
  PrefilledRequest["shared"] & {
    /** What clients have yet to read. */
    readonly unread: UnreadAnswers;
    /** Asks engines whether they still serve. */
    readonly serving: ServingChecks;
    readonly openFiles: { met(error: Error): void };
    readonly performers: StagePerformers;
  };

/** A request whose endpoint is decided, as its attempts and their answers need it. */
export interface ForwardedRequest extends ClientSide, JudgedRequest, KeepableRequest, PrefilledRequest {
  readonly shared: ForwardParts;
  readonly life: RequestPath;
  readonly waits: WaitLimits;
  readonly judge: AnswerJudge | undefined;
  model: string;
  prompt: JudgedRequest["prompt"];
}
