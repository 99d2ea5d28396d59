import * as z from "zod";
import { MARGIN_DEFAULT, STEP_SAMPLES_DEFAULT } from "#core/rollout/judge/canary-reading.ts";
import { FIGURE_KEYS, PRIMARY_DEFAULT } from "#core/rollout/judge/figure-key.ts";
import { GUARDED_FIGURES } from "#core/rollout/judge/guardrail.ts";
import { TIME_FIGURES, TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const NAME_CHARS_MAX = 128;
const name = () => z.string().min(1).max(NAME_CHARS_MAX);

const arm = z.strictObject({
  name: name().describe("Name of the arm."),
  profile: z.string().min(1).optional().describe("Profile by name; without it, what the policy has at the start."),
  pool: name().optional().describe("With the design pools: value of its label that the arm's endpoints have."),
});

type DesignKind = "switchback" | "pools" | "split" | "canary" | "shadow";

/**
 * Windows where a document names none. A switchback finds a tail by many blocks of short windows, and makes them longer by
 * itself where an arm lasts into the other one's, or where so few requests come that nothing is compared.
 */
export const WINDOW_MILLIS_DEFAULT: Readonly<Record<DesignKind, number>> = {
  switchback: 20_000,
  pools: 60_000,
  split: 60_000,
  canary: 600_000,
  shadow: 600_000,
};

/** Percent. A first step of one in a hundred shows most harm only after hours: of 20 rollouts of two, ten-fold errors in 13. */
export const CANARY_STEPS_DEFAULT: readonly number[] = [5, 25, 50, 100];

const design = z
  .strictObject({
    kind: z
      .enum(["switchback", "pools", "split", "canary", "shadow"])
      .default("switchback")
      .describe(
        "switchback: the whole fleet is on one arm at a time. pools: each arm has endpoints of its own. split: requests are spread. canary: a split of two arms in steps. shadow: the control routes, the others decide too.",
      ),
    windowMillis: millis(1, 7 * MILLIS_PER_DAY)
      .optional()
      .describe(
        "Length of a window; of a canary, the least time of a step. Where it is left out: switchback 20 s, pools and split a minute, canary and shadow ten.",
      ),
    washoutMillis: millis(0, MILLIS_PER_DAY)
      .optional()
      .describe(
        "Of a switchback: what arrives so long after a change of arms is not compared; a fifth of the window. Where an arm's effect is seen to last longer, or no window has requests enough to be compared, the rollout makes both longer by itself.",
      ),
    by: z
      .enum(["session", "tenant", "request"])
      .default("session")
      .describe("What stays on one arm, with pools, split and canary."),
    label: name().default("pool").describe("Of pools: the label of endpoints that names them."),
    stepPercents: z
      .array(z.number().gt(0).max(100))
      .min(1)
      .max(100)
      .default([...CANARY_STEPS_DEFAULT])
      .describe("Of a canary: the second arm's share in each step, rising."),
  })
  .refine(({ kind, windowMillis = WINDOW_MILLIS_DEFAULT[kind], washoutMillis = 0 }) => washoutMillis < windowMillis, {
    path: ["washoutMillis"],
    message: "less than windowMillis",
  });

const guardrail = z
  .strictObject({
    figure: z.enum(GUARDED_FIGURES as [string, ...string[]]).describe("What is watched."),
    absoluteMaxMillis: z.number().gt(0).optional().describe("Of a time: it may be at most so long."),
    absoluteMaxShare: z.number().gt(0).max(1).optional().describe("Of a rate: it may be at most that share."),
    relativeMax: z.number().gt(0).optional().describe("At most this multiple of the control's."),
    each: z
      .enum(["tenant", "class"])
      .optional()
      .describe("Of a relative limit: it is judged for each tenant or class with samples enough."),
    samplesMin: z.int().min(1).max(1e9).default(30).describe("Fewer requests decide nothing."),
    holdMillis: millis(0, MILLIS_PER_DAY)
      .optional()
      .describe("Time for which it must be crossed without a break before it trips; unset: it trips at once."),
    overdueMillis: millis(1, MILLIS_PER_DAY)
      .optional()
      .describe("Of overdue-rate: from when a first token is; 30 s where it is left out."),
  })
  .refine(({ figure, absoluteMaxMillis, absoluteMaxShare, relativeMax }) => {
    const [own, other] = figure.endsWith("-rate")
      ? [absoluteMaxShare, absoluteMaxMillis]
      : [absoluteMaxMillis, absoluteMaxShare];
    return other === undefined && (own !== undefined || relativeMax !== undefined);
  }, "relativeMax, or absoluteMaxShare of a rate and absoluteMaxMillis of a time");

const prediction = z
  .strictObject({
    arm: name().describe("Name of an arm beside the control."),
    metric: z.enum(TIME_METRICS).describe("What was predicted."),
    figure: z.enum(TIME_FIGURES).default("mean").describe("Which figure of it."),
    lowMillis: z.number().describe("The arm's less the control's is predicted to be at least this."),
    highMillis: z.number().describe("At most this."),
  })
  .refine(({ lowMillis, highMillis }) => lowMillis <= highMillis, {
    path: ["highMillis"],
    message: "at least lowMillis",
  });

/** A rollout as a file or the admin API describes it. */
export const ROLLOUT_SCHEMA = z.strictObject({
  name: name().describe("Names it for good: one of a name is started once."),
  model: z
    .string()
    .max(NAME_CHARS_MAX)
    .default("")
    .describe("Model that it is about; all of them where it is left out."),
  seed: z
    .int()
    .min(0)
    .max(Number.MAX_SAFE_INTEGER)
    .optional()
    .describe("Of who is on which arm, and of the order of windows; the name's where it is left out."),
  arms: z
    .array(arm)
    .min(2)
    .max(8)
    .meta({ expected: "2 to 8 arms, the control first" })
    .describe(
      "The control first. Or by name: {control: gnomon, other: lmetric}; or endpoints by a label: {by: version, control: a, other: b}.",
    ),
  design: design.prefault({}).describe("How requests come to their arm; its kind alone is enough."),
  baselineMillis: millis(0, MILLIS_PER_DAY)
    .default(10_000)
    .describe("Before the first window, so long what the policy does is watched, for guardrails to compare with."),
  cooldownMillis: millis(0, 30 * MILLIS_PER_DAY)
    .default(600_000)
    .describe("After a rollback no rollout of the model starts for as long."),
  level: z
    .number()
    .gt(0)
    .lt(1)
    .default(0.05)
    .describe("Share of rollouts of which anything that is shown is a false alarm at some look, limits included."),
  primary: z
    .enum(FIGURE_KEYS as [string, ...string[]])
    .default(PRIMARY_DEFAULT)
    .describe("What it is to find: four tenths of the level are for this figure, as many for the other eleven."),
  plannedCount: z
    .number()
    .min(1)
    .max(1e9)
    .default(20)
    .describe(
      "Blocks of windows, or sessions, at which intervals are to be narrowest; `gnomon rollout plan` has the number.",
    ),
  settleMillis: millis(0, MILLIS_PER_DAY)
    .default(300_000)
    .describe(
      "Longest wait for the answers of a window that ended, and for what is predicted of them; what is left out then are the longest ones.",
    ),
  adjusted: z
    .boolean()
    .optional()
    .describe(
      "Take away what is predicted of each request if the control had routed all: narrower intervals, and tails that are found sooner. True where it is left out, unless nothing predicts (rollout.predict).",
    ),
  windowSamplesMin: z.int().min(1).max(1e9).default(10).describe("A window with fewer has no figures."),
  margin: z
    .number()
    .gt(0)
    .max(10)
    .default(MARGIN_DEFAULT)
    .describe(
      "Of a canary: share that all traffic may lose by its next step in the median of what is primary; it steps once more is ruled out, and with it that 1 % more fail or are slow beside others.",
    ),
  stepSamplesMin: z
    .int()
    .min(1)
    .max(1e9)
    .default(STEP_SAMPLES_DEFAULT)
    .describe("Of a canary: least requests of each arm and step."),
  guardrails: z
    .array(guardrail)
    .max(64)
    .optional()
    .describe(
      "Limits that take the rollout back as soon as an arm is surely beyond one: the lower end of its figure, which is valid at any time of looking, with a fifth of the level shared by all of them. Left out: p50, p90 and p99 of each time at most 1.25 times the control's, errors, refusals and overdue first tokens twice, prompt tokens that no cache had 1.5 times, of a split 1.5 times the requests that were the slowest to their first token of those that ended beside them; of each tenant and class p50 of TTFT and E2E twice, errors three times; error-rate at most 5 %, overdue-rate 90 % in a window.",
    ),
  predictions: z
    .array(prediction)
    .max(96)
    .default([])
    .describe("What was predicted; what contradicts it pauses the rollout."),
});

export type RolloutDocument = z.infer<typeof ROLLOUT_SCHEMA>;

export const rollout = z.strictObject({
  lookMillis: millis(10, 600_000).default(1000).describe("Time between two evaluations of a running rollout."),
  predict: z
    .boolean()
    .default(true)
    .describe(
      "Predict the requests that rollouts compare. Where no shadow runs (shadow.enabled), a thread beside the gateway does that while a rollout is under way, with the heap, processor share and engine that `shadow` states.",
    ),
  keptMax: z.int().min(1).max(64).default(16).describe("Rollouts that are kept; the oldest ended ones are forgotten."),
  start: z
    .array(ROLLOUT_SCHEMA)
    .max(16)
    .default([])
    .describe(
      "Rollouts to start, each once by its name, as soon as no other one of its model runs. May change while the gateway runs.",
    ),
});
