import { randomFor } from "#core/base/random.ts";
import { engineDefaults } from "#engine/config.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { simulate } from "#sim/simulate.ts";
import { type ListedArrival, ListedArrivals } from "./simulate/listed-arrivals.ts";
import { exponential } from "#trace/import/exponential.ts";
import { ln } from "#trace/import/portable-math.ts";
import { PLAIN_CLUSTER } from "./plain-cluster.ts";

/**
 * The simulator's mean wait against theory: Poisson arrivals at one engine that serves one request at a time, each step
 * taking as long.
 *
 *   Wq = lambda E[S^2] / (2 (1 - rho))      (Pollaczek and Khinchine)
 *
 * M/D/1: all answers are as long. M/M/1-like: lengths are geometric, which is the exponential in whole steps. A queue
 * near saturation needs very many arrivals for its mean: with n of them the relative standard error of Wq at 0.9 is
 * about 20 / sqrt(n). The arrivals' own mean gap and service are known exactly and are made to fit (each sample is
 * scaled to its mean), which removes most of that error.
 */
const STEP_MICROS = 1_000;
const TOKENS_MEAN = 50;
const RELATIVE_ERROR_MAX = 0.02;

interface Queue {
  readonly name: "M/M/1-like" | "M/D/1";
  readonly utilisation: number;
}

function main(requests: number, seeds: number): void {
  process.stdout.write(`${requests} arrivals, ${seeds} seeds\nqueue       rho   Wq theory ms   simulated ms   error\n`);
  for (const name of ["M/M/1-like", "M/D/1"] as const) {
    for (const utilisation of [0.3, 0.6, 0.9]) {
      const theory = waitInTheory({ name, utilisation });
      let sum = 0;
      for (let seed = 0; seed < seeds; seed++) sum += meanWait({ name, utilisation }, requests, seed);
      const mean = sum / seeds;
      const error = mean / theory - 1;
      if (Math.abs(error) > RELATIVE_ERROR_MAX) process.exitCode = 1;
      process.stdout.write(
        `${name.padEnd(11)} ${utilisation.toFixed(1)} ${(theory / 1000).toFixed(3).padStart(14)} ` +
          `${(mean / 1000).toFixed(3).padStart(14)} ${(100 * error).toFixed(2).padStart(6)} %\n`,
      );
    }
  }
}

function waitInTheory({ name, utilisation }: Queue): number {
  const service = STEP_MICROS * TOKENS_MEAN;
  const p = 1 / TOKENS_MEAN;
  const secondMoment = name === "M/D/1" ? service * service : ((2 - p) / (p * p)) * STEP_MICROS * STEP_MICROS;
  return ((utilisation / service) * secondMoment) / (2 * (1 - utilisation));
}

function meanWait(queue: Queue, count: number, seed: number): number {
  const engine = engineDefaults({
    sequencesMax: 1,
    stepTime: { kind: "coefficients", baseMicros: STEP_MICROS, perPrefillTokenMicros: 0, perDecodeMicros: 0 },
  });
  const endpoint = { id: "engine", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: 1 };
  const { metrics } = simulate({
    router: {
      seed,
      profiles: { turns: { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } } },
      defaultProfile: "turns",
      blockTokens: 16,
      staleAfterMicros: 3_000_000,
    },
    engines: [{ config: engine, endpoint }],
    arrivals: new ListedArrivals(arrivals(queue, count, seed)),
    signals: scrapedEvery(60_000_000),
    ...PLAIN_CLUSTER,
  });
  return metrics.queueDelayMicros["all"]?.mean ?? NaN;
}

function* arrivals({ name, utilisation }: Queue, count: number, seed: number): Generator<ListedArrival> {
  const gaps = randomFor(seed, 1);
  const lengths = randomFor(seed, 2);
  const gapSample = Float64Array.from({ length: count }, () => exponential(gaps));
  const tokens = Int32Array.from({ length: count }, () =>
    name === "M/D/1" ? TOKENS_MEAN : 1 + Math.floor(ln(1 - lengths.next()) / ln(1 - 1 / TOKENS_MEAN)),
  );
  const work = tokens.reduce((sum, one) => sum + one, 0) * STEP_MICROS;
  const span = gapSample.reduce((sum, gap) => sum + gap, 0);
  let at = 0;
  for (let number = 0; number < count; number++) {
    at += (gapSample[number]! / span) * (work / utilisation);
    yield {
      route: {
        id: String(number),
        model: "",
        tenant: "",
        session: "",
        sloClass: "",
        priority: 0,
        promptTokens: 1,
        promptTokensExact: true,
        outputTokensMax: undefined,
        sequences: 1,
        blocks: { hashes: new Int32Array(0), length: 0, blockTokens: 16 },
        profile: "",
      },
      arrivalAt: Math.round(at),
      outputTokens: tokens[number]!,
      deadlineAt: Infinity,
    };
  }
}

const [requests = "200000", seeds = "5"] = process.argv.slice(2);
main(Number(requests), Number(seeds));
