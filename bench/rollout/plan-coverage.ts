import { type Micros, MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import type { PlannedFigureKey } from "#shadow/job/rollout-sample.ts";
import { simulatedRollout } from "#shadow/job/simulated-rollout.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { shownIntervals } from "#shadow/rollout/shown-interval.ts";
import { meanOf } from "#shadow/figure/mean-of.ts";
import { rolloutStudy, type RolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { type ChoiceCase, type HalfName, OPEN } from "../default-choice/case.ts";
import { choiceWorkload } from "../default-choice/choice-workload.ts";
import type { KeptRuns } from "./kept-runs.ts";
import { candidateNamed, requestsSetting } from "./study-setting.ts";

/** The one that the cases were made for. */
const ENGINE = "h100-llama-3.1-8b";
const KEY: PlannedFigureKey = "e2e.mean";
const POWER = 0.8;
const LEVEL = 0.05;
/** Profiles that a plan compares with gnomon: one that is hardly worse on some traffic, and one that is on all. */
const OTHERS: readonly string[] = ["least-loaded", "random"];
const REQUESTS = 1_500;
const RUNS = 4;
/** Parts of a trace: each is planned from and held against all others, with so many draws of arms on each. */
const PARTS: readonly (readonly [HalfName, number])[] = [
  ["choosing", 1],
  ["choosing", 2],
  ["choosing", 3],
  ["held-out", 1],
  ["held-out", 2],
  ["held-out", 3],
];
const DRAWS = 8;
const START_SHARE = 0.1;

const MOONCAKE = { ...OPEN, path: "mooncake/conversation_trace.jsonl", halves: "time" } as const;

/** Five kinds of traffic; the last two are in no other bench of rollouts. */
const TRAFFIC: Readonly<Record<string, ChoiceCase>> = {
  conversations: { ...MOONCAKE, name: "conversations", rateScale: 3 },
  agents: {
    ...OPEN,
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
  code: { ...OPEN, name: "code", path: "azure/AzureLLMInferenceTrace_code.csv", halves: "time", rateScale: 4 },
  "short prompts": { ...OPEN, name: "short prompts", path: "chatbot.yaml", halves: "draws", rateScale: 4 },
};

/**
 * Plans made of each sixth of a trace, held against rollouts of what they recommend on the five others: how many of those
 * came out where the plan had one as long with a probability of 90 %, and how many rollouts had
 * found the difference by the end of their part, beside the probability that the plans gave that.
 */
export async function planCoverage(traces: string, only: string | undefined, kept: KeptRuns): Promise<void> {
  print(
    `plans from ${REQUESTS} requests each, mean E2E, ms: gnomon against another; ${PARTS.length - 1} other parts, ${DRAWS} rollouts on each`,
  );
  for (const [name, one] of Object.entries(TRAFFIC)) {
    for (const other of OTHERS) {
      const about = `${name}, ${other}`;
      if (only !== undefined && !about.startsWith(only)) continue;
      let known: Promise<Part[]> | undefined;
      const partsOf = () => (known ??= Promise.all(PARTS.map(([half, seed]) => partOf(one, half, seed, traces))));
      const all: Held[] = [];
      for (const number of PARTS.keys()) {
        const held = await kept.resultOf(`plan ${about} ${number} ${DRAWS}`, async () => {
          const parts = await partsOf();
          const others = parts.filter((_, i) => i !== number);
          return heldAgainst(parts[number]!.setting, others, one, other);
        });
        if (held === undefined) continue;
        all.push(held);
        print(`  ${about.padEnd(30)} ${held.design.padEnd(20)} ${heldText([held])}; ${held.shown}`);
      }
      if (all.length > 0) print(`${about.padEnd(53)} ${heldText(all)}`);
    }
  }
}

async function partOf(one: ChoiceCase, half: HalfName, seed: number, traces: string): Promise<Part> {
  const setting = await settingOf(one, half, seed, traces);
  return { setting, spanMicros: simulatedSpan(setting) };
}

interface Part {
  readonly setting: Setting;
  readonly spanMicros: Micros;
}

/** Until the last request comes: of conversations the first turns alone have a time of their own. */
function simulatedSpan(setting: Setting): Micros {
  const { arrivalMicros } = runCandidate(setting, candidateNamed("gnomon"));
  return arrivalMicros.reduce((last, at) => (at > last ? at : last), 0);
}

/** One plan beside what other parts showed. */
interface Held {
  readonly design: string;
  /** Its interval, and what the other parts showed, ms. */
  readonly shown: string;
  /** Rollouts on other parts that came out in its interval. */
  readonly within: number;
  readonly parts: number;
  /** 1 where the plan had no interval, since its traffic is too short for one. */
  readonly silent: number;
  /** The mean probability that it gave a rollout to find the difference by the end of its part, those that did, and all. */
  readonly promised: number;
  /** Where the plan has it on other traffic, and whether the share that was found is there. */
  readonly range: string;
  readonly inRange: number;
  readonly found: number;
  readonly rollouts: number;
}

async function heldAgainst(
  setting: Setting,
  others: readonly Part[],
  { engines }: ChoiceCase,
  other: string,
): Promise<Held> {
  const hours = others.map(comparedHours);
  const study = await planOf(setting, engines, other, hours);
  const chosen = study.designs.find((design) => design.name === study.recommendation.design)!;
  // Of a rollout as long as the others are.
  const interval = shownIntervals(chosen, [], study.traffic, meanOf(hours))[KEY];
  const drawn = others.map((part, i) =>
    Array.from({ length: DRAWS }, (_, draw) => rolled(part, chosen, other, 100 * i + draw + 1)),
  );
  const means = drawn.flat().map(({ mean }) => mean);
  const { powers, powerRanges } = chosen.figures[KEY];
  const [low, high] = [meanOf(powerRanges.map((one) => one.low)), meanOf(powerRanges.map((one) => one.high))];
  const [rollouts, finds] = [drawn.flat().length, drawn.flat().filter(({ found }) => found).length];
  const millis = (micros: number) => (micros / MICROS_PER_MILLI).toFixed(0);
  return {
    design: chosen.name,
    shown: `${interval === undefined ? "-" : `${millis(interval.low)} to ${millis(interval.high)}`} of ${millis(chosen.figures[KEY].truth)}: ${means.map(millis).join(" ")}, of one rollout ${millis(chosen.figures[KEY].runError ?? NaN)}`,
    within: means.filter((mean) => interval && interval.low <= mean && mean <= interval.high).length,
    // A plan that cannot say it has no interval.
    parts: interval === undefined ? 0 : means.length,
    silent: interval === undefined ? 1 : 0,
    promised: meanOf(powers),
    range: `${percent(low)} to ${percent(high)}`,
    // Of so few rollouts no share is nearer to its end.
    inRange: Math.floor(low * rollouts) <= finds && finds <= Math.ceil(high * rollouts) ? 1 : 0,
    found: finds,
    rollouts,
  };
}

function heldText(all: readonly Held[]): string {
  const sum = (of: (one: Held) => number) => all.reduce((total, one) => total + of(one), 0);
  const share = (value: number) => percent(value).padStart(5);
  return (
    `held ${sum(({ within }) => within)} of ${sum(({ parts }) => parts)}, ${sum(({ silent }) => silent)} of ${all.length} plans silent; ` +
    `promised ${share(sum(({ promised }) => promised) / all.length)}` +
    (all.length === 1 ? ` (${all[0]!.range}), ` : `, in range ${sum(({ inRange }) => inRange)} of ${all.length}, `) +
    `found ${share(sum(({ found }) => found) / sum(({ rollouts }) => rollouts))} of ${sum(({ rollouts }) => rollouts)}`
  );
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}

/** Until the end of a part, from when it is compared. */
function comparedHours({ spanMicros }: Part): number {
  return ((1 - START_SHARE) * spanMicros) / (3600 * MICROS_PER_SECOND);
}

function planOf(setting: Setting, engines: number, other: string, hours: readonly number[]): Promise<RolloutStudy> {
  return rolloutStudy({
    setting,
    control: candidateNamed("gnomon"),
    other: candidateNamed(other),
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
    hours,
    threadsMax: 1,
  });
}

interface Rolled {
  readonly mean: number;
  /** Whether the difference was found by the end of the part. */
  readonly found: boolean;
}

function rolled(part: Part, { design, figures }: DesignStudy, other: string, seed: number): Rolled {
  const startMicros = Math.round(START_SHARE * part.spanMicros);
  const { estimate, valuesPerHour } = figures[KEY];
  let found = false;
  const sample = simulatedRollout(
    part.setting,
    {
      arms: [candidateNamed("gnomon"), candidateNamed(other)],
      design,
      seed,
      replica: 0,
      startMicros,
      predicted: undefined,
      level: LEVEL,
      plannedCount: Math.max(3, valuesPerHour * comparedHours(part)),
    },
    (_, judge) => {
      const { low, high } = judge.difference(1, "e2e", "mean");
      found ||= estimate > 0 ? low > 0 : high < 0;
    },
  );
  return { mean: sample.figures[KEY].plain.mean, found };
}

async function settingOf(one: ChoiceCase, half: HalfName, seed: number, traces: string): Promise<Setting> {
  const requests = await choiceWorkload(one, half, seed, REQUESTS, traces);
  // Sessions are drawn in another order than they are read in.
  const inOrder = requests.toSorted((one, other) => one.arrivalMicros - other.arrivalMicros);
  const sent = inOrder.map((request, index) => ({ ...request, index }));
  return requestsSetting(sent, { endpoints: one.engines, engine: ENGINE });
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
