import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import type { Judge } from "#core/rollout/judge/judge.ts";
import type { TimeFigure, TimeMetric, Times } from "#core/rollout/judge/outcome.ts";
import type { Difference } from "#core/rollout/judge/verdict.ts";
import type { Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import { JUDGE, type RolloutStep } from "#core/rollout/rollout-state.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import { STATUSES } from "#sim/result/outcomes.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { Simulation } from "#sim/simulation.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { arrivalsOf, clusterOf, engineAt, POOL_LABEL, POOLS, profileNamed } from "./fleet.ts";

export const SECOND = 1_000_000;
const LEVEL = 0.05;

/** The designs that the studies compare, with windows of that many seconds. */
export function designsOf(windowSeconds: number): Readonly<Record<string, Design>> {
  const windowMicros = windowSeconds * SECOND;
  return {
    switchback: { kind: "switchback", windowMicros, washoutMicros: Math.round(windowMicros / 5) },
    pools: { kind: "pools", windowMicros, by: "session", label: POOL_LABEL },
    "split by session": { kind: "split", windowMicros, by: "session" },
    "split by request": { kind: "split", windowMicros, by: "request" },
  };
}

export interface RolloutRun {
  readonly control: string;
  readonly other: string;
  readonly design: Design;
  readonly workload: readonly WorkloadRequest[];
  readonly seed: number;
  /** Blocks or clusters that the plan counts with. */
  readonly plannedCount: number;
  readonly guardrails?: readonly Guardrail[];
  readonly predictionOf?: (request: RouteRequest) => Times | undefined;
  /** Engines with that label take so many times as long for each step. */
  readonly slowerPool?: { readonly label: string; readonly speed: number };
  /** Sees the comparison at each look, several in each window. */
  readonly looked?: (at: Micros, judge: Judge) => void;
}

export interface RolloutRunResult {
  readonly judge: Judge;
  readonly steps: readonly RolloutStep[];
  /** Requests that did not end well. */
  readonly failed: number;
  difference(metric: TimeMetric, figure: TimeFigure): Difference;
}

const LOOKS_PER_WINDOW = 10;
/** Until then the control alone routes, as live: guardrails know it from then on. */
export const START_MICROS = 10 * SECOND;

/** One rollout from the first request to the last, in the simulator, with its judge looking and acting. */
export function rolloutRun(run: RolloutRun): RolloutRunResult {
  const { design, seed } = run;
  const plan: RolloutPlan = {
    name: "study",
    model: "",
    seed,
    arms: [
      { name: "control", profile: "control", pool: POOLS[0]! },
      { name: "other", profile: "other", pool: POOLS[1]! },
    ],
    design,
    cooldownMicros: 0,
  };
  const rules = {
    level: LEVEL,
    plannedCount: run.plannedCount,
    settleMicros: 5 * SECOND,
    windowSamplesMin: 5,
    guardrails: run.guardrails ?? [],
    predictions: [],
  };
  const profiles = { control: profileNamed(run.control), other: profileNamed(run.other) };
  const start = {
    kind: "rollout-step",
    at: START_MICROS,
    rollout: "study",
    step: "start",
    arm: "",
    reason: "",
    by: "",
  } as const;
  const steps: RolloutStep[] = [start];
  const { router, ...cluster } = clusterOf(profiles, arrivalsOf(run.workload, seed), seed);
  const engines = run.slowerPool === undefined ? cluster.engines : slowed(cluster.engines, run.slowerPool);
  const simulation = new Simulation({
    ...cluster,
    engines,
    router: { ...router, ...(run.predictionOf && { predictionOf: run.predictionOf }) },
    fleetEvents: [{ kind: "rollout-planned", at: 0, plan, rules, profiles }, start],
    rolloutLookMicros: design.windowMicros / LOOKS_PER_WINDOW,
    observe: (input) => {
      if (input.kind === "rollout-look") run.looked?.(input.at, judgeOf());
      if (input.kind === "rollout-step" && input.by === JUDGE) steps.push(input);
    },
  });
  const judgeOf = () => simulation.router.routers[0]!.rollouts.watch("study")!.judge;
  simulation.run();
  const judge = judgeOf();
  judge.advance(Number.MAX_SAFE_INTEGER);
  run.looked?.(Number.MAX_SAFE_INTEGER, judge);
  const { outcomes } = simulation;
  const completed = STATUSES.indexOf("completed");
  const failed = outcomes.status
    .subarray(0, outcomes.length)
    .reduce((sum, one) => sum + (one === completed ? 0 : 1), 0);
  return { judge, steps, failed, difference: (metric, figure) => judge.difference(1, metric, figure) };
}

function slowed(
  engines: SimulationOptions["engines"],
  { label, speed }: Required<RolloutRun>["slowerPool"],
): SimulationOptions["engines"] {
  const config = engineAt(speed);
  return engines.map((one) => (one.endpoint.labels[POOL_LABEL] === label ? { ...one, config } : one));
}
