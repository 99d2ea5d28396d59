import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { TimeFigure, TimeMetric, Times } from "#core/rollout/judge/outcome.ts";
import type { Difference } from "#core/rollout/judge/verdict.ts";
import type { Design, RolloutPlan } from "#core/rollout/rollout-plan.ts";
import { plannedRollout, type RolloutStep } from "#core/rollout/rollout-state.ts";
import { RolloutWatch } from "#core/rollout-watch.ts";
import type { RouteRequest } from "#core/request.ts";
import type { Micros } from "#core/units.ts";
import { simulate } from "#sim/simulate.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { ArmArrivals } from "./arm-arrivals.ts";
import { arrivalsOf, clusterOf, POOL_LABEL, POOLS, profileNamed, within } from "./fleet.ts";

export const SECOND = 1_000_000;
export const LEVEL = 0.05;

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

const LOOKS_PER_WINDOW = 2;

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
  const judge = new Judge({
    plan,
    level: LEVEL,
    plannedCount: run.plannedCount,
    settleMicros: 5 * SECOND,
    windowSamplesMin: 5,
    guardrails: run.guardrails ?? [],
    predictions: [],
  });
  const watch = new RolloutWatch(plannedRollout(plan, 0), judge, run.predictionOf ?? (() => undefined));
  const steps: RolloutStep[] = [];
  const take = (step: RolloutStep): void => {
    const refused = watch.accept(step);
    if (refused !== undefined) throw new Error(refused);
    steps.push(step);
  };
  take({ kind: "rollout-step", at: 0, rollout: "study", step: "start", arm: "", reason: "study" });
  let lookAt = design.windowMicros / LOOKS_PER_WINDOW;
  const look = (at: Micros): void => {
    if (at < lookAt) return;
    lookAt += (Math.floor((at - lookAt) / design.windowMicros) + 1 / LOOKS_PER_WINDOW) * design.windowMicros;
    const step = watch.look(at);
    run.looked?.(at, judge);
    if (step !== undefined) take(step);
  };
  const arrivals = new ArmArrivals(arrivalsOf(run.workload, seed), (request, at) => {
    look(at);
    return watch.assign(request, at).profile;
  });
  const options = clusterOf(profilesOf(run), arrivals, seed);
  const { requests } = simulate({ ...options, observe: (input, decision) => watch.observe(input, decision) });
  look(Number.MAX_SAFE_INTEGER);
  const failed = Object.values(requests).reduce((sum, count) => sum + count, -requests.completed);
  return { judge, steps, failed, difference: (metric, figure) => judge.difference(1, metric, figure) };
}

function profilesOf({ control, other, design }: RolloutRun): Record<string, ProfileSpec> {
  const named = { control: profileNamed(control), other: profileNamed(other) };
  if (design.kind !== "pools") return named;
  return { control: within(named.control, POOLS[0]!), other: within(named.other, POOLS[1]!) };
}
