import type { Decision, Routed } from "./input/decision.ts";
import type { Outcome } from "./endpoint/outcome.ts";
import type { Input, RequestFinished } from "./input/input.ts";
import type { RouteRequest } from "./request/request.ts";
import type { Agreement } from "./rollout/agreement.ts";
import { type Assignment, assignmentOf, clusterOf } from "./rollout/assignment.ts";
import type { GuardrailReading, OpenRequest } from "./rollout/judge/guardrail.ts";
import type { Judge } from "./rollout/judge/judge.ts";
import { giveJudge, type JudgeEntry } from "./rollout/judge/judge-entry.ts";
import type { RolloutShared, SharedRequest } from "./rollout/rollout-input.ts";
import { sliceAt, sliceOf } from "./rollout/judge/slice-counts.ts";
import type { Verdict } from "./rollout/judge/verdict.ts";
import type { RolloutOutcome, Times } from "./rollout/judge/outcome.ts";
import { proposedStep } from "./rollout/proposed-step.ts";
import type { RequestPrediction } from "./rollout/rollout-input.ts";
import { canaryPercent, type RolloutState, type RolloutStep } from "./rollout/rollout-state.ts";
import { seenTpotMicros } from "./latency/latency-model.ts";
import { sloResults } from "./request/slo.ts";
import type { Micros } from "./base/units.ts";

/** A request that an arm routes, between its arrival and its end. */
interface Watched {
  readonly request: RouteRequest;
  readonly assignment: Assignment;
  readonly stretch: number;
  readonly slice: number;
  readonly cluster: string;
  readonly arrivedAt: Micros;
  firstTokenAt: Micros | undefined;
  endpoint: string;
}

const STATUS: Readonly<Record<Outcome, RolloutOutcome["status"]>> = {
  ok: "ok",
  failed: "failed",
  timeout: "failed",
  aborted: "aborted",
  refused: "refused",
};

/** A replica that was silent for so long has nothing in flight any more. */
const REPLICA_GONE_MICROS: Micros = 15_000_000;

export interface RolloutWatchOptions {
  /** What the simulator expects of a request if the control routes everything, where that is known at its end. */
  readonly predictionOf?: ((request: RouteRequest) => Times | undefined) | undefined;
  /** Where it is not known then, it comes later. */
  readonly awaits?: boolean;
  /** Of the arms that decide too, from before a restart. */
  readonly agreements?: readonly Agreement[] | undefined;
}

const NEVER: Readonly<Agreement> = { decisions: 0, agreed: 0, addedHitTokens: 0 };

/**
 * One rollout beside a router, in any host: assigns arms, makes outcomes of the router's inputs, and proposes steps. It
 * holds the requests in flight that its arms route, which the host bounds.
 */
export class RolloutWatch {
  #state: RolloutState;
  #judge: Judge;
  /** What replicas that judge together have in flight, by replica, as of when that was known. */
  readonly #openAt = new Map<string, { readonly at: Micros; readonly open: readonly SharedRequest[] }>();
  #isTogether = false;
  readonly #predictionOf: (request: RouteRequest) => Times | undefined;
  readonly #awaits: boolean;
  readonly #open = new Map<string, Watched>();
  /** When each guardrail that is crossed was first. */
  #crossedSince = new Map<string, Micros>();
  #lastVerdict: Verdict | undefined;
  /** Sees what the judge is given, for a host that keeps it. */
  noted: ((entry: JudgeEntry) => void) | undefined;
  /** Takes what this watch itself saw, for a host that shares it. */
  outbox: ((entry: JudgeEntry) => void) | undefined;
  /** By arm; the control's is empty. */
  readonly agreements: readonly Agreement[];

  constructor(state: RolloutState, judge: Judge, options: RolloutWatchOptions = {}) {
    const { predictionOf = () => undefined, awaits = false, agreements = [] } = options;
    this.#state = state;
    this.#judge = judge;
    this.#predictionOf = predictionOf;
    this.#awaits = awaits;
    this.agreements = state.plan.arms.map((_, arm) => ({ ...NEVER, ...agreements[arm] }));
  }

  get state(): RolloutState {
    return this.#state;
  }

  get judge(): Judge {
    return this.#judge;
  }

  /** Its judge is that of all replicas. */
  get isTogether(): boolean {
    return this.#isTogether;
  }

  /** Requests that have not ended. */
  get inFlight(): number {
    return this.#open.size;
  }

  /** Before the request is decided. */
  assign(request: RouteRequest, at: Micros): Assignment {
    const assignment = assignmentOf(request, at, this.#state);
    const { phase, plan } = this.#state;
    if (phase === "promoted" || phase === "rolled-back") return assignment;
    const { design } = plan;
    const { counted, window, windowEndAt } = assignment;
    const stretch = stretchOf(assignment, this.#state, at);
    const slice = sliceOf(stretch, design.windowMicros, at);
    const since = sliceAt(stretch, design.windowMicros, slice);
    if (counted) this.#give({ kind: "arrived", window, windowEndAt, sliceAt: since });
    this.#open.set(request.id, {
      request,
      assignment,
      stretch,
      slice,
      cluster: "by" in design && design.by !== "request" ? clusterOf(request, design.by) : "",
      arrivedAt: at,
      firstTokenAt: undefined,
      endpoint: "",
    });
    return assignment;
  }

  observe(input: Input, decision: Decision | undefined): void {
    if (decision?.kind === "routed") {
      const watched = this.#open.get(decision.requestId);
      if (watched === undefined) return;
      watched.endpoint = decision.endpoint;
      this.#compare(decision);
      // It shows nothing of its arm: neither compared nor guarded.
      if (decision.rollout?.outsidePool !== true) return;
      this.#open.delete(decision.requestId);
      const { assignment, stretch, slice } = watched;
      const since = sliceAt(stretch, this.#state.plan.design.windowMicros, slice);
      if (assignment.counted) this.#give({ kind: "withdrawn", window: assignment.window, sliceAt: since });
    } else if (input.kind === "first-token") {
      const watched = this.#open.get(input.requestId);
      if (watched !== undefined) watched.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") this.#finished(input);
  }

  /** Of requests that have ended and wait for it. */
  predicted(requests: readonly RequestPrediction[]): void {
    for (const [id, ttft, tpot, e2e] of requests) {
      const times = { ttft: ttft ?? undefined, tpot: tpot ?? undefined, e2e: e2e ?? undefined };
      this.#give({ kind: "predicted", id, times });
    }
  }

  /** Closes what is due and returns which step the verdict calls for, if any. */
  look(at: Micros): RolloutStep | undefined {
    this.#give({ kind: "advanced", at });
    const verdict = this.verdict(at);
    this.#lastVerdict = verdict;
    return proposedStep(this.#state, at, { ...verdict, crossings: this.#held(verdict.crossings, at) });
  }

  /** What the last look saw; undefined before the first. */
  get lastVerdict(): Verdict | undefined {
    return this.#lastVerdict;
  }

  verdict(at: Micros): Verdict {
    const { plan, canaryStep } = this.#state;
    const verdict = this.#judge.verdict(this.#openRequests(at), canaryPercent(this.#state));
    const next = plan.design.kind === "canary" ? plan.design.stepPercents[canaryStep + 1] : undefined;
    return next === undefined ? verdict : { ...verdict, canary: this.#judge.canary(next, verdict.differences) };
  }

  /** How far each arm is from each guardrail. */
  readings(at: Micros): GuardrailReading[] {
    return this.#judge.readings(this.#openRequests(at));
  }

  /** The state after a step, or as it is elsewhere. */
  move(next: RolloutState): void {
    const { design } = next.plan;
    if (next.canaryStep !== this.#state.canaryStep) this.#give({ kind: "stage", fromWindow: next.firstWindow });
    else if (next.lengthened !== this.#state.lengthened)
      this.#give({ kind: "stage", fromWindow: next.firstWindow, design });
    this.#state = next;
  }

  /** What replicas see, in their order; another judge takes the place of this one first. */
  shared({ at, together, entries, replica, open }: RolloutShared, judge?: Judge): void {
    this.#isTogether = together;
    if (!together) this.#openAt.clear();
    if (judge !== undefined) this.#judge = judge;
    for (const entry of entries) this.#enter(entry);
    if (together && replica !== "") this.#openAt.set(replica, { at, open });
  }

  /** The oldest of what has not ended here, for other replicas. */
  openRequests(max: number): SharedRequest[] {
    const oldest = Array.from(this.#open.values()).slice(0, max);
    return oldest.map(({ assignment, stretch, slice, arrivedAt, firstTokenAt }) => {
      return [assignment.arm, stretch, slice, arrivedAt, firstTokenAt === undefined ? null : firstTokenAt - arrivedAt];
    });
  }

  #give(entry: JudgeEntry): void {
    this.outbox?.(entry);
    if (!this.#isTogether) this.#enter(entry);
  }

  #enter(entry: JudgeEntry): void {
    giveJudge(this.#judge, entry);
    this.noted?.(entry);
  }

  #compare({ endpoint: chosen, hitTokens: found, rollout }: Routed): void {
    for (const { arm, endpoint, hitTokens } of rollout?.alternatives ?? []) {
      const agreement = this.agreements[arm]!;
      agreement.decisions++;
      if (endpoint === chosen) agreement.agreed++;
      agreement.addedHitTokens += hitTokens - found;
    }
  }

  /** Those that have been crossed at every look for as long as they must. */
  #held(crossings: readonly GuardrailReading[], at: Micros): GuardrailReading[] {
    const before = this.#crossedSince;
    this.#crossedSince = new Map();
    return crossings.filter(({ arm, guardrail, of = "" }) => {
      const key = `${arm} ${guardrail.figure} ${guardrail.relativeMax} ${guardrail.absoluteMax} ${of}`;
      const since = before.get(key) ?? at;
      this.#crossedSince.set(key, since);
      return at - since >= (guardrail.holdMicros ?? 0);
    });
  }

  #openRequests(at: Micros): OpenRequest[] {
    if (this.#isTogether) return this.#openOfAll(at);
    return Array.from(this.#open.values(), ({ assignment, stretch, slice, arrivedAt, firstTokenAt }) => ({
      arm: assignment.arm,
      stretch,
      slice,
      ageMicros: at - arrivedAt,
      ttftMicros: firstTokenAt === undefined ? undefined : firstTokenAt - arrivedAt,
    }));
  }

  #openOfAll(at: Micros): OpenRequest[] {
    const all: OpenRequest[] = [];
    for (const [replica, { at: since, open }] of this.#openAt) {
      // It is gone, with all that it had in flight.
      if (at - since > REPLICA_GONE_MICROS) this.#openAt.delete(replica);
      else
        for (const [arm, stretch, slice, arrivedAt, ttft] of open)
          all.push({ arm, stretch, slice, ageMicros: at - arrivedAt, ttftMicros: ttft ?? undefined });
    }
    return all;
  }

  #finished({ at, requestId, outcome, cachedTokens, outputTokens }: RequestFinished): void {
    const watched = this.#open.get(requestId);
    if (watched === undefined) return;
    this.#open.delete(requestId);
    const { request, assignment, stretch, slice, cluster, arrivedAt, firstTokenAt, endpoint } = watched;
    const { arm, window, counted } = assignment;
    const { sequences } = request;
    const end = { outcome, arrivedAt, firstTokenAt, endedAt: at, outputTokens, sequences };
    const slo = request.slo && sloResults(request.slo, end)?.all;
    const predicted = counted ? this.#predictionOf(request) : undefined;
    const ended: RolloutOutcome = {
      arm,
      window,
      counted,
      stretch,
      slice,
      cluster,
      ...(request.tenant !== "" && { tenant: request.tenant }),
      ...(request.sloClass !== "" && { sloClass: request.sloClass }),
      status: STATUS[outcome],
      times: {
        ttft: firstTokenAt === undefined ? undefined : firstTokenAt - arrivedAt,
        tpot: outcome === "ok" ? seenTpotMicros(firstTokenAt, at, outputTokens, sequences) : undefined,
        e2e: outcome === "ok" ? at - arrivedAt : undefined,
      },
      ...(predicted !== undefined && { predicted }),
      ...(slo !== undefined && slo !== "unseen" && { slo }),
      endpoint,
      promptTokens: request.promptTokens,
      cachedTokens,
    };
    const awaits = this.#awaits && predicted === undefined;
    this.#give({ kind: "ended", outcome: ended, ...(awaits && { awaited: { id: requestId, endAt: at } }) });
  }
}

/** When the window of a request began; outside of windows, times as long as they are stand for them. */
function stretchOf({ window, windowEndAt }: Assignment, { at: since, plan }: RolloutState, at: Micros): Micros {
  const { windowMicros } = plan.design;
  if (window >= 0) return windowEndAt - windowMicros;
  return since + Math.floor((at - since) / windowMicros) * windowMicros;
}
