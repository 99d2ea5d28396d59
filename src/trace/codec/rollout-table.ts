import type { ArmAlternative, DecisionRollout } from "#core/input/decision.ts";
import { FIGURE_KEYS } from "#core/rollout/judge/figure-key.ts";
import type { JudgeRules } from "#core/rollout/judge/judge-rules.ts";
import type { RequestPrediction, RolloutInput } from "#core/rollout/rollout-input.ts";
import type { Arm, Design, RolloutPlan } from "#core/rollout/plan/rollout-plan.ts";
import type { Phase, RolloutState, StepKind } from "#core/rollout/rollout-state.ts";
import { expected } from "./format-error.ts";
import {
  bool,
  type FieldType,
  flag,
  integer,
  listOf,
  number,
  oneOf,
  optional,
  pathOf,
  text,
  unchecked,
} from "./field-type.ts";
import { profiles } from "./profile-table.ts";
import { record, type TablesByKind, tagged } from "./record-type.ts";

const STEPS: readonly StepKind[] = ["start", "pause", "resume", "advance", "lengthen", "promote", "rollback"];
const PHASES: readonly Phase[] = ["planned", "running", "paused", "promoted", "rolled-back"];

const windowMicros = integer(1);
const by = oneOf(["session", "tenant", "request"]);
/** Of a clock that may have begun later. */
const time = integer(Number.MIN_SAFE_INTEGER);

const design = tagged<Design, "kind">("kind", {
  switchback: record({ windowMicros, washoutMicros: integer(0) }),
  pools: record<Omit<Extract<Design, { readonly kind: "pools" }>, "kind">>({
    windowMicros,
    by,
    label: text,
    redrawn: flag,
  }),
  split: record({ windowMicros, by }),
  canary: record({ windowMicros, by, stepPercents: listOf(number) }),
  shadow: record({ windowMicros }),
});

const plan = record<RolloutPlan>({
  name: text,
  model: text,
  seed: integer(0),
  arms: listOf(record<Arm>({ name: text, profile: text, pool: optional(text) })),
  design,
  cooldownMicros: integer(0),
});

/** Whether rules and predictions fit the plan is for the core that replays it to say. */
export const rules = record<JudgeRules>({
  level: number,
  primary: optional(oneOf(FIGURE_KEYS)),
  plannedCount: number,
  settleMicros: integer(0),
  awaitsPredictions: flag,
  windowSamplesMin: integer(1),
  margin: optional(number),
  stepSamplesMin: optional(integer(1)),
  guardrails: unchecked("a list"),
  predictions: unchecked("a list"),
});

export const rolloutState = record<RolloutState>({
  plan,
  phase: oneOf(PHASES),
  at: time,
  startedAt: time,
  firstWindow: integer(0),
  canaryStep: integer(0),
  lengthened: optional(integer(1)),
  promoted: text,
  reason: text,
});

const prediction: FieldType<RequestPrediction> = {
  write: (row, to) => to.json(JSON.stringify(row)),
  read(row, parent, key) {
    const isTime = (value: unknown) => value === null || typeof value === "number";
    if (Array.isArray(row) && row.length === 4 && typeof row[0] === "string" && row.slice(1).every(isTime))
      return row as unknown as RequestPrediction;
    throw expected(pathOf(parent, key), "an id and three numbers or null", row);
  },
};

/** What moves a rollout, beside its time. */
export const rolloutInputs: TablesByKind<RolloutBody, "kind"> = {
  "rollout-planned": record({ plan, rules, profiles }),
  "rollout-step": record({ rollout: text, step: oneOf(STEPS), arm: text, reason: text, by: text }),
  "rollout-removed": record({ rollout: text }),
  // Made by the judge of the same version; one that does not fit is refused when it is restored.
  "rollout-restored": record<Omit<Extract<RolloutBody, { readonly kind: "rollout-restored" }>, "kind">>({
    rules,
    profiles,
    state: rolloutState,
    judge: optional(unchecked("an object")),
    agreements: optional(unchecked("a list")),
  }),
  "rollout-look": record({}),
  "rollout-predicted": record({ rollout: text, requests: listOf(prediction) }),
  "rollout-shared": record<Omit<Extract<RolloutBody, { readonly kind: "rollout-shared" }>, "kind">>({
    rollout: text,
    together: bool,
    judge: optional(unchecked("an object")),
    entries: unchecked("a list"),
    replica: text,
    open: unchecked("a list"),
  }),
  "sessions-restored": record({ keys: listOf(number) }),
};

type WithoutTime<T> = T extends unknown ? Omit<T, "at"> : never;
type RolloutBody = WithoutTime<RolloutInput>;

/** What a decision states of its rollout. */
export const decisionRollout = record<DecisionRollout>({
  name: text,
  arm: text,
  window: integer(-1),
  outsidePool: flag,
  alternatives: optional(listOf(record<ArmAlternative>({ arm: integer(0), endpoint: text, hitTokens: number }))),
});
