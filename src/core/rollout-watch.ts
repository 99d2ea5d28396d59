import type { Decision } from "./decision.ts";
import type { Outcome } from "./endpoint/outcome.ts";
import type { Input, RequestFinished } from "./input.ts";
import type { RouteRequest } from "./request.ts";
import { type Assignment, assignmentOf, clusterOf } from "./rollout/assignment.ts";
import type { OpenRequest } from "./rollout/judge/guardrail.ts";
import type { Judge } from "./rollout/judge/judge.ts";
import type { RolloutOutcome, Times } from "./rollout/judge/outcome.ts";
import { proposedStep } from "./rollout/proposed-step.ts";
import { type RolloutState, type RolloutStep, steppedRollout } from "./rollout/rollout-state.ts";
import type { Micros } from "./units.ts";

/** A request that an arm routes, between its arrival and its end. */
interface Watched {
  readonly request: RouteRequest;
  readonly assignment: Assignment;
  readonly stretch: number;
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

/**
 * One running rollout beside a router, in any host: assigns arms, makes outcomes of the router's inputs, and proposes
 * steps. A host gives every input to `observe` after the router took it, asks `look` now and then, and gives back the steps
 * that it accepted. The table holds requests in flight, which the host bounds.
 */
export class RolloutWatch {
  state: RolloutState;
  readonly #judge: Judge;
  readonly #predictionOf: (request: RouteRequest) => Times | undefined;
  readonly #open = new Map<string, Watched>();

  constructor(state: RolloutState, judge: Judge, predictionOf: (request: RouteRequest) => Times | undefined) {
    this.state = state;
    this.#judge = judge;
    this.#predictionOf = predictionOf;
  }

  /** Before the request reaches the router. */
  assign(request: RouteRequest, at: Micros): Assignment {
    const assignment = assignmentOf(request, at, this.state);
    const { phase, plan } = this.state;
    if (phase === "promoted" || phase === "rolled-back") return assignment;
    const { design } = plan;
    if (assignment.counted) this.#judge.arrived(assignment.window, assignment.windowEndAt);
    this.#open.set(request.id, {
      request,
      assignment,
      stretch: stretchOf(assignment, this.state, at),
      cluster: "by" in design ? clusterOf(request, design.by) : request.id,
      arrivedAt: at,
      firstTokenAt: undefined,
      endpoint: "",
    });
    return assignment;
  }

  observe(input: Input, decision: Decision | undefined): void {
    if (decision?.kind === "routed") {
      const watched = this.#open.get(decision.requestId);
      if (watched !== undefined) watched.endpoint = decision.endpoint;
    } else if (input.kind === "first-token") {
      const watched = this.#open.get(input.requestId);
      if (watched !== undefined) watched.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") this.#finished(input);
  }

  /** Closes what is due and returns which step the verdict calls for, if any. */
  look(at: Micros): RolloutStep | undefined {
    this.#judge.advance(at);
    return proposedStep(this.state, at, this.#judge.verdict(this.#openRequests(at)));
  }

  /** A step was accepted, proposed here or made by an operator; a text states why it could not be. */
  accept(step: RolloutStep): string | undefined {
    const next = steppedRollout(this.state, step);
    if (typeof next === "string") return next;
    if (next.canaryStep !== this.state.canaryStep) this.#judge.startStage(next.firstWindow);
    this.state = next;
    return undefined;
  }

  #openRequests(at: Micros): OpenRequest[] {
    return Array.from(this.#open.values(), ({ assignment, stretch, arrivedAt, firstTokenAt }) => ({
      arm: assignment.arm,
      stretch,
      ageMicros: at - arrivedAt,
      ttftMicros: firstTokenAt === undefined ? undefined : firstTokenAt - arrivedAt,
    }));
  }

  #finished({ at, requestId, outcome, cachedTokens, outputTokens }: RequestFinished): void {
    const watched = this.#open.get(requestId);
    if (watched === undefined) return;
    this.#open.delete(requestId);
    const { request, assignment, stretch, cluster, arrivedAt, firstTokenAt, endpoint } = watched;
    const { arm, window, counted } = assignment;
    const answered = outcome === "ok" && firstTokenAt !== undefined;
    const predicted = counted ? this.#predictionOf(request) : undefined;
    this.#judge.observe({
      arm,
      window,
      counted,
      stretch,
      cluster,
      status: STATUS[outcome],
      times: {
        ttft: firstTokenAt === undefined ? undefined : firstTokenAt - arrivedAt,
        tpot:
          answered && outputTokens !== undefined && outputTokens > 1
            ? (at - firstTokenAt) / (outputTokens - 1)
            : undefined,
        e2e: outcome === "ok" ? at - arrivedAt : undefined,
      },
      ...(predicted !== undefined && { predicted }),
      endpoint,
      promptTokens: request.promptTokens,
      cachedTokens,
    });
  }
}

/** When the window of a request began; outside of windows, times as long as they are stand for them. */
function stretchOf({ window, windowEndAt }: Assignment, { at: since, plan }: RolloutState, at: Micros): Micros {
  const { windowMicros } = plan.design;
  if (window >= 0) return windowEndAt - windowMicros;
  return since + Math.floor((at - since) / windowMicros) * windowMicros;
}
