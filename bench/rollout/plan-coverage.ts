import { MICROS_PER_SECOND } from "#core/base/units.ts";

import { type Setting, spanOf } from "#shadow/candidate/candidate.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import type { PlannedFigureKey } from "#shadow/job/rollout-sample.ts";
import { simulatedRollout } from "#shadow/job/simulated-rollout.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { rolloutStudy, type RolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { CHOICE_CASES, type ChoiceCase, type HalfName } from "../default-choice/case.ts";
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

function caseNamed(name: string): ChoiceCase {
  return CHOICE_CASES.find((one) => one.name === name)!;
}

/** Five kinds of traffic; the last two are in no other bench of rollouts. */
const TRAFFIC: Readonly<Record<string, ChoiceCase>> = {
  conversations: caseNamed("conversations, moderate"),
  agents: caseNamed("agents, closed loop, high"),
  "decode-heavy": caseNamed("decode-heavy, moderate"),
  // At a quarter of its rate, since a sixth of the trace would last half a minute.
  code: { ...caseNamed("code, moderate"), rateScale: 4 },
  "short prompts": caseNamed("short prompts, moderate"),
};

/**
 * Plans made of a sixth of a trace, held against rollouts of what they recommend on the other parts: how many parts came out
 * (in the mean of a few draws of arms) where the plan had it with a probability of 90 %, and how many found the difference by when it was promised
 * with one of 80 %.
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
      const drawn = Array.from({ length: DRAWS }, (_, draw) => rolled(setting, chosen, 100 * i + draw + 1, hours));
      results.push(...drawn);
      means.push(drawn.reduce((sum, { mean }) => sum + mean, 0) / DRAWS);
    }
    const within = means.filter((mean) => interval && interval.low <= mean && mean <= interval.high).length;
    const longEnough = results.filter(({ found }) => found !== undefined);
    const found = longEnough.filter((result) => result.found === true).length;
    const planned = hours === undefined ? "not within two months" : `${(60 * hours).toFixed(0)} minutes`;
    const power = longEnough.length === 0 ? "longer than the trace" : `found by then ${found} of ${longEnough.length}`;
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
  /** Whether the difference was found by when it was planned; undefined where the traffic ends before. */
  readonly found: boolean | undefined;
}

function rolled(setting: Setting, { design, figures }: DesignStudy, seed: number, hours: number | undefined): Rolled {
  const spanMicros = spanOf(setting);
  const startMicros = Math.round(START_SHARE * spanMicros);
  const endMicros = startMicros + 3600 * MICROS_PER_SECOND * (hours ?? Infinity);
  const { estimate, valuesPerHour } = figures[KEY];
  let isFound = false;
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
      plannedCount: Math.max(3, valuesPerHour * (hours ?? 1)),
    },
    (at, judge) => {
      const { low, high } = judge.difference(1, "e2e", "mean");
      if (at <= endMicros) isFound ||= estimate > 0 ? low > 0 : high < 0;
    },
  );
  return { mean: sample.figures[KEY].plain.mean, found: endMicros <= spanMicros ? isFound : undefined };
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
