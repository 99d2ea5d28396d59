import { mix32, nameHash, randomFor } from "../base/random.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { RolloutPlan, SplitKey } from "./plan/rollout-plan.ts";
import { type RolloutState, windowAt } from "./rollout-state.ts";

/** By which policy a request is routed, and what it counts for. */
export interface Assignment {
  /** Place in the plan's arms. */
  readonly arm: number;
  readonly profile: string;
  /** Only endpoints whose label has this value may serve it; absent: all. */
  readonly pool?: { readonly label: string; readonly value: string };
  /** Number of the window that it arrived in; -1 while the rollout does not run. */
  readonly window: number;
  /** When that window ends; Infinity where there is none. */
  readonly windowEndAt: Micros;
  /** False where it is no part of the comparison: in a washout, or while the rollout does not run. */
  readonly counted: boolean;
  /** Arms that decide too, without consequence. */
  readonly shadowArms: readonly number[];
}

/** What a request's arm is drawn by. */
export type DrawnBy = Pick<RouteRequest, "id" | "session" | "tenant">;

const NO_ARMS: readonly number[] = [];
const CONTROL = 0;

/**
 * The arm of a request that arrives at a time. It follows from its arguments alone: the same request, time and state have
 * the same arm on every replica and after every restart. A key never changes its arm within a window; a canary's next
 * step moves keys from the control to the other arm, never back.
 *
 * `request.session` is the conversation as the router knows it, named or inferred.
 */
export function assignmentOf(request: DrawnBy, at: Micros, state: RolloutState): Assignment {
  const { plan, phase } = state;
  if (phase === "promoted")
    return outside(
      plan,
      plan.arms.findIndex(({ name }) => name === state.promoted),
    );
  if (phase !== "running") return outside(plan, CONTROL);
  const { design, arms } = plan;
  const window = windowAt(state, at);
  const windowStartAt = state.startedAt + (window - state.firstWindow) * design.windowMicros;
  const inWindow = (arm: number, counted: boolean, shadowArms = NO_ARMS): Assignment => {
    const { profile, pool } = arms[arm]!;
    return {
      arm,
      profile,
      ...(design.kind === "pools" && { pool: { label: design.label, value: pool! } }),
      window,
      windowEndAt: windowStartAt + design.windowMicros,
      counted,
      shadowArms,
    };
  };
  switch (design.kind) {
    case "switchback":
      return inWindow(switchbackArm(plan, window), at - windowStartAt >= design.washoutMicros);
    case "pools": {
      const drawn = design.redrawn === true ? window + 1 : 0;
      return inWindow(Math.floor(place(plan, request, design.by, drawn) * arms.length), true);
    }
    case "split":
      return inWindow(Math.floor(place(plan, request, design.by) * arms.length), true);
    case "canary": {
      const share = design.stepPercents[state.canaryStep]! / 100;
      return inWindow(place(plan, request, design.by) < share ? 1 : CONTROL, true);
    }
    case "shadow":
      return inWindow(CONTROL, true, arms.map((_, arm) => arm).slice(1));
  }
}

/**
 * A switchback's arm in a window: each arm once in as many windows in a row as there are arms, in an order drawn by
 * name.
 */
export function switchbackArm({ name, seed, arms }: RolloutPlan, window: number): number {
  const block = Math.floor(window / arms.length);
  const random = randomFor(seed, mix32(nameHash(name) ^ 0x5bd1e995) * 0x10_0000 + (block % 0x10_0000));
  const order = arms.map((_, arm) => arm);
  for (let i = order.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order[window % arms.length]!;
}

/** What stays on one arm: the session, the tenant or the request; where that is not known, the request itself. */
export function clusterOf(request: DrawnBy, by: SplitKey): string {
  const key = by === "session" ? request.session : by === "tenant" ? request.tenant : request.id;
  return key === "" ? request.id : key;
}

/** Where a request's key lies in [0, 1), evenly and independently of other rollouts, and of other draws. */
function place({ name, seed }: RolloutPlan, request: DrawnBy, by: SplitKey, draw = 0): number {
  const first = mix32(nameHash(name) ^ mix32(seed));
  const salt = draw === 0 ? first : mix32(first ^ mix32(draw));
  return mix32(nameHash(clusterOf(request, by)) ^ salt) / 0x1_0000_0000;
}

/** Before it runs and while it is paused the control routes; the promoted arm, without a pool, once there is one. */
function outside({ arms }: RolloutPlan, arm: number): Assignment {
  const { profile } = arms[arm]!;
  return { arm, profile, window: -1, windowEndAt: Infinity, counted: false, shadowArms: NO_ARMS };
}
