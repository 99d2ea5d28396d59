/**
 * What the engine model costs by itself: requests in turn over engines of an 8B model on an H100 by roofline, prompts of
 * 512 tokens (and, with a prefix, 1,024 shared ones of 32 groups before them), answers of 128, at about 65 % load.
 *
 *     npx node bench/engine.ts [requests [engines]]
 */
import Table from "cli-table3";
import { type Random, randomFor } from "#core/random.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest } from "#engine/request.ts";

const BLOCK_TOKENS = 16;
const PREFIX_BLOCKS = 64;
const PREFIX_GROUPS = 32;

interface Arrival {
  readonly at: number;
  readonly request: EngineRequest;
}

const requests = Number(process.argv[2] ?? 100_000);
const engines = Number(process.argv[3] ?? 16);

const CONFIG: EngineConfig = engineDefaults({
  blockTokens: BLOCK_TOKENS,
  kvBlocks: 29_206,
  stepTime: {
    kind: "roofline",
    tensorParallel: 1,
    model: {
      layers: 32,
      hidden: 4096,
      heads: 32,
      kvHeads: 8,
      intermediate: 14336,
      bytesPerParameter: 2,
      mlpMatrices: 2,
    },
    hardware: { tflopsPeak: 989.5, bandwidthTbs: 3.35, mfuPrefill: 0.45, mfuDecode: 0.3 },
  },
});

const table = new Table({
  head: ["", "CPU ms", "us a request", "steps", "tokens", "hits", "RSS MB"],
  style: { head: [], border: [], compact: true },
});
for (const prefixBlocks of [0, PREFIX_BLOCKS]) {
  const arrivals = generate(prefixBlocks, prefixBlocks > 0 ? 35 : 42);
  for (const [name, overrides] of [
    ["coalesced", {}],
    ["coalesced, async scheduling", { asyncScheduling: true }],
    ["single steps", { coalesce: false }],
  ] as const) {
    table.push([`${prefixBlocks > 0 ? "prefix groups" : "no prefix"}, ${name}`, ...measure(arrivals, overrides)]);
  }
}
console.log(`${requests} requests over ${engines} engines`);
console.log(table.toString());

/** Poisson arrivals at so many requests a second and engine. */
function generate(prefixBlocks: number, ratePerEngine: number): Arrival[] {
  const random = randomFor(42, 1);
  let at = 0;
  return Array.from({ length: requests }, (_, number) => {
    at += Math.round((-Math.log(1 - random.next()) / (ratePerEngine * engines)) * 1e6);
    const promptTokens = prefixBlocks * BLOCK_TOKENS + clamp(normal(random, 512, 128), 2, 2048);
    const outputTokens = clamp(normal(random, 128, 64), 1, 512);
    const hashes = new Int32Array(2 * Math.floor(promptTokens / BLOCK_TOKENS));
    const group = random.below(PREFIX_GROUPS);
    for (let i = 0; i < hashes.length / 2; i++) {
      hashes[2 * i] = i < prefixBlocks ? group : PREFIX_GROUPS + number;
      hashes[2 * i + 1] = i;
    }
    const request = { id: String(number), promptTokens, outputTokens, hashes, priority: 0 };
    return { at, request: { ...request, deadlineAt: undefined, cacheRead: true } };
  });
}

function measure(arrivals: readonly Arrival[], overrides: Partial<EngineConfig>): string[] {
  let finished = 0;
  const fleet = Array.from({ length: engines }, () => {
    return new Engine({ ...CONFIG, ...overrides }, { token: () => undefined, finished: () => finished++ });
  });
  const before = process.cpuUsage();
  arrivals.forEach(({ at, request }, number) => {
    const engine = fleet[number % engines];
    engine?.advanceTo(at - 1);
    engine?.submit(at, request);
  });
  for (const engine of fleet) {
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  }
  const { user, system } = process.cpuUsage(before);
  if (finished !== arrivals.length) throw new Error(`${finished} of ${arrivals.length} requests finished`);
  const gauges = fleet.map((engine) => engine.gauges());
  const sum = (value: (gauge: (typeof gauges)[number]) => number) =>
    gauges.reduce((total, gauge) => total + value(gauge), 0);
  return [
    ((user + system) / 1e3).toFixed(0),
    ((user + system) / requests).toFixed(1),
    String(sum((gauge) => gauge.steps)),
    String(sum((gauge) => gauge.generationTokens)),
    (sum((gauge) => gauge.prefixHitsTokens) / sum((gauge) => gauge.prefixQueriesTokens)).toFixed(3),
    (process.memoryUsage().rss / 1e6).toFixed(0),
  ];
}

/** The sum of twelve uniform draws, near enough. */
function normal(random: Random, mean: number, deviation: number): number {
  let sum = -6;
  for (let i = 0; i < 12; i++) sum += random.next();
  return Math.round(mean + deviation * sum);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
