import type { PathEvent } from "#core/path/path-event.ts";
import type { PathState } from "#core/path/path-state.ts";
import type { Micros } from "#core/base/units.ts";
import type { CountedPrompt } from "../base/decisive.ts";
import type { Refusal } from "../http/errors.ts";
import type { GatewayLimits } from "../http/limits.ts";
import type { RequestHeaders } from "../http/headers.ts";
import type { Route } from "../http/route.ts";

/** What a client asks for, as those know it who carry its request out. */
export interface ClientRequest {
  readonly requestId: string;
  /** The same, made unique; what the router knows. */
  readonly routeId: string;
  readonly headers: RequestHeaders;
  readonly route: Route;
  /** Path and query as the endpoint gets them. */
  readonly path: string;
  /** As they were when it came: a change of the configuration cuts nothing that is under way. */
  readonly limits: GatewayLimits;
  readonly arrivedAt: Micros;
  /** Until when its client waits; Infinity where it stated nothing. */
  readonly deadlineAt: Micros;
  readonly model: string;
  readonly stream: boolean;
  /** As the router knows its length. */
  readonly prompt: CountedPrompt;
}

/** Where a request is in its life, and what moves it on. */
export interface RequestLife {
  readonly state: PathState;
  /** The client left, or the answer is complete. */
  readonly over: boolean;
  dispatch(event: PathEvent): void;
  /** Answers with an error of the gateway's own and ends it. */
  refuse(refused: Refusal): void;
  /** A defect of ours met it; the process and all other requests go on. */
  bug(error: unknown): void;
}
