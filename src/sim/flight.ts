import type { RouteRequest } from "#core/request.ts";
import type { Trouble } from "#core/retry/wait-verdict.ts";
import type { Micros } from "#core/units.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { SimulatedRequest } from "./source/arrival-source.ts";

/** One request from its arrival until the client has its answer; also what an engine is given. */
export class Flight implements EngineRequest {
  /** Its row in the outcomes. */
  readonly row: number;
  readonly source: SimulatedRequest;
  route: RouteRequest;
  readonly id: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly deadlineAt: number | undefined;
  readonly cacheRead: boolean;
  hashes: Int32Array = NO_LANES;
  priority: number;
  /** Number of the engine that has it; -1 before it was routed. */
  engine = -1;
  firstTokenAt: Micros = -1;
  lastTokenAt: Micros = -1;
  /** Gaps between its tokens since the first, where they are recorded. */
  gaps: number[] | undefined = undefined;
  /** The router was notified of its end. */
  closed = false;
  /** The client has part of the answer. */
  begun = false;
  /** Its place among those in flight. */
  slot = 0;
  /** Of the attempt under way: when it was sent, since when nothing came, its endpoint's trouble, tokens that came. */
  sentAt: Micros = 0;
  quietSince: Micros = 0;
  trouble: Trouble | undefined = undefined;
  tokensSeen = 0;
  /** A piece came since the last sweep. */
  progressed = false;

  constructor(row: number, source: SimulatedRequest) {
    this.row = row;
    this.source = source;
    this.route = source.route;
    this.id = source.route.id;
    this.promptTokens = source.route.promptTokens;
    this.outputTokens = source.outputTokens;
    this.cacheRead = source.route.cacheRead ?? true;
    this.priority = source.route.priority;
    this.deadlineAt = source.deadlineAt === Infinity ? undefined : source.deadlineAt;
  }

  /** Nothing of an attempt that failed is left. */
  reset(): void {
    this.engine = -1;
    this.firstTokenAt = -1;
    this.lastTokenAt = -1;
    this.gaps = undefined;
    this.trouble = undefined;
    this.tokensSeen = 0;
    this.progressed = false;
  }

  /** What the router gets to know of a whole answer beside its counts. */
  get answered(): { readonly answerHashes?: Int32Array } {
    const answerHashes = this.source.answerHashes?.();
    return answerHashes === undefined ? {} : { answerHashes };
  }
}

const NO_LANES = new Int32Array(0);
