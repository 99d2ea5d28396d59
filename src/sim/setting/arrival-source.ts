import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import type { EnginePrompt } from "#engine/further-answer.ts";

/** A request with the ground truth that no policy may read. */
export interface SimulatedRequest {
  /** What the router sees; its id is unique among the requests in flight. */
  readonly route: RouteRequest;
  readonly arrivalAt: Micros;
  /** Tokens that the answer will have, at least 1. */
  readonly outputTokens: number;
  /** When the client gives up; Infinity for never. */
  readonly deadlineAt: Micros;
  /** Chained hashes of the prompt's and, as far as they are known, the answer's full blocks, two words each. */
  engineHashes(blockTokens: number): Int32Array;
  /** Its prompts behind the first, where it may have several. */
  furtherPrompts?(blockTokens: number): readonly EnginePrompt[];
  /**
   * Blocks that the answer filled behind the prompt's, at the router's block size, where the gateway gets to know the
   * answer's tokens; undefined where it does not or there are none.
   */
  answerHashes?(): Int32Array | undefined;
}

/** Where requests come from, in order of time. */
export interface ArrivalSource {
  /** Time of the next arrival as far as it is known; Infinity while nothing is due until something ends, or ever. */
  nextAt(): Micros;
  /** The request that is due at `nextAt()`. */
  take(): SimulatedRequest;
  /** The client has the end of the answer, or of the wait for one. */
  ended(request: SimulatedRequest, at: Micros): void;
  /** Requests that were read and can no longer come, as the turn that they wait for never ended. */
  readonly stranded: number;
}
