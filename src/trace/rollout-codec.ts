import type { DecisionRollout } from "#core/decision.ts";
import type { Input } from "#core/input.ts";
import type { Agreement } from "#core/rollout/agreement.ts";
import type { SavedJudge } from "#core/rollout/judge/judge.ts";
import type { JudgeRules } from "#core/rollout/judge/judge-rules.ts";
import type { RequestPrediction, RolloutInput, RolloutSpec } from "#core/rollout/rollout-input.ts";
import type { Arm, Design, RolloutPlan } from "#core/rollout/rollout-plan.ts";
import type { Phase, RolloutState, StepKind } from "#core/rollout/rollout-state.ts";
import { Fields, expected } from "./fields.ts";
import { decodeProfiles } from "./profile-codec.ts";

const STEPS: readonly StepKind[] = ["start", "pause", "resume", "advance", "promote", "rollback"];
const PHASES: readonly Phase[] = ["planned", "running", "paused", "promoted", "rolled-back"];
const DESIGNS: readonly Design["kind"][] = ["switchback", "pools", "split", "canary", "shadow"];

const KINDS: Readonly<Record<RolloutInput["kind"], true>> = {
  "rollout-planned": true,
  "rollout-step": true,
  "rollout-removed": true,
  "rollout-restored": true,
  "rollout-look": true,
  "rollout-predicted": true,
  "sessions-restored": true,
};

export function isRolloutKind(kind: Input["kind"]): kind is RolloutInput["kind"] {
  return Object.hasOwn(KINDS, kind);
}

/** The fields of such an input behind kind and time, as the inside of a JSON object; "" for none, else from a comma on. */
export function encodeRollout({ kind: _kind, at: _at, ...rest }: RolloutInput): string {
  const text = JSON.stringify(rest).slice(1, -1);
  return text === "" ? "" : `,${text}`;
}

/** Reads such an input back. Whether the plan can be carried out is for the core that replays it to say. */
export function decodeRollout(kind: RolloutInput["kind"], at: number, fields: Fields): RolloutInput {
  switch (kind) {
    case "rollout-planned":
      return { kind, at, ...decodeSpec(fields, decodePlan(fields.object("plan"))) };
    case "rollout-restored":
      return {
        kind,
        at,
        ...restoredSpec(fields),
        // Made by the judge of the same version; one that does not fit is refused when it is restored.
        ...(fields.has("judge") && { judge: present(fields, "judge") as unknown as SavedJudge }),
        ...(fields.has("agreements") && { agreements: fields.list("agreements") as readonly Agreement[] }),
      };
    case "rollout-step":
      return {
        kind,
        at,
        rollout: fields.string("rollout"),
        step: fields.oneOf("step", STEPS),
        arm: fields.string("arm"),
        reason: fields.string("reason"),
        by: fields.string("by"),
      };
    case "rollout-removed":
      return { kind, at, rollout: fields.string("rollout") };
    case "rollout-look":
      return { kind, at };
    case "rollout-predicted":
      return {
        kind,
        at,
        rollout: fields.string("rollout"),
        requests: fields.list("requests").map((row, i) => prediction(row, `${fields.pathOf("requests")}[${i}]`)),
      };
    case "sessions-restored":
      return { kind, at, keys: numbers(fields, "keys") };
  }
}

/** Rules and profiles of a rollout beside its plan. Throws TraceFormatError where something is of another shape. */
export function decodeSpec(fields: Fields, plan: RolloutPlan): RolloutSpec {
  return {
    plan,
    rules: decodeRules(fields.object("rules")),
    profiles: decodeProfiles(fields.object("profiles")),
  };
}

export function decodeRolloutState(fields: Fields): RolloutState {
  return {
    plan: decodePlan(fields.object("plan")),
    phase: fields.oneOf("phase", PHASES),
    at: time(fields, "at"),
    startedAt: time(fields, "startedAt"),
    firstWindow: fields.integer("firstWindow", 0),
    canaryStep: fields.integer("canaryStep", 0),
    promoted: fields.string("promoted"),
    reason: fields.string("reason"),
  };
}

/** What a decision states of its rollout, where it does. */
export function decodeDecisionRollout(fields: Fields): { readonly rollout?: DecisionRollout } {
  if (!fields.has("rollout")) return {};
  const rollout = fields.object("rollout");
  const alternatives = rollout.has("alternatives") ? rollout.list("alternatives") : [];
  return {
    rollout: {
      name: rollout.string("name"),
      arm: rollout.string("arm"),
      window: rollout.integer("window", -1),
      ...(rollout.boolean("outsidePool", false) && { outsidePool: true }),
      ...(alternatives.length > 0 && {
        alternatives: alternatives.map((entry, i) => {
          const one = new Fields(entry, `${rollout.pathOf("alternatives")}[${i}]`);
          return {
            arm: one.integer("arm", 0),
            endpoint: one.string("endpoint"),
            hitTokens: one.number("hitTokens"),
          };
        }),
      }),
    },
  };
}

function restoredSpec(fields: Fields) {
  const state = decodeRolloutState(fields.object("state"));
  const { rules, profiles } = decodeSpec(fields, state.plan);
  return { state, rules, profiles };
}

function decodePlan(fields: Fields): RolloutPlan {
  return {
    name: fields.string("name"),
    model: fields.string("model"),
    seed: fields.integer("seed", 0),
    arms: fields.list("arms").map((entry, i) => decodeArm(new Fields(entry, `${fields.pathOf("arms")}[${i}]`))),
    design: decodeDesign(fields.object("design")),
    cooldownMicros: fields.integer("cooldownMicros", 0),
  };
}

function decodeArm(fields: Fields): Arm {
  return {
    name: fields.string("name"),
    profile: fields.string("profile"),
    ...(fields.has("pool") && { pool: fields.string("pool") }),
  };
}

function decodeDesign(fields: Fields): Design {
  const kind = fields.oneOf("kind", DESIGNS);
  const windowMicros = fields.integer("windowMicros", 1);
  const by = () => fields.oneOf("by", ["session", "tenant", "request"]);
  switch (kind) {
    case "switchback":
      return { kind, windowMicros, washoutMicros: fields.integer("washoutMicros", 0) };
    case "pools":
      return { kind, windowMicros, by: by(), label: fields.string("label") };
    case "split":
      return { kind, windowMicros, by: by() };
    case "canary":
      return { kind, windowMicros, by: by(), stepPercents: numbers(fields, "stepPercents") };
    case "shadow":
      return { kind, windowMicros };
  }
}

function decodeRules(fields: Fields): JudgeRules {
  return {
    level: fields.number("level"),
    plannedCount: fields.number("plannedCount"),
    settleMicros: fields.integer("settleMicros", 0),
    ...(fields.boolean("awaitsPredictions", false) && { awaitsPredictions: true }),
    windowSamplesMin: fields.integer("windowSamplesMin", 1),
    guardrails: fields.list("guardrails") as JudgeRules["guardrails"],
    predictions: fields.list("predictions") as JudgeRules["predictions"],
  };
}

function prediction(row: unknown, path: string): RequestPrediction {
  const isTime = (value: unknown) => value === null || typeof value === "number";
  if (Array.isArray(row) && row.length === 4 && typeof row[0] === "string" && row.slice(1).every(isTime)) {
    return row as unknown as RequestPrediction;
  }
  throw expected(path, "an id and three numbers or null", row);
}

function numbers(fields: Fields, key: string): number[] {
  return fields.list(key).map((value, i) => {
    if (typeof value !== "number") throw expected(`${fields.pathOf(key)}[${i}]`, "a number", value);
    return value;
  });
}

/** Of a clock that may have begun later. */
function time(fields: Fields, key: string): number {
  return fields.integer(key, Number.MIN_SAFE_INTEGER);
}

function present(fields: Fields, key: string): object {
  fields.object(key);
  return fields.raw(key) as object;
}
