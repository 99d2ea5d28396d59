import type { Decision } from "./decision.ts";
import type { Outcome } from "./endpoint/outcome.ts";
import type { Input, RequestFinished } from "./input.ts";
import type { RouteRequest } from "./request.ts";
import { type Assignment, assignmentOf, clusterOf } from "./rollout/assignment.ts";
import type { Judge } from "./rollout/judge/judge.ts";
import type { RolloutOutcome, Times } from "./rollout/judge/outcome.ts";
import { proposedStep } from "./rollout/proposed-step.ts";
import { type RolloutState, type RolloutStep, steppedRollout } from "./rollout/rollout-state.ts";
import type { Micros } from "./units.ts";

/** A request that is counted, between its arrival and its end. */
interface Counted {
  readonly assignment: Assignment;
  readonly cluster: string;
  readonly arrivedAt: Micros;
  readonly promptTokens: number;
  readonly predicted: Times | undefined;
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
  readonly #open = new Map<string, Counted>();

  constructor(state: RolloutState, judge: Judge, predictionOf: (request: RouteRequest) => Times | undefined) {
    this.state = state;
    this.#judge = judge;
    this.#predictionOf = predictionOf;
  }

  /** Before the request reaches the router. */
  assign(request: RouteRequest, at: Micros): Assignment {
    const assignment = assignmentOf(request, at, this.state);
    if (!assignment.counted) return assignment;
    const { design } = this.state.plan;
    this.#open.set(request.id, {
      assignment,
      cluster: "by" in design ? clusterOf(request, design.by) : request.id,
      arrivedAt: at,
      promptTokens: request.promptTokens,
      predicted: this.#predictionOf(request),
      firstTokenAt: undefined,
      endpoint: "",
    });
    return assignment;
  }

  observe(input: Input, decision: Decision | undefined): void {
    if (decision?.kind === "routed") {
      const counted = this.#open.get(decision.requestId);
      if (counted !== undefined) counted.endpoint = decision.endpoint;
    } else if (input.kind === "first-token") {
      const counted = this.#open.get(input.requestId);
      if (counted !== undefined) counted.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") this.#finished(input);
  }

  /** Closes what is due and returns which step the verdict calls for, if any. */
  look(at: Micros): RolloutStep | undefined {
    this.#judge.advance(at);
    return proposedStep(this.state, at, this.#judge.verdict());
  }

  /** A step was accepted, proposed here or made by an operator; a text states why it could not be. */
  accept(step: RolloutStep): string | undefined {
    const next = steppedRollout(this.state, step);
    if (typeof next === "string") return next;
    if (next.canaryStep !== this.state.canaryStep) this.#judge.startStage(next.firstWindow);
    this.state = next;
    return undefined;
  }

  #finished({ at, requestId, outcome, cachedTokens, outputTokens }: RequestFinished): void {
    const counted = this.#open.get(requestId);
    if (counted === undefined) return;
    this.#open.delete(requestId);
    const { assignment, cluster, arrivedAt, firstTokenAt, predicted, endpoint, promptTokens } = counted;
    const answered = outcome === "ok" && firstTokenAt !== undefined;
    this.#judge.observe({
      arm: assignment.arm,
      window: assignment.window,
      windowEndAt: assignment.windowEndAt,
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
      promptTokens,
      cachedTokens,
    });
  }
}
