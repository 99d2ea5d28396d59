import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { PathEvent } from "#core/path/path-event.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { NO_STAGES, type PathStage } from "#core/path/stage.ts";
import { DECIDING } from "#core/path/path-state.ts";
import { type PathHost, type PerformedEffect, RequestPath } from "#core/path/request-path.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Trouble } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import type { BlockFetch } from "#engine/block-fetch.ts";
import type { FurtherAnswer } from "#engine/further-answer.ts";
import type { EngineRequest, FinishReason } from "#engine/request.ts";
import { firstPromptTokens } from "#trace/workload-request.ts";
import type { FlightPaths } from "./flight-paths.ts";
import type { SecondOf, Standby } from "./stage-performer.ts";
import type { PrefillLeg } from "./prefill-leg.ts";
import type { Ending } from "../result/outcomes.ts";
import type { SimulatedRequest } from "../setting/arrival-source.ts";

/** One request from its arrival until the client has its answer; also what an engine is given. */
export class Flight implements EngineRequest, PathHost {
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
  fetch: BlockFetch | undefined = undefined;
  /** The stage by which its decision has another engine do a part ahead. */
  ahead: PathStage | undefined = undefined;
  /** Number of the engine that has it; -1 before it was routed. */
  engine = -1;
  firstTokenAt: Micros = -1;
  lastTokenAt: Micros = -1;
  /** Gaps between its tokens since the first, where they are recorded. */
  gaps: number[] | undefined = undefined;
  /** The router was notified of its end. */
  closed = false;
  /** A stage has yet to judge its answer, after so many tokens, of which it is notified. */
  judged: JudgedFlight | undefined = undefined;
  /** Its life, which another flight goes on with where that has it at a second engine. */
  path: RequestPath;
  readonly #paths: FlightPaths;
  #stages: readonly PathStage[] = NO_STAGES;
  /** Where it goes with the next effect `send`; undefined where it is there already. */
  next: Routed | undefined = undefined;
  /** How it ended, where no engine wrote that down, and what its client has of the answer, where it left. */
  ending: Ending | undefined = undefined;
  tokensAtEnd: number | undefined = undefined;
  /** Tokens of the answer that engines before made, and how often it went on elsewhere. */
  continuedTokens = 0;
  onward: (PathStage & { readonly times: number }) | undefined = undefined;
  /** Its place among those in flight. */
  slot = 0;
  /** Of the attempt under way: when it was sent, since when nothing came, its endpoint's trouble, tokens that came. */
  sentAt: Micros = 0;
  quietSince: Micros = 0;
  trouble: Trouble | undefined = undefined;
  tokensSeen = 0;
  /** The same request at a second engine, where it may be asked for. */
  second: SecondOf | undefined = undefined;
  /** It is a second one itself, while it is not known which of both answers. */
  standby: Standby | undefined = undefined;
  /** It has just taken the first one's place, and is at its engine. */
  isTaken = false;
  /** A piece came since the last sweep. */
  progressed = false;
  /** Answers beside the first that its engine took, how many of them it is done with, and how the first one ended. */
  further: readonly FurtherAnswer[] = NO_ANSWERS;
  furtherEnded = 0;
  firstEnded: FinishReason | undefined = undefined;

  constructor(row: number, source: SimulatedRequest, paths: FlightPaths) {
    this.#paths = paths;
    this.path = new RequestPath(this, DECIDING);
    this.row = row;
    this.source = source;
    this.route = source.route;
    this.id = source.route.id;
    this.promptTokens = this.firstPromptTokens;
    this.outputTokens = source.outputTokens;
    this.cacheRead = source.route.cacheRead ?? true;
    this.priority = source.route.priority;
    this.deadlineAt = source.deadlineAt === Infinity ? undefined : source.deadlineAt;
  }

  /** Of its first prompt, where it has several. */
  get firstPromptTokens(): number {
    return firstPromptTokens(this.source.route);
  }

  /** Answers that its engine makes side by side. */
  get sequences(): number {
    return this.source.route.sequences;
  }

  /** As the engine at hand is given it. */
  get asSent(): Flight | PrefillLeg {
    return this.leg ?? this;
  }

  get router(): PathRouter {
    return this.#paths.router;
  }
  get routeId(): string {
    return this.id;
  }
  get stages(): readonly PathStage[] {
    return this.#stages;
  }

  hasStage(stage: PathStage): void {
    this.#stages = [...this.#stages, stage];
  }

  lacksStage(stage: PathStage | undefined): void {
    if (stage !== undefined) this.#stages = this.#stages.filter((one) => one !== stage);
  }

  perform(effect: PerformedEffect): PathEvent | undefined {
    return this.#paths.perform(this, effect);
  }

  /** A defect of ours ends the simulation. */
  threw(error: unknown): never {
    throw error;
  }

  faulted(fault: Fault): void {
    const { faults } = this.#paths.counts;
    faults[fault] = (faults[fault] ?? 0) + 1;
  }

  retried(decision: Routed): void {
    this.#paths.retried(this, decision);
  }

  /** Goes on in place of the flight to the first engine. */
  takes(first: Flight): void {
    this.standby = undefined;
    this.second = first.second;
    this.#stages = first.#stages;
    this.path = first.path;
    this.path.host = this;
    this.isTaken = true;
  }

  /** An attempt begins. */
  sent(at: Micros): void {
    this.sentAt = at;
    this.quietSince = at;
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
    this.further = NO_ANSWERS;
    this.furtherEnded = 0;
    this.firstEnded = undefined;
  }

  /** Times that the answer went on elsewhere. */
  get timesElsewhere(): number {
    return this.onward?.times ?? 0;
  }

  /** Output tokens that the client has, as far as is known. */
  get tokensOfAll(): number {
    return this.continuedTokens + this.tokensSeen;
  }

  /** The answer goes on at another engine, behind what the client has of it. */
  goOn(): void {
    this.continuedTokens = this.tokensOfAll;
    this.promptTokens = this.source.route.promptTokens + this.continuedTokens;
    this.outputTokens = this.source.outputTokens - this.continuedTokens;
    this.reset();
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
  readonly tokens: number;
  ripe(at: Micros): void;
}

const NO_ANSWERS: readonly FurtherAnswer[] = [];
const NO_HASHES = new Int32Array(0);
