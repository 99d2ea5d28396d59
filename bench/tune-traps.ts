/**
 * Attempts to get a bad policy past `gnomon tune`: made-up traffic of drawn kinds, some of it short, before engines
 * that are as the model has them or 30 % faster or slower, observed or not, and a search of few simulations. What it
 * calls better is then judged by the true engines on other traffic of the same kind.
 *
 *     npx node bench/tune-traps.ts [--attempts 100] [--seed 1] [--trials 20]
 *
 * Ends with exit code 1 where something that was called better is worse by more than a hundredth.
 */
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { type Candidate, runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { COMMON_SCORERS } from "#shadow/tune/policy-space.ts";
import { tune } from "#shadow/tune/tune.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

const { values } = parseArgs({
  options: {
    attempts: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    trials: { type: "string", default: "20" },
  },
});
const [attempts, seed, trials] = [values.attempts, values.seed, values.trials].map(Number) as [number, number, number];

const ENDPOINTS = 3;
const PROFILES = ["gnomon", "round-robin", "random", "llm-d", "lmetric", "least-loaded", "sticky", "always-busiest"];
const BASES = ["gnomon", "llm-d", "always-busiest", "random", "sticky", "lmetric"];
/** Of the true engine's step times: as the model has them, or 30 % off. */
const OFF: readonly number[] = [1, 1, 1 / 1.3, 1.3];
/** Conversations that a proposal is judged on. */
const JUDGED = 600;
const WORSE = 0.01;

const named = (name: string): Candidate => ({ name, spec: loadProfile(name).spec });
const counts = { better: 0, uncertain: 0, nothing: 0, refused: 0 };
let [bad, held, gains] = [0, 0, 0];
for (let attempt = 0; attempt < attempts; attempt++) {
  const random = randomFor(seed, attempt);
  const kind = drawnKind(random);
  const off = OFF[random.below(OFF.length)]!;
  const isObserved = random.below(2) === 0;
  const inForce = named(PROFILES[random.below(PROFILES.length)]!);
  const workload = trafficOf(kind, kind.conversations, attempt);
  const model = settingOf(workload, 1);
  const truth = settingOf(workload, off);
  const { verdict, winner, heldOut } = await tune({
    setting: model,
    inForce,
    bases: BASES.map(named),
    space: { scorers: COMMON_SCORERS, accepts: () => true },
    objective: { kind: "time", metric: "e2eMicros", figure: "mean" },
    observed: isObserved ? observedOf(truth, inForce) : undefined,
    share: 0.5,
    trialsMax: trials,
    budgetMillis: Infinity,
    replicas: 6,
    gainMin: 0.01,
    memory: { get: () => undefined, put: () => {} },
    now: () => 0,
    threadsMax: 1,
  });
  counts[verdict.kind]++;
  if (verdict.kind !== "better" || winner === undefined || heldOut === undefined) continue;
  const other = settingOf(trafficOf(kind, JUDGED, attempt + attempts), off);
  const [before, after] = [inForce, winner.candidate].map((one) => meanOf(other, one)) as [number, number];
  const gain = (before - after) / before;
  gains += gain;
  if (gain >= heldOut.gain.low && gain <= heldOut.gain.high) held++;
  if (gain >= -WORSE) continue;
  bad++;
  print(
    `BAD: attempt ${attempt}, ${inForce.name} -> ${winner.origin}: ${percent(heldOut.gain.value)} predicted, ${percent(gain)} true`,
  );
}
print(
  `${attempts} attempts: ${Object.entries(counts)
    .map(([one, count]) => `${count} ${one}`)
    .join(", ")}`,
);
print(
  `of ${counts.better} called better ${bad} are worse by more than ${percent(WORSE)} on the true engines and other traffic; ` +
    `their mean true gain is ${percent(gains / Math.max(1, counts.better))}, inside the stated interval ${held} times`,
);
process.exitCode = bad > 0 ? 1 : 0;

interface Kind {
  readonly conversations: number;
  readonly ratePerSecond: number;
  readonly prefixes: number;
  readonly prefixTokens: number;
  readonly outputTokens: number;
}

function drawnKind(random: Random): Kind {
  const one = (...all: readonly number[]) => all[random.below(all.length)]!;
  return {
    conversations: one(12, 40, 120, 120, 240),
    ratePerSecond: one(4, 8, 12, 16),
    prefixes: one(1, 6, 24),
    prefixTokens: one(64, 512, 2048),
    outputTokens: one(20, 60, 200),
  };
}

function trafficOf(kind: Kind, conversations: number, draw: number): WorkloadRequest[] {
  const { ratePerSecond, prefixes, prefixTokens, outputTokens } = kind;
  const text = `
conversations: ${conversations}
arrivals: { process: poisson, ratePerSecond: ${ratePerSecond} }
groups:
  - name: g
    prefixes: ${prefixes}
    prefixTokens: ${prefixTokens}
    userTokens: { distribution: uniform, min: 20, max: 400 }
    outputTokens: { distribution: uniform, min: 5, max: ${outputTokens} }
    turns: { distribution: uniform, min: 1, max: 3 }
    thinkSeconds: 0.5
`;
  return [...synthesize(parseSyntheticSpec("spec", text), draw, new ImportReport("spec", "synthetic", true))];
}

function settingOf(workload: readonly WorkloadRequest[], off: number): Setting {
  const engine = engineDefaults({ kvBlocks: 2000 });
  return {
    seed,
    workload,
    endpoints: numberedIds("endpoint", ENDPOINTS).map((id) => ({
      id,
      models: [],
      labels: {},
      kvCapacityTokens: undefined,
      concurrencyMax: undefined,
    })),
    fleetEvents: [],
    engine: slower(engine, off),
    signals: scrapedEvery(MICROS_PER_SECOND),
    blockTokens: engine.blockTokens,
    staleAfterMicros: 3 * MICROS_PER_SECOND,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
  };
}

function slower(engine: EngineConfig, times: number): EngineConfig {
  return { ...engine, stepDrift: { windowMicros: MICROS_PER_SECOND, factors: Float64Array.of(times) } };
}

function observedOf(setting: Setting, candidate: Candidate) {
  const { ttftMicros, e2eMicros } = runCandidate(setting, candidate);
  return Array.from(setting.workload, ({ index, outputTokens }) => ({
    endpoint: "endpoint_0",
    ok: true,
    ttftMicros: ttftMicros[index]!,
    e2eMicros: e2eMicros[index]!,
    outputTokens,
    cachedTokens: 0,
    attempts: 1,
    retriedMicros: 0,
  }));
}

function meanOf(setting: Setting, candidate: Candidate): number {
  return figuresOf(runCandidate(setting, candidate).e2eMicros)?.mean ?? NaN;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
