import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { AwaitedOutcomes } from "#core/rollout/judge/awaited-outcomes.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import { type Candidate, type Setting, simulationOf } from "#shadow/candidate/candidate.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { meanOf } from "#shadow/figure/mean-of.ts";
import { PredictionWindow } from "#shadow/rollout/prediction-window.ts";
import type { RolloutPredictions } from "#shadow/rollout/request-predictions.ts";
import { Simulation } from "#sim/simulation.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { type TraceHeader, TRACE_VERSION } from "#trace/codec/record.ts";
import { engineAt } from "./fleet.ts";
import { candidateNamed, requestsSetting } from "./study-setting.ts";

const RATES: readonly number[] = [50, 200, 500];
/** Answers of up to half a minute. */
const SPEED = 2.5;
const PER_ENGINE = 12;
/** As a gateway has them by itself: latest requests, the part of the heap, pause and share of a core. */
const WINDOW = { requestsMin: 2_000, bytesMax: 128 * 1024 * 1024 };
const [PAUSE_MICROS, SHARE] = [2 * MICROS_PER_SECOND, 0.1];
const REQUESTS_AT_ONCE = 16_384;

/**
 * How many requests of a rollout are predicted, in virtual time but for the processor time of the predictions themselves, and
 * what the predictions are worth: their correlation with what the same engines did.
 */
export function predictionsMade(seconds: number, only: string | undefined): void {
  print(
    "requests a second, answers' p99, predicted, without, most that waited, CPU, correlation of E2E with what came",
  );
  for (const rate of RATES) {
    if (only !== undefined && only !== String(rate)) continue;
    print(`${madeAt(rate, seconds, 0)}: of the latest ${WINDOW.requestsMin}`);
    print(`${madeAt(rate, seconds, WINDOW.bytesMax)}: of all that are needed`);
  }
}

function madeAt(rate: number, seconds: number, bytesMax: number): string {
  const setting = settingAt(rate, seconds);
  const control = candidateNamed("gnomon");
  const window = new PredictionWindow({ ...WINDOW, bytesMax });
  window.begin(headerOf(setting, control));
  const awaited = new AwaitedOutcomes();
  const arrivals = new Map<string, Micros>();
  const took = new Map<string, Micros>();
  const pairs: [number, number][] = [];
  let [nextAt, cpuMicros, most] = [PAUSE_MICROS, 0, 0];
  let coming: { readonly at: Micros; readonly made: readonly RolloutPredictions[] } | undefined;
  const take = (made: readonly RolloutPredictions[]) => {
    for (const [id, ttft, tpot, e2e] of made.flatMap(({ requests }) => requests)) {
      const [is, was] = [e2e, took.get(id)];
      awaited.take(id, { ttft: ttft ?? undefined, tpot: tpot ?? undefined, e2e: e2e ?? undefined });
      if (is !== null && was !== undefined) pairs.push([is, was]);
      took.delete(id);
    }
  };
  const simulation = new Simulation({
    ...simulationOf(setting, control, 0),
    observe: (input, decision) => {
      window.take(input, decision?.kind === "routed" ? decision.endpoint : undefined);
      const { at } = input;
      if (input.kind === "request-arrived") arrivals.set(input.request.id, at);
      if (input.kind === "request-finished") {
        const id = input.requestId;
        took.set(id, at - arrivals.get(id)!);
        arrivals.delete(id);
        awaited.add({ id, endAt: at, outcome: NONE });
        most = Math.max(most, awaited.size);
      }
      if (coming !== undefined && at >= coming.at) {
        take(coming.made);
        coming = undefined;
      }
      if (at < nextAt) return;
      const requests = [...awaited.all].slice(0, REQUESTS_AT_ONCE).map(({ id, endAt }) => [id, endAt] as const);
      window.awaits([{ rollout: "", control, isShared: false, requests }]);
      const before = process.threadCpuUsage();
      const made = window.predictions(50, (run) => {
        const { engine, signals } = setting;
        return recordedSetting(run, { engine, residuals: undefined, signals });
      });
      const { user, system } = process.threadCpuUsage(before);
      cpuMicros += user + system;
      coming = { at: at + user + system, made };
      nextAt = at + (user + system) / SHARE + PAUSE_MICROS;
    },
  });
  simulation.run();
  take(coming?.made ?? []);
  const times = pairs.map(([, was]) => was).sort((one, other) => one - other);
  const second = (micros: number) => `${(micros / MICROS_PER_SECOND).toFixed(0)} s`;
  return [
    String(rate).padStart(4),
    second(times[Math.floor(0.99 * times.length)] ?? NaN),
    `${awaited.predicted} predicted`,
    `${awaited.unpredicted} without`,
    `${most} waited`,
    `${second(cpuMicros)} of ${second(simulation.clock)}`,
    correlationOf(pairs).toFixed(3),
  ].join(", ");
}

/** Not kept by anything here. */
const NONE: RolloutOutcome = {
  arm: 0,
  window: 0,
  counted: true,
  stretch: 0,
  slice: 0,
  cluster: "",
  status: "ok",
  times: { ttft: undefined, tpot: undefined, e2e: undefined },
  endpoint: "",
  promptTokens: 0,
  cachedTokens: undefined,
};

function headerOf({ seed, blockTokens, staleAfterMicros, endpoints }: Setting, { name, spec }: Candidate): TraceHeader {
  return {
    version: TRACE_VERSION,
    run: "",
    segment: 0,
    startWallMicros: 0,
    router: {
      seed,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens,
      staleAfterMicros,
      breaker: undefined,
    },
    hash: { algorithm: "fast", blockTokens, tokenizer: "" },
    endpoints,
  };
}

/** Conversations of about two turns, on as many engines as they need. */
function settingAt(rate: number, seconds: number): Setting {
  const spec = `
conversations: ${Math.round((rate * seconds) / 2)}
arrivals: { process: poisson, ratePerSecond: ${rate / 2} }
groups:
  - name: chats
    weight: 1
    prefixes: 40
    zipfExponent: 0.8
    prefixTokens: 1024
    userTokens: { distribution: lognormal, median: 300, sigma: 0.8, min: 16, max: 4000 }
    outputTokens: { distribution: lognormal, median: 250, sigma: 0.8, min: 2, max: 800 }
    turns: { distribution: normal, mean: 2, stddev: 1, min: 1, max: 6 }
    thinkSeconds: 5
`;
  const workload = [...synthesize(parseSyntheticSpec("rate", spec), 1, new ImportReport("rate", "synthetic", true))];
  const engine = { ...engineAt(SPEED), kvBlocks: 8_001 };
  return {
    ...requestsSetting([], { endpoints: Math.ceil(rate / PER_ENGINE), engine: "emulated-default" }),
    workload,
    engine,
    blockTokens: engine.blockTokens,
  };
}

function correlationOf(pairs: readonly (readonly [number, number])[]): number {
  const [x, y] = [meanOf(pairs.map(([one]) => one)), meanOf(pairs.map(([, other]) => other))];
  let [xx, xy, yy] = [0, 0, 0];
  for (const [one, other] of pairs) {
    xx += (one - x) ** 2;
    xy += (one - x) * (other - y);
    yy += (other - y) ** 2;
  }
  return xy / Math.sqrt(xx * yy);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
