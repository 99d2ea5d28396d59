import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { RouteRequest } from "#core/request.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/rollout-plan.ts";
import { plannedRollout } from "#core/rollout/rollout-state.ts";
import { RolloutWatch } from "#core/rollout-watch.ts";
import { SessionInference } from "#core/session/session-inference.ts";
import type { Micros } from "#core/units.ts";
import { Simulation } from "#sim/simulation.ts";
import type { SimulationOptions } from "#sim/simulation-options.ts";
import { type Candidate, requestIndexOf, type Setting, simulationOf } from "../question/candidate.ts";
import { ArmArrivals } from "./arm-arrivals.ts";
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
}

/** How often a rollout under way is looked at: the judge closes its windows then. */
const LOOKS_PER_WINDOW = 2;

/** Simulates one rollout from the first request to the last and returns what it found. */
export function simulatedRollout(setting: Setting, rollout: SimulatedRollout): RolloutSample {
  const { arms, design, seed, replica, startMicros, predicted } = rollout;
  const plan = twoArmPlan(design, seed);
  const judge = new Judge(judgeOptions(plan, 0.05, 100));
  const watch = new RolloutWatch(plannedRollout(plan, 0), judge, (request) => timesOf(predicted, request));
  const sessions = new SessionInference();
  let lookAt = startMicros;
  let started = false;
  const before = (at: Micros): void => {
    if (at < lookAt) return;
    if (!started) {
      started = true;
      const step = {
        kind: "rollout-step",
        at: startMicros,
        rollout: plan.name,
        step: "start",
        arm: "",
        reason: "",
      } as const;
      const refused = watch.accept(step);
      if (refused !== undefined) throw new Error(refused);
    }
    judge.advance(at);
    lookAt = at + design.windowMicros / LOOKS_PER_WINDOW;
  };
  const options = simulationOf(setting, arms[0], replica);
  const arrivals = new ArmArrivals(options.arrivals, (request, at) => {
    before(at);
    return watch.assign({ ...request, session: sessions.sessionOf(request) }, at).profile;
  });
  const simulation = new Simulation({
    ...withArms(options, arms, design),
    arrivals,
    observe: (input, decision) => watch.observe(input, decision),
  });
  simulation.run();
  judge.advance(Infinity);
  return sampleOf(judge, plan);
}

function timesOf(predicted: PredictedTimes | undefined, { id }: RouteRequest): Times | undefined {
  if (predicted === undefined) return undefined;
  const row = requestIndexOf(id);
  const known = (column: Float64Array) => (Number.isNaN(column[row]!) ? undefined : column[row]!);
  return { ttft: known(predicted.ttft), tpot: known(predicted.tpot), e2e: known(predicted.e2e) };
}

function withArms(options: SimulationOptions, arms: SimulatedRollout["arms"], design: Design): SimulationOptions {
  const [control, other] = arms.map(({ spec }, arm) => (design.kind === "pools" ? within(spec, POOLS[arm]!) : spec));
  return {
    ...options,
    router: { ...options.router, profiles: { control: control!, other: other! }, defaultProfile: "control" },
    engines: options.engines.map((engine, number) => ({
      ...engine,
      endpoint: {
        ...engine.endpoint,
        labels: { ...engine.endpoint.labels, [POOL_LABEL]: POOLS[number % POOLS.length]! },
      },
    })),
  };
}

/** A profile that asks the endpoints of one pool alone. */
function within(spec: ProfileSpec, pool: string): ProfileSpec {
  const parameters = { key: POOL_LABEL, values: pool, allowMissing: false };
  return { ...spec, filters: [{ plugin: "label", parameters }, ...spec.filters] };
}
