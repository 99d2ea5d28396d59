import type { RouteRequest } from "#core/request/request.ts";
import type { Guardrail } from "#core/rollout/judge/guardrail.ts";
import type { Judge } from "#core/rollout/judge/judge.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { Simulation } from "#sim/simulation.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { type Candidate, requestIndexOf, type Setting, simulationOf } from "../candidate/candidate.ts";
import { POOL_LABEL, POOLS } from "./rollout-design.ts";
import type { RolloutSample } from "./rollout-sample.ts";
import { sampleOf } from "./sample-of.ts";
import { judgeOptions, twoArmPlan } from "./two-arm-plan.ts";

/** What is predicted of every request if the control routes all: rows of the workload, microseconds, NaN for nothing. */
export interface PredictedTimes {
  readonly ttft: Float64Array;
  readonly tpot: Float64Array;
  readonly e2e: Float64Array;
}

/** One rollout to simulate. Plain data. */
export interface SimulatedRollout {
  readonly arms: readonly [control: Candidate, other: Candidate];
  readonly design: Design;
  /** Of the draw of arms. */
  readonly seed: number;
  /** Whose engines it runs on. */
  readonly replica: number;
  /** Until then the control routes everything, and nothing is compared. */
  readonly startMicros: Micros;
  readonly predicted: PredictedTimes | undefined;
  /** Probability of a false alarm, and the count of blocks or clusters at which intervals are to be narrowest. */
  readonly level?: number;
  readonly plannedCount?: number;
  /** What takes it back; nothing where they are left out. */
  readonly guardrails?: readonly Guardrail[];
}

const LEVEL_DEFAULT = 0.05;
const COUNT_DEFAULT = 100;

/** How often a rollout under way is looked at: the judge closes its windows then. Guardrails are looked at as live. */
const LOOKS_PER_WINDOW = 2;
const GUARDED_LOOK_MICROS = MICROS_PER_SECOND;

/** Simulates one rollout from the first request to the last and returns what it found; `looked` sees every look at it. */
export function simulatedRollout(
  setting: Setting,
  rollout: SimulatedRollout,
  looked?: (at: Micros, judge: Judge) => void,
): RolloutSample {
  const { arms, design, seed, replica, startMicros, predicted } = rollout;
  const plan = twoArmPlan(design, seed);
  const { level = LEVEL_DEFAULT, plannedCount = COUNT_DEFAULT, guardrails = [] } = rollout;
  const { plan: _plan, ...options } = judgeOptions(plan, level, plannedCount);
  const rules = { ...options, guardrails };
  const twice = design.windowMicros / LOOKS_PER_WINDOW;
  const [control, other] = arms;
  const profiles = { control: control.spec, other: other.spec };
  const step = { kind: "rollout-step", rollout: plan.name, step: "start", arm: "", reason: "", by: "plan" } as const;
  // One router sees all that is compared.
  const { routers: _routers, ...cluster } = simulationOf(setting, control, replica);
  const simulation = new Simulation({
    ...withPools(cluster),
    router: {
      ...cluster.router,
      profiles,
      defaultProfile: "control",
      predictionOf: (request) => timesOf(predicted, request),
    },
    fleetEvents: [
      { kind: "rollout-planned", at: 0, plan, rules, profiles },
      { ...step, at: startMicros },
      ...(cluster.fleetEvents ?? []),
    ],
    rolloutLookMicros: guardrails.length > 0 ? Math.min(twice, GUARDED_LOOK_MICROS) : twice,
    ...(looked && { observe: ({ kind, at }) => kind === "rollout-look" && looked(at, judgeOf()) }),
  });
  const watch = () => simulation.router.routers[0]!.rollouts.watch(plan.name)!;
  const judgeOf = () => watch().judge;
  simulation.run();
  const judge = judgeOf();
  judge.advance(Infinity);
  looked?.(Infinity, judge);
  return { ...sampleOf(judge, plan), takenBack: watch().state.phase === "rolled-back" };
}

function timesOf(predicted: PredictedTimes | undefined, { id }: RouteRequest): Times | undefined {
  if (predicted === undefined) return undefined;
  const row = requestIndexOf(id);
  const known = (column: Float64Array) => (Number.isNaN(column[row]!) ? undefined : column[row]!);
  return { ttft: known(predicted.ttft), tpot: known(predicted.tpot), e2e: known(predicted.e2e) };
}

function withPools(options: SimulationOptions): SimulationOptions {
  return {
    ...options,
    engines: options.engines.map((engine, number) => {
      const labels = { ...engine.endpoint.labels, [POOL_LABEL]: POOLS[number % POOLS.length]! };
      return { ...engine, endpoint: { ...engine.endpoint, labels } };
    }),
  };
}
