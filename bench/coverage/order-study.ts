import { loadProfile } from "#config/profile-file.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { calibrate, CannotIdentify } from "#shadow/calibrate/calibrate.ts";
import { BETWEEN_RUNS_STATED } from "#shadow/recorded/between-runs.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import type { CandidateAnswer } from "#shadow/question/what-if.ts";
import type { Metric } from "#shadow/figure/metric.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { seenSpeed } from "#shadow/calibrate/seen-speed.ts";
import { residualsFor, sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import { METRICS, REPLICAS } from "./ask.ts";
import { drawnRun, type DrawnTraffic, driftOf, type Machine, TRUE_ENGINE } from "./drawn-run.ts";
import { percent, tableOf } from "./table.ts";

const MACHINE: Machine = {
  betweenRuns: 0.08,
  withinRun: 0.1,
  swingMicros: 3_000_000,
  stallsPerSecond: 0.1,
  stallMicros: 400_000,
};
const ENDPOINTS = ["one", "two", "three"];
/** For all three together: near saturation, and half of that. */
const TRAFFIC: readonly (readonly [string, DrawnTraffic])[] = [
  ["near saturation", { requests: 700, gapMicros: 41_000 }],
  ["half of it", { requests: 400, gapMicros: 80_000 }],
];
const IN_FORCE = "round-robin";
const PROFILES = ["gnomon", "gnomon-weighted", "least-loaded", IN_FORCE];
const BANDS = [0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1];
const SCRAPE_MICROS = 1_000_000;

/** A difference of means to the profile in force: whether its interval held it, and how wide it is, paired and not. */
interface Difference {
  readonly metric: Metric;
  readonly inside: boolean;
  /** High less low, over the mean of the profile in force. */
  readonly width: number;
  /** The same of two forecasts that do not meet the same draws. */
  readonly apart: number;
  /** It was called more than chance, and had the other sign. */
  readonly isWrong: boolean;
}

/** A probability that was stated of an order, and whether it was so. */
interface Stated {
  readonly likely: number;
  readonly was: boolean;
}

/**
 * What-if's probabilities of an order against the order that the drawn machine really has: calibrated on a run under one
 * profile, asked about others on the traffic of another run.
 */
export async function orderStudy(seeds: number): Promise<void> {
  for (const [name, traffic] of TRAFFIC) {
    const stated: Stated[] = [];
    const differences: Difference[] = [];
    let [right, asked] = [0, 0];
    for (let seed = 0; seed < seeds; seed++) {
      const found = await ordersOf(traffic, seed);
      if (found === undefined) continue;
      asked++;
      if (found.firstIsRight) right++;
      stated.push(...found.stated);
      differences.push(...found.differences);
    }
    console.log(
      `\nOrder of ${PROFILES.length} profiles by mean E2E, ${name}: the first one right in ${right} of ${asked}`,
    );
    const table = tableOf(["stated that a is before b", "pairs", "mean stated", "was so"]);
    for (let i = 0; i + 1 < BANDS.length; i++) {
      const [low, high] = [BANDS[i]!, BANDS[i + 1]!];
      const inside = stated.filter(({ likely }) => likely >= low && (likely < high || high === 1));
      if (inside.length === 0) continue;
      const mean = inside.reduce((sum, { likely }) => sum + likely, 0) / inside.length;
      const was = inside.filter((one) => one.was).length / inside.length;
      table.push([`${percent(low)} to ${percent(high)}`, String(inside.length), percent(mean), percent(was)]);
    }
    console.log(table.toString());
    printDifferences(differences);
  }
}

function printDifferences(all: readonly Difference[]): void {
  const table = tableOf(["difference to the profile in force", "inside 90 %", "width", "unpaired", "wrong sign"]);
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  for (const [metric, name] of METRICS) {
    const these = all.filter((one) => one.metric === metric);
    if (these.length === 0) continue;
    table.push([
      `mean ${name}`,
      `${these.filter(({ inside }) => inside).length} of ${these.length}`,
      percent(meanOf(these.map(({ width }) => width))),
      percent(meanOf(these.map(({ apart }) => apart))),
      String(these.filter(({ isWrong }) => isWrong).length),
    ]);
  }
  console.log(table.toString());
}

async function ordersOf(traffic: DrawnTraffic, seed: number) {
  const [source, target] = [observedRun(traffic, 2 * seed), observedRun(traffic, 2 * seed + 1)];
  const sizes = TRUE_ENGINE;
  try {
    const { engine, residuals } = calibrate(evidenceOf(source.run, sizes.blockTokens), {
      sizes,
      betweenRuns: BETWEEN_RUNS_STATED,
    });
    const seen = () => seenSpeed(evidenceOf(target.run, sizes.blockTokens), engine);
    const origin = { runs: [sourceRunOf(source.run.header)] };
    const here = residualsFor(residuals, origin, target.run.header, seen).residuals;
    const setting = recordedSetting(target.run, { engine, residuals: here, signals: scrapedEvery(SCRAPE_MICROS) });
    const candidates = PROFILES.map((name) => ({ name, spec: loadProfile(name).spec }));
    const inForce = candidates.find(({ name }) => name === IN_FORCE)!;
    const { observed } = target.run;
    const answer = await whatIf({ setting, inForce, candidates, observed, replicas: REPLICAS, threadsMax: 1 });
    const truth = answer.candidates.map(({ name }) => target.meanOf(name, "e2eMicros"));
    const base = answer.candidates.find(({ name }) => name === IN_FORCE)!;
    const differences = answer.candidates.flatMap((one) =>
      one === base ? [] : differencesOf(one, base, target.meanOf),
    );
    const stated = truth.flatMap((one, a) =>
      truth.flatMap((other, b) => (a === b ? [] : [{ likely: answer.ranking.before[a]![b]!, was: one < other }])),
    );
    return { stated, differences, firstIsRight: truth[0] === Math.min(...truth) };
  } catch (error) {
    if (error instanceof CannotIdentify) return undefined;
    throw error;
  }
}

/** A run under the profile in force at three such engines, and what every profile would have had in it. */
function observedRun(traffic: DrawnTraffic, seed: number) {
  const asked = drawnRun(MACHINE, traffic, seed);
  const [one] = asked.endpoints;
  const endpoints = ENDPOINTS.map((id) => ({ ...one!, id }));
  const drift = driftOf(MACHINE, randomFor(seed, nameHash("drawn machine")));
  const engine = { ...TRUE_ENGINE, stepDrift: drift };
  const base = recordedSetting(
    { ...asked, endpoints },
    { engine, residuals: undefined, signals: scrapedEvery(SCRAPE_MICROS) },
  );
  const setting: Setting = { ...base, seed };
  const outcomeOf = (name: string) => runCandidate(setting, { name, spec: loadProfile(name).spec });
  const real = outcomeOf(IN_FORCE);
  const observed = asked.observed.map((row, i): Observed => {
    return {
      ...row,
      endpoint: ENDPOINTS[real.endpoint[i]!] ?? "",
      ttftMicros: real.ttftMicros[i]!,
      e2eMicros: real.e2eMicros[i]!,
      cachedTokens: real.cachedTokens[i]!,
    };
  });
  const run: RecordedRun = { ...asked, endpoints, observed };
  const outcomes = new Map(PROFILES.map((name) => [name, outcomeOf(name)]));
  const meanOf: TrueMean = (name, metric) => figuresOf(outcomes.get(name)![metric])!.mean;
  return { run, meanOf };
}

/** What the drawn machine really has. */
type TrueMean = (name: string, metric: Metric) => number;

function differencesOf(one: CandidateAnswer, base: CandidateAnswer, meanOf: TrueMean): Difference[] {
  return METRICS.flatMap(([metric]) => {
    const interval = one.differenceInterval[metric];
    const [own, other] = [one.intervals[metric]?.mean, base.intervals[metric]?.mean];
    if (interval === undefined || own === undefined || other === undefined) return [];
    const truth = meanOf(one.name, metric) - meanOf(base.name, metric);
    const mean = base.predicted[metric]!.mean;
    return [
      {
        metric,
        inside: truth >= interval.low && truth <= interval.high,
        width: (interval.high - interval.low) / mean,
        apart: Math.hypot(own.high - own.low, other.high - other.low) / mean,
        isWrong: one.exceedsNoise[metric] === true && truth * one.difference[metric]!.mean < 0,
      },
    ];
  });
}
