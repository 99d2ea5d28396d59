import type { Decision } from "#core/input/decision.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import { plannedRollout, type RolloutStep, steppedRollout } from "#core/rollout/rollout-state.ts";
import type { Verdict } from "#core/rollout/judge/verdict.ts";
import { RolloutWatch } from "#core/rollout-watch.ts";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import { type DrawnRequest, drawOf, FluidQueue } from "./outcome-traffic.ts";

/** What a request came to. Seconds; a failed one has none. */
export interface DrawnOutcome {
  readonly ttft: number;
  readonly tpot: number;
  readonly failed: boolean;
}

/** What an arm makes of an outcome that the control would have had. */
export type ArmEffect = (outcome: DrawnOutcome, request: DrawnRequest) => DrawnOutcome;

export interface OutcomeRollout {
  readonly traffic: readonly DrawnRequest[];
  readonly design: Design;
  readonly seed: number;
  readonly seconds: number;
  readonly plannedCount: number;
  readonly guardrails: readonly Guardrail[];
  readonly effect?: ArmEffect;
  /** Of a switchback: seconds in which two thirds of a change of arms are there. */
  readonly carrySeconds?: number;
  /** Seconds of work that are done in a second, by all engines together. */
  readonly speed: number;
  /** Known outcomes in place of a queue's. */
  readonly outcomeOf?: (request: DrawnRequest) => DrawnOutcome;
  /** The simulator predicts requests, on engines that are a tenth too slow, and knows nothing of a request's own luck. */
  readonly predicts?: boolean;
  /** Each look; `proposed` is what it calls for. */
  readonly looked?: (look: Look) => void;
  /** Which of the proposed steps are made; none where it is left out. */
  readonly accepts?: (step: RolloutStep) => boolean;
}

export interface Look {
  readonly at: Micros;
  readonly watch: RolloutWatch;
  readonly verdict: Verdict;
  readonly proposed: RolloutStep | undefined;
}

const LOOK_SECONDS = 15;
const START_SECONDS = 60;
const LEVEL = 0.05;
const ERRORS_USUAL = 0.003;
const TWIN_SPEED = 0.9;

/** One rollout on drawn outcomes, looked at every 15 s; what it was stepped by. */
export function outcomeRollout(run: OutcomeRollout): { readonly watch: RolloutWatch; readonly steps: RolloutStep[] } {
  const { design, seed, effect = (outcome) => outcome, carrySeconds = 0 } = run;
  const plan: RolloutPlan = {
    name: "trust",
    model: "",
    seed,
    arms: ["control", "other"].map((name) => ({ name, profile: name, pool: name })),
    design,
    cooldownMicros: 0,
  };
  const judge = new Judge({
    plan,
    level: LEVEL,
    plannedCount: run.plannedCount,
    settleMicros: 300 * MICROS_PER_SECOND,
    windowSamplesMin: 10,
    guardrails: run.guardrails,
    predictions: [],
  });
  const predictions = new Map<string, Times>();
  const watch = new RolloutWatch(plannedRollout(plan, 0), judge, { predictionOf: ({ id }) => predictions.get(id) });
  const steps: RolloutStep[] = [];
  const take = (step: RolloutStep) => {
    const next = steppedRollout(watch.state, step);
    if (typeof next === "string") throw new Error(next);
    watch.move(next);
    steps.push(step);
  };
  const pools = design.kind === "pools" ? 2 : 1;
  const twin = new FluidQueue(TWIN_SPEED * run.speed);
  const queues = Array.from({ length: pools }, () => new FluidQueue(run.speed / pools));
  let pending: { readonly at: number; readonly id: string; readonly kind: "token" | "end"; outcome: DrawnOutcome }[] =
    [];
  let [carried, carriedAt] = [0, 0];
  let next = 0;
  for (let look = LOOK_SECONDS; look <= run.seconds; look += LOOK_SECONDS) {
    if (look === START_SECONDS + LOOK_SECONDS) take(startAt(START_SECONDS));
    for (; next < run.traffic.length && run.traffic[next]!.at < look; next++) {
      const drawn = run.traffic[next]!;
      const request = routeRequest(drawn, next);
      const at = Math.round(drawn.at * MICROS_PER_SECOND);
      if (run.predicts === true) predictions.set(request.id, timesOf(twin.take({ ...drawn, luck: 1 }), drawn));
      const { arm } = watch.assign(request, at);
      const endpoint = `e${Math.floor(4 * drawOf(request.id, 1))}`;
      const routed = { kind: "routed", at, requestId: request.id, endpoint } as unknown as Decision;
      watch.observe({ kind: "request-arrived", at, request }, routed);
      const usual = run.outcomeOf?.(drawn) ?? outcomeAt(queues[arm % pools]!, drawn);
      if (carrySeconds > 0) carried += (arm - carried) * (1 - Math.exp(-(drawn.at - carriedAt) / carrySeconds));
      carriedAt = drawn.at;
      const changed = arm === 1 || carrySeconds > 0 ? effect(usual, drawn) : usual;
      const share = carrySeconds > 0 ? carried : arm;
      const mixed = {
        ...changed,
        ttft: usual.ttft + share * (changed.ttft - usual.ttft),
        tpot: usual.tpot + share * (changed.tpot - usual.tpot),
      };
      pending.push({ at: drawn.at + mixed.ttft, id: request.id, kind: "token", outcome: mixed });
      const endAt = drawn.at + mixed.ttft + mixed.tpot * (drawn.outputTokens - 1);
      pending.push({
        at: mixed.failed ? drawn.at + mixed.ttft / 2 : endAt,
        id: request.id,
        kind: "end",
        outcome: mixed,
      });
    }
    const due = pending.filter((one) => one.at < look).sort((one, other) => one.at - other.at);
    pending = pending.filter((one) => one.at >= look);
    for (const { at, id, kind, outcome } of due) {
      const micros = Math.round(at * MICROS_PER_SECOND);
      if (kind === "token") {
        if (!outcome.failed) watch.observe({ kind: "first-token", at: micros, requestId: id }, undefined);
        continue;
      }
      const drawn = run.traffic[Number(id)]!;
      watch.observe(
        {
          kind: "request-finished",
          at: micros,
          requestId: id,
          outcome: outcome.failed ? "failed" : "ok",
          promptTokens: drawn.promptTokens,
          cachedTokens: Math.floor((drawn.promptTokens * Math.min(drawn.turn, 9)) / 12),
          outputTokens: drawn.outputTokens,
        },
        undefined,
      );
    }
    const at = look * MICROS_PER_SECOND;
    if (watch.state.phase === "rolled-back") break;
    if (watch.state.phase !== "running") continue;
    const proposed = watch.look(at);
    run.looked?.({ at, watch, verdict: watch.lastVerdict!, proposed });
    if (proposed !== undefined && run.accepts?.(proposed) === true) take(proposed);
  }
  return { watch, steps };
}

function timesOf({ ttft, tpot }: Pick<DrawnOutcome, "ttft" | "tpot">, { outputTokens }: DrawnRequest): Times {
  const [first, each] = [ttft, tpot].map((seconds) => seconds * MICROS_PER_SECOND);
  return { ttft: first, tpot: each, e2e: first! + each! * (outputTokens - 1) };
}

function startAt(seconds: number): RolloutStep {
  const at = seconds * MICROS_PER_SECOND;
  return { kind: "rollout-step", at, rollout: "trust", step: "start", arm: "", reason: "", by: "" };
}

function outcomeAt(queue: FluidQueue, drawn: DrawnRequest): DrawnOutcome {
  return { ...queue.take(drawn), failed: drawn.fault < ERRORS_USUAL };
}

function routeRequest({ session, tenant, promptTokens }: DrawnRequest, row: number): RouteRequest {
  const request = { id: String(row), session, tenant, promptTokens, sequences: 1, model: "m", sloClass: "" };
  return request as unknown as RouteRequest;
}
