import { parseArgs } from "node:util";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { PLAIN_CLUSTER } from "./plain-cluster.ts";

/**
 * `node bench/studies.ts [affinity | decay | herding] [--scrape-millis n]`: what the simulator is for, with its output.
 * Gauges are read every second, as gnomon reads them, unless asked otherwise; herding has intervals of its own.
 */

const { values, positionals } = parseArgs({
  options: { "scrape-millis": { type: "string", default: "1000" } },
  allowPositionals: true,
});
const SCRAPE_MICROS: Micros = Number(values["scrape-millis"]) * MICROS_PER_MILLI;
if (!(SCRAPE_MICROS > 0))
  throw new RangeError(`--scrape-millis: expected a number above 0, got ${values["scrape-millis"]}`);

const ENGINES = 8;

const ENGINE: EngineConfig = engineDefaults({
  kvBlocks: 4001,
  modelTokensMax: 16_384,
  batchTokensMax: 8192,
  stepTime: { kind: "coefficients", baseMicros: 5752.705, perPrefillTokenMicros: 17.25086, perDecodeMicros: 5.99914 },
});

interface Shape {
  readonly conversations: number;
  readonly ratePerSecond: number;
  /** Part of the conversations that begin with one of `prefixes` shared prefixes of 1,024 tokens. */
  readonly sharedShare: number;
  readonly prefixes: number;
}

function requests({ conversations, ratePerSecond, sharedShare, prefixes }: Shape): WorkloadArrivals {
  const lengths = `
    userTokens: { distribution: normal, mean: 256, stddev: 64, min: 16, max: 1024 }
    outputTokens: { distribution: normal, mean: 100, stddev: 40, min: 2, max: 400 }`;
  const shared = `
  - name: shared
    weight: ${sharedShare}
    prefixes: ${prefixes}
    zipfExponent: 0.8
    prefixTokens: 1024${lengths}`;
  const alone = `
  - name: alone
    weight: ${1 - sharedShare}
    prefixTokens: 0${lengths}`;
  const spec = `
conversations: ${conversations}
arrivals: { process: poisson, ratePerSecond: ${ratePerSecond} }
groups:${shared}${sharedShare < 1 ? alone : ""}
`;
  const generated = synthesize(parseSyntheticSpec("study", spec), 42, new ImportReport("study", "synthetic", true));
  const options = { seed: 42, blockTokens: 16, timeoutMicros: Infinity, timeScale: 1, rateScale: 1 };
  return new WorkloadArrivals(generated, options);
}

function run(
  shape: Shape,
  profile: ProfileSpec,
  overrides: Partial<SimulationOptions> = {},
  staleAfterMicros = 3_000_000,
): SimulationResult {
  return simulate({
    router: { seed: 42, profiles: { study: profile }, defaultProfile: "study", blockTokens: 16, staleAfterMicros },
    engines: Array.from({ length: ENGINES }, (_, number) => ({
      config: ENGINE,
      endpoint: {
        id: `engine_${number}`,
        models: [],
        labels: {},
        kvCapacityTokens: (ENGINE.kvBlocks - 1) * ENGINE.blockTokens,
        concurrencyMax: ENGINE.sequencesMax,
      },
    })),
    arrivals: requests(shape),
    signals: scrapedEvery(SCRAPE_MICROS),
    ...PLAIN_CLUSTER,
    ...overrides,
  });
}

/** Requests of the busiest engine, and the standard deviation of all engines', over the mean: 1 and 0 are even. */
function concentration({ endpoints }: SimulationResult): { readonly busiest: number; readonly deviation: number } {
  const counts = endpoints.map(({ requests }) => requests);
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const variance = counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / counts.length;
  return { busiest: Math.max(...counts) / mean, deviation: Math.sqrt(variance) / mean };
}

function figures(result: SimulationResult): string {
  const ttft = result.metrics.ttftMicros["all"];
  const { busiest, deviation } = concentration(result);
  return [
    `${busiest.toFixed(2)}x`.padStart(8),
    `${(100 * deviation).toFixed(1)} %`.padStart(8),
    `${(100 * result.metrics.cacheHitRate.gpu).toFixed(1)} %`.padStart(8),
    ((ttft?.mean ?? 0) / 1000).toFixed(1).padStart(9),
    ((ttft?.p99 ?? 0) / 1000).toFixed(1).padStart(9),
  ].join(" ");
}

const HEAD = "busiest  std dev     hits   TTFT ms   p99";

function weighted(prefix: number, load: "queue-depth" | "queue" = "queue-depth"): ProfileSpec {
  const scorers = [
    { plugin: "prefix-affinity", weight: prefix, parameters: {} },
    { plugin: load, weight: 2, parameters: {} },
    { plugin: "kv-utilization", weight: 2, parameters: {} },
  ];
  return {
    filters: [],
    scorers: scorers.filter(({ weight }) => weight > 0),
    picker: { plugin: "max-score", parameters: {} },
  };
}

/** The weight of affinity from 0 to 5 beside 2 and 2, where 70 % of the prompts share one of 20 prefixes. */
function affinity(): void {
  const shape: Shape = { conversations: 4000, ratePerSecond: 100, sharedShare: 0.7, prefixes: 20 };
  print(
    `Weight of prefix-affinity beside queue-depth 2 and kv-utilization 2; 70 % of prompts share 20 prefixes\nweight  ${HEAD}`,
  );
  for (const weight of [0, 0.5, 1, 2, 3, 4, 5])
    print(`${String(weight).padEnd(6)} ${figures(run(shape, weighted(weight)))}`);
  print(
    `guard  ${figures(run(shape, loadProfile("gnomon-weighted").spec))}   (profile gnomon-weighted: 3, 2, 2 behind a guard)`,
  );
}

/**
 * How far what the router believes is from what the engines hold, and what an oracle would have been worth: by rate, by
 * the number of prefixes, and by pressure on the caches.
 */
function decay(): void {
  print(
    "Router's own index against the engines' caches: expected and found tokens per prompt token, then with an oracle",
  );
  print("rate prefixes   expected  found  wrong by   oracle's hits   TTFT ms own / oracle");
  const shapes: readonly Shape[] = [
    { conversations: 3000, ratePerSecond: 40, sharedShare: 1, prefixes: 20 },
    { conversations: 3000, ratePerSecond: 120, sharedShare: 1, prefixes: 20 },
    { conversations: 3000, ratePerSecond: 120, sharedShare: 1, prefixes: 100 },
    { conversations: 3000, ratePerSecond: 120, sharedShare: 1, prefixes: 400 },
    { conversations: 3000, ratePerSecond: 120, sharedShare: 1, prefixes: 1500 },
  ];
  for (const shape of shapes) {
    const own = run(shape, weighted(3));
    const oracle = run(shape, weighted(3), { prefixes: { kind: "engine-caches", delayMicros: 0 } });
    const { outcomes } = own;
    let expected = 0;
    let found = 0;
    let wrong = 0;
    let prompt = 0;
    for (let row = 0; row < outcomes.length; row++) {
      expected += outcomes.expectedTokens[row]!;
      found += outcomes.cachedTokens[row]!;
      wrong += Math.abs(outcomes.expectedTokens[row]! - outcomes.cachedTokens[row]!);
      prompt += outcomes.promptTokens[row]!;
    }
    const share = (tokens: number) => `${((100 * tokens) / prompt).toFixed(1)} %`.padStart(8);
    const ttft = ({ metrics }: SimulationResult) => ((metrics.ttftMicros["all"]?.mean ?? 0) / 1000).toFixed(1);
    print(
      `${String(shape.ratePerSecond).padEnd(4)} ${String(shape.prefixes).padStart(8)} ${share(expected)} ${share(found)} ` +
        `${share(wrong)}  ${(100 * oracle.metrics.cacheHitRate.gpu).toFixed(1).padStart(12)} %   ${ttft(own)} / ${ttft(oracle)}`,
    );
  }
}

/** Requests that follow a frozen gauge all go to one engine; a router that counts its own does not. */
function herding(): void {
  const shape: Shape = { conversations: 4000, ratePerSecond: 150, sharedShare: 1, prefixes: 20 };
  const scraped: ProfileSpec = {
    filters: [],
    scorers: [
      { plugin: "queue", weight: 1, parameters: {} },
      { plugin: "running-requests", weight: 1, parameters: {} },
      { plugin: "kv-utilization", weight: 1, parameters: {} },
    ],
    picker: { plugin: "max-score", parameters: {} },
  };
  const counting: ProfileSpec = { ...scraped, scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }] };
  const roundRobin: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
  print(
    `Gauges that are scraped every so often, together; the router sees gauges alone, or counts its own requests too\ninterval  router     ${HEAD}`,
  );
  for (const millis of [0, 10, 50, 200, 1000]) {
    const signals: SimulationOptions["signals"] =
      millis === 0 ? { mode: "oracle" } : { ...scrapedEvery(millis * 1000), phase: "together" };
    const name = millis === 0 ? "oracle" : `${millis} ms`;
    print(`${name.padEnd(9)} gauges   ${figures(run(shape, scraped, { signals }))}`);
    print(`${name.padEnd(9)} counting ${figures(run(shape, counting, { signals }))}`);
  }
  print(`          in turn  ${figures(run(shape, roundRobin))}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const STUDIES: Readonly<Record<string, () => void>> = { affinity, decay, herding };
const [asked] = positionals;
const chosen = asked === undefined ? Object.values(STUDIES) : [STUDIES[asked]];
for (const study of chosen) {
  if (study === undefined) throw new Error(`expected one of ${Object.keys(STUDIES).join(", ")}, got ${asked}`);
  study();
  print("");
}
