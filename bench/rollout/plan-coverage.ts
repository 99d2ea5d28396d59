import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { effectFound } from "#core/rollout/judge/confidence-sequence.ts";
import { figureLevel } from "#core/rollout/judge/figure-level.ts";

import { type Setting, spanOf } from "#shadow/candidate/candidate.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import type { PlannedFigureKey } from "#shadow/job/rollout-sample.ts";
import { simulatedRollout } from "#shadow/job/simulated-rollout.ts";
import { twoArmPlan } from "#shadow/job/two-arm-plan.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { rolloutStudy, type RolloutStudy } from "#shadow/rollout/rollout-study.ts";
import type { ChoiceCase, HalfName } from "../default-choice/case.ts";
import { choiceWorkload } from "../default-choice/choice-workload.ts";
import { candidateNamed, requestsSetting } from "./study-setting.ts";

/** The one that the cases were made for. */
const ENGINE = "h100-llama-3.1-8b";
const KEY: PlannedFigureKey = "e2e.mean";
const POWER = 0.8;
const LEVEL = 0.05;
/** Of the profile that a plan compares with gnomon. */
const OTHER = "least-loaded";
const REQUESTS = 1_500;
const RUNS = 4;
/** Other parts of the trace than the plan's, and draws of arms on each. */
const PARTS: readonly (readonly [HalfName, number])[] = [
  ["choosing", 2],
  ["choosing", 3],
  ["held-out", 1],
  ["held-out", 2],
  ["held-out", 3],
];
const DRAWS = 3;
const START_SHARE = 0.1;

const EVEN = {
  fleet: "even",
  engines: 8,
  sessionsPerSecond: 1,
  tokenScale: 1,
  outputScale: 1,
  thinkSecondsMax: Infinity,
  beside: [],
} as const;
const MOONCAKE = { ...EVEN, path: "mooncake/conversation_trace.jsonl", halves: "time" } as const;

/** Five kinds of traffic; the last two are in no other bench of rollouts. */
const TRAFFIC: Readonly<Record<string, ChoiceCase>> = {
  conversations: { ...MOONCAKE, name: "conversations", rateScale: 3 },
  agents: {
    ...EVEN,
    name: "agents",
    path: "weka",
    halves: "sessions",
    rateScale: 1,
    engines: 4,
    sessionsPerSecond: 2,
    thinkSecondsMax: 5,
  },
  "decode-heavy": { ...MOONCAKE, name: "decode-heavy", rateScale: 4, tokenScale: 0.25, outputScale: 3 },
  // Slow, since a sixth of the trace would last half a minute at the rate of its other benches.
  code: { ...EVEN, name: "code", path: "azure/AzureLLMInferenceTrace_code.csv", halves: "time", rateScale: 4 },
  "short prompts": { ...EVEN, name: "short prompts", path: "chatbot.yaml", halves: "draws", rateScale: 4 },
};

/**
 * Plans made of a sixth of a trace, held against rollouts of what they recommend on the other parts: how many parts came out
 * (in the mean of a few draws of arms) where the plan had it with a probability of 90 %, and how many rollouts had found the
 * difference by the end of their part, beside the probability that the plan gives that.
 */
export async function planCoverage(traces: string, only: string | undefined): Promise<void> {
  print(
    `plans of gnomon against ${OTHER} from ${REQUESTS} requests, mean E2E, ms; ${PARTS.length} other parts, ${DRAWS} rollouts on each`,
  );
  for (const [name, one] of Object.entries(TRAFFIC)) {
    if (only !== undefined && name !== only) continue;
    const study = await planOf(await settingOf(one, "choosing", 1, traces), one);
    const { recommendation, shown } = study;
    const chosen = study.designs.find((design) => design.name === recommendation.design)!;
    const interval = shown[KEY];
    const hours = chosen.figures[KEY].hours;
    const results: Rolled[] = [];
    const means: number[] = [];
    for (const [i, [half, seed]] of PARTS.entries()) {
      const setting = await settingOf(one, half, seed, traces);
      const drawn = Array.from({ length: DRAWS }, (_, draw) => rolled(setting, chosen, 100 * i + draw + 1));
      results.push(...drawn);
      means.push(drawn.reduce((sum, { mean }) => sum + mean, 0) / DRAWS);
    }
    const within = means.filter((mean) => interval && interval.low <= mean && mean <= interval.high).length;
    const found = results.filter((result) => result.found).length;
    const spans = results.map(({ hours: span }) => span);
    const promised = spans.reduce((sum, span) => sum + powerAt(chosen, study, span), 0) / spans.length;
    const planned = hours === undefined ? "not within two months" : `${(60 * hours).toFixed(0)} minutes`;
    const power = `in a part's time promised ${(100 * promised).toFixed(0)} %, found by ${found} of ${results.length}`;
    print(
      `${name.padEnd(14)} ${chosen.name.padEnd(20)} predicted ${ms(interval?.low)} to ${ms(interval?.high)}; ` +
        `shown ${means.map((mean) => ms(mean)).join(" ")}: ${within} of ${means.length}; planned ${planned}, ${power}`,
    );
  }
}

function planOf(setting: Setting, { engines }: ChoiceCase): Promise<RolloutStudy> {
  return rolloutStudy({
    setting,
    control: candidateNamed("gnomon"),
    other: candidateNamed(OTHER),
    designs: (spanMicros) =>
      namedDesigns({
        spanMicros,
        requests: setting.workload.length,
        endpoints: engines,
        hasSessions: true,
        hasTenants: false,
        canarySteps: [25],
      }).filter(({ design: { kind } }) => kind === "switchback" || kind === "split"),
    runs: RUNS,
    power: POWER,
    level: LEVEL,
    figure: KEY,
    hours: [1],
    threadsMax: 1,
  });
}

interface Rolled {
  readonly mean: number;
  /** Whether the difference was found by the end of the part, and how long it was compared. */
  readonly found: boolean;
  readonly hours: number;
}

/** Probability to find what the plan expects, in a time, with what it does not know of the traffic. */
function powerAt({ design, figures }: DesignStudy, { traffic }: RolloutStudy, hours: number): number {
  const { estimate, runError, clusters, valuesPerHour, biasError } = figures[KEY];
  const level = figureLevel({ level: LEVEL, primary: KEY }, twoArmPlan(design, 0), KEY);
  const effectError = Math.hypot(biasError, Math.SQRT2 * (traffic[KEY]?.error ?? 0));
  const deviation = runError * Math.sqrt(clusters);
  const reached = (standardErrors: number) =>
    effectFound(valuesPerHour * hours, deviation, { level, standardErrors, effectError });
  // Too few blocks for any interval.
  if (!Number.isFinite(reached(0))) return 0;
  return normalShare((Math.abs(estimate) - reached(0)) / (reached(1) - reached(0)));
}

/** Share of a normal distribution below that many deviations (logistic approximation, to within 1 %). */
function normalShare(deviations: number): number {
  return 1 / (1 + Math.exp(-1.702 * deviations));
}

function rolled(setting: Setting, { design, figures }: DesignStudy, seed: number): Rolled {
  const spanMicros = spanOf(setting);
  const startMicros = Math.round(START_SHARE * spanMicros);
  const hours = (spanMicros - startMicros) / (3600 * MICROS_PER_SECOND);
  const { estimate, valuesPerHour } = figures[KEY];
  let found = false;
  const sample = simulatedRollout(
    setting,
    {
      arms: [candidateNamed("gnomon"), candidateNamed(OTHER)],
      design,
      seed,
      replica: 0,
      startMicros,
      predicted: undefined,
      level: LEVEL,
      plannedCount: Math.max(3, valuesPerHour * hours),
    },
    (_, judge) => {
      const { low, high } = judge.difference(1, "e2e", "mean");
      found ||= estimate > 0 ? low > 0 : high < 0;
    },
  );
  return { mean: sample.figures[KEY].plain.mean, found, hours };
}

async function settingOf(one: ChoiceCase, half: HalfName, seed: number, traces: string): Promise<Setting> {
  const requests = await choiceWorkload(one, half, seed, REQUESTS, traces);
  return requestsSetting(requests, { endpoints: one.engines, engine: ENGINE });
}

function ms(micros = NaN): string {
  return `${micros < 0 ? "" : "+"}${(micros / 1000).toFixed(0)}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
