import type { Micros } from "../../base/units.ts";

/** A policy that a rollout sends part of the traffic by. */
export interface Arm {
  readonly name: string;
  /** Profile that decides for requests of this arm; "" is the router's default. */
  readonly profile: string;
  /** With pools: value of the design's label that this arm's endpoints carry. */
  readonly pool?: string;
}

/** What stays together on one arm: a conversation, a tenant, or each request by itself. */
export type SplitKey = "session" | "tenant" | "request";

const SPLIT_KEYS: readonly SplitKey[] = ["session", "tenant", "request"];

/**
 * How requests come to their arm. All count time in windows of `windowMicros` from the start or the last resumption.
 *
 * - switchback: the whole fleet is on one arm at a time. As many windows in a row as there are arms have each arm once, in
 *   random order. What arrives in the first `washoutMicros` of a window is routed by its arm and left out of the comparison:
 *   it still meets the queues and caches that the window before left behind.
 * - pools: each arm has endpoints of its own, marked by a label; keys are spread evenly over the arms, for
 *   good or anew in each window.
 * - split: keys are spread evenly over the arms, which share all endpoints.
 * - canary: a split of two arms whose second has the share of the current step; its windows are the steps' dwell.
 * - shadow: the control routes everything; the other arms also decide, without any effect.
 */
export type Design =
  | { readonly kind: "switchback"; readonly windowMicros: Micros; readonly washoutMicros: Micros }
  | {
      readonly kind: "pools";
      readonly windowMicros: Micros;
      readonly by: SplitKey;
      readonly label: string;
      /**
       * Keys are drawn anew for each window: windows are what was drawn, and what the pools themselves differ by is what
       * is compared: engines under one policy.
       */
      readonly redrawn?: true;
    }
  | { readonly kind: "split"; readonly windowMicros: Micros; readonly by: SplitKey }
  | {
      readonly kind: "canary";
      readonly windowMicros: Micros;
      readonly by: SplitKey;
      /** Share of the second arm in each step, in percent, rising. */
      readonly stepPercents: readonly number[];
    }
  | { readonly kind: "shadow"; readonly windowMicros: Micros };

const DESIGN_KINDS: readonly Design["kind"][] = ["switchback", "pools", "split", "canary", "shadow"];

/** One experiment on live traffic: plain data, as a file, a trace and the admin API hold it. */
export interface RolloutPlan {
  readonly name: string;
  /** Model that it is about; "" for all of them. */
  readonly model: string;
  /** Names the random order of windows and who is on which arm. */
  readonly seed: number;
  /** The first one is the control, which routes whenever the rollout does not run. */
  readonly arms: readonly Arm[];
  readonly design: Design;
  /** After a rollback no rollout of the same model starts for as long. */
  readonly cooldownMicros: Micros;
}

/** More arms leave too little traffic to each. */
const ARMS_MAX = 8;
const STEPS_MAX = 100;

/** What is wrong with a plan, each with its path; empty where nothing is. */
export function planProblems(plan: RolloutPlan): string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, path: string, expected: string, got: unknown) => {
    if (!holds) problems.push(`${path}: expected ${expected}, got ${JSON.stringify(got)}`);
  };
  const { name, seed, arms, design, cooldownMicros } = plan;
  expect(name !== "", "name", "a name", name);
  expect(Number.isSafeInteger(seed) && seed >= 0, "seed", "an integer of at least 0", seed);
  expect(arms.length >= 2 && arms.length <= ARMS_MAX, "arms", `2 to ${ARMS_MAX} arms, the control first`, arms.length);
  expect(isDuration(cooldownMicros, 0), "cooldownMicros", "a duration of at least 0", cooldownMicros);
  arms.forEach((arm, i) => {
    expect(arm.name !== "", `arms[${i}].name`, "a name", arm.name);
    const first = arms.findIndex((other) => other.name === arm.name);
    expect(first === i, `arms[${i}].name`, `a name of its own, unlike arms[${first}]`, arm.name);
  });
  problems.push(...designProblems(design, arms));
  return problems;
}

function designProblems(design: Design, arms: readonly Arm[]): string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, path: string, expected: string, got: unknown) => {
    if (!holds) problems.push(`${path}: expected ${expected}, got ${JSON.stringify(got)}`);
  };
  expect(DESIGN_KINDS.includes(design.kind), "design.kind", DESIGN_KINDS.join(", "), design.kind);
  expect(isDuration(design.windowMicros, 1), "design.windowMicros", "a duration above 0", design.windowMicros);
  if ("by" in design) expect(SPLIT_KEYS.includes(design.by), "design.by", SPLIT_KEYS.join(", "), design.by);
  if (design.kind === "switchback") {
    const { washoutMicros, windowMicros } = design;
    const inside = isDuration(washoutMicros, 0) && washoutMicros < windowMicros;
    expect(inside, "design.washoutMicros", `a duration below windowMicros (${windowMicros})`, washoutMicros);
  }
  if (design.kind === "pools") {
    expect(design.label !== "", "design.label", "the name of a label of endpoints", design.label);
    arms.forEach(({ pool }, i) => {
      const own = pool !== undefined && pool !== "" && arms.findIndex((arm) => arm.pool === pool) === i;
      expect(own, `arms[${i}].pool`, "a value of the label that no other arm has", pool);
    });
  }
  if (design.kind === "canary") {
    const { stepPercents: steps } = design;
    expect(arms.length === 2, "arms", "a control and one other arm for a canary", arms.length);
    const many = steps.length > 0 && steps.length <= STEPS_MAX;
    expect(many, "design.stepPercents", `1 to ${STEPS_MAX} steps`, steps.length);
    const rising = steps.every((step, i) => step > (steps[i - 1] ?? 0) && step <= 100);
    expect(rising, "design.stepPercents", "rising numbers above 0, at most 100", steps);
  }
  return problems;
}

function isDuration(micros: number, least: number): boolean {
  return Number.isSafeInteger(micros) && micros >= least;
}
