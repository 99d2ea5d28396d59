import type { FailedStage } from "#core/retry/after-fault.ts";
import type { RouteRequest } from "#core/request.ts";
import type { Trouble } from "#core/retry/wait-verdict.ts";
import type { Micros } from "#core/units.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { Handoff } from "./handoff/handoff.ts";
import type { PrefillLeg } from "./handoff/prefill-leg.ts";
import type { SimulatedRequest } from "./source/arrival-source.ts";

/** One request from its arrival until the client has its answer; also what an engine is given. */
export class Flight implements EngineRequest {
  /** Its row in the outcomes. */
  readonly row: number;
  readonly source: SimulatedRequest;
  route: RouteRequest;
  readonly id: string;
  /** As the engine at hand has it: where the answer goes on there, the part before is prompt. */
  promptTokens: number;
  outputTokens: number;
  readonly deadlineAt: number | undefined;
  readonly cacheRead: boolean;
  hashes: Int32Array = NO_HASHES;
  priority: number;
  /** Where its prompt is computed for another engine, while that is under way. */
  leg: PrefillLeg | undefined = undefined;
  /** Its prompt's blocks, at the engine that computed them, on their way or here. */
  fetch: Handoff | undefined = undefined;
  /** They did not come. */
  fetchFailed = false;
  /** Both engines have it at once. */
  isTogether = false;
  /** Number of the engine that has it; -1 before it was routed. */
  engine = -1;
  firstTokenAt: Micros = -1;
  lastTokenAt: Micros = -1;
  /** Gaps between its tokens since the first, where they are recorded. */
  gaps: number[] | undefined = undefined;
  /** The router was notified of its end. */
  closed = false;
  /** A cascade has yet to judge its answer, after so many tokens, of which it is notified. */
  judged: JudgedFlight | undefined = undefined;
  /** A cascade took it to another model. */
  escalated = false;
  /** The client has part of the answer. */
  begun = false;
  /** The rest of the answer was asked for elsewhere, and nothing of it came. */
  resuming = false;
  /** Tokens of the answer that engines before made, and how often it went on elsewhere. */
  continuedTokens = 0;
  continuations = 0;
  /** Its place among those in flight. */
  slot = 0;
  /** Of the attempt under way: when it was sent, since when nothing came, its endpoint's trouble, tokens that came. */
  sentAt: Micros = 0;
  quietSince: Micros = 0;
  trouble: Trouble | undefined = undefined;
  tokensSeen = 0;
  /** The same request at a second engine, while nothing came of either. */
  hedge: Flight | undefined = undefined;
  /** A second engine was asked for, whatever came of it. */
  hedgeAsked = false;
  /** Of what a hedge is one, and its row among hedges, while it is not known which of both answers. */
  hedgeOf: Flight | undefined = undefined;
  hedgeRow = -1;
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

  /** As the engine at hand is given it. */
  get asSent(): Flight | PrefillLeg {
    return this.leg ?? this;
  }

  /** Which part of its attempt is under way, for who is to blame where it fails. */
  get stage(): FailedStage {
    return this.leg !== undefined ? "prefill" : this.fetchFailed ? "transfer" : "answer";
  }

  /** Nothing of an attempt that failed is left. */
  reset(): void {
    this.fetchFailed = false;
    this.engine = -1;
    this.firstTokenAt = -1;
    this.lastTokenAt = -1;
    this.gaps = undefined;
    this.trouble = undefined;
    this.tokensSeen = 0;
    this.progressed = false;
  }

  /** Output tokens that the client has, as far as is known. */
  get tokensOfAll(): number {
    return this.continuedTokens + this.tokensSeen;
  }

  /** The answer goes on at another engine, behind what the client has of it. */
  goOn(): void {
    this.continuedTokens = this.tokensOfAll;
    this.continuations++;
    this.promptTokens = this.source.route.promptTokens + this.continuedTokens;
    this.outputTokens = this.source.outputTokens - this.continuedTokens;
    this.reset();
    this.resuming = true;
  }

  /** Blocks that the first tokens of the answer fill behind the prompt's, where the router gets to know them. */
  blocksOf(tokens: number): { readonly answerHashes?: Int32Array } {
    const { promptTokens, blocks } = this.source.route;
    const whole = this.source.answerHashes?.();
    const count = Math.floor((promptTokens + tokens) / blocks.blockTokens) - blocks.length;
    return whole === undefined || count <= 0 ? {} : { answerHashes: whole.slice(0, 2 * count) };
  }
}

export interface JudgedFlight {
  readonly step: number;
  readonly tokens: number;
  ripe(at: Micros): void;
}

const NO_HASHES = new Int32Array(0);
