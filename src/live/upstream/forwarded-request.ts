import type { Fault } from "#core/endpoint/fault.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { RequestPath } from "#core/path/request-path.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";
import type { AnswerJudge, JudgedRequest } from "../answer/answer-judge.ts";
import type { AnswerChooser } from "../answer/choose-answer.ts";
import type { ClientSide } from "../answer/client-side.ts";
import type { UnreadAnswers } from "../answer/unread-answers.ts";
import type { ServingChecks } from "../beside/serving-checks.ts";
import type { KeepableRequest } from "../answer/stream-keeper.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { Refusal } from "../http/errors.ts";
import type { ClientRequest, RequestLife } from "../request/client-request.ts";
import type { AttemptShared } from "./connection/attempt.ts";
import type { WatchedEndpoints } from "./connection/attempt-signs.ts";
import type { StagePerformers } from "./stage-performer.ts";

/** What forwarded requests share. */
export type ForwardShared = JudgedRequest["shared"] &
  KeepableRequest["shared"] &
  AttemptShared &
  WatchedEndpoints & {
    readonly directory: Pick<EndpointDirectory, "get">;
    /** What clients have yet to read. */
    readonly unread: UnreadAnswers;
    /** Asks engines whether they still serve. */
    readonly serving: ServingChecks;
    readonly openFiles: { met(error: Error): void };
    readonly performers: StagePerformers;
    readonly answerOf: AnswerChooser;
    /** What the client gets when no endpoint could serve, and no endpoint's own error can be passed on. */
    readonly refusalOf: (fault: Fault) => Refusal;
  };

/** A request whose endpoint is decided, as its attempts and their answers need it. */
export interface ForwardedRequest extends ClientSide, JudgedRequest, KeepableRequest, ClientRequest, RequestLife {
  readonly shared: ForwardShared;
  readonly life: RequestPath;
  readonly waits: WaitLimits;
  readonly router: PathRouter;
  readonly judge: AnswerJudge | undefined;
  model: string;
  prompt: JudgedRequest["prompt"];
}
