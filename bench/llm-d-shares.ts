/**
 * Which endpoint a running llm-d picks, beside gnomon's profile of the same scorers, for the same arrivals:
 *
 *     npx node bench/llm-d-shares.ts --envoy BINARY --llm-d BINARY [--requests 600] [--rates 12,24] [--seed 1]
 *
 * Envoy asks llm-d-router's picker (its default scorers) before three emulated engines; then gnomon's picker with the
 * profile `llm-d`, before engines of the same kind that were started anew; then the simulator has the same arrivals, a
 * hundred times. Conversations over a few system prompts, as token ids in whole blocks of 64, so that all three know
 * the same prefixes.
 *
 * Each of llm-d's decisions is then looked at by gnomon's router, with what had gone where until then and the gauges of
 * that moment (read every 50 ms, as llm-d does): among the profile's best endpoints, or not. Where several are equally
 * good both draw one, so shares are compared with what such draws give on average, and names may change places.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { engineDefaults } from "#engine/config.ts";
import { readEnginePage } from "#live/scrape/scrape-map.ts";
import { loadOf, readingOf } from "#live/scrape/scrape-map-load.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { simulate } from "#sim/simulate.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { endAll, kept, message } from "./children.ts";
import { SERVED_HEADER, startEnvoy } from "./envoy-process.ts";
import { freePort } from "./free-port.ts";
import { startGateway } from "./gateway-process.ts";
import { startLlmD } from "./llm-d-process.ts";
import { type Arrival, BLOCK_TOKENS, asWorkload, drawArrivals } from "./llm-d-shares/arrivals.ts";
import { type Scraped, type Served, follow } from "./llm-d-shares/follow.ts";
import { PLAIN_CLUSTER } from "./plain-cluster.ts";

/** As deploy/envoy.yaml has them. */
const ENGINES = 3;
const STEP_MILLIS = 20;
const KV_BLOCKS = 2_000;
/** So few that requests wait at an engine, which is what llm-d's scorer of queues reads. */
const SEQUENCES_MAX = 6;
const OUTPUT_TOKENS = 40;
const SCRAPE_MILLIS = 50;
/** Of simulations. */
const SEEDS = 100;
const PROFILE = "llm-d";

const { values } = parseArgs({
  options: {
    envoy: { type: "string", default: "envoy" },
    "llm-d": { type: "string", default: "epp" },
    requests: { type: "string", default: "600" },
    rates: { type: "string", default: "12,24" },
    seed: { type: "string", default: "1" },
  },
});
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  for (const rate of values.rates.split(",").map(Number)) await compareAt(rate);
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(process.exitCode ?? 0);

async function compareAt(rate: number): Promise<void> {
  const arrivals = drawArrivals(Number(values.requests), rate, Number(values.seed));
  console.log(
    `\n${arrivals.length} requests, ${rate} a second, ${ENGINES} engines of ${SEQUENCES_MAX} requests at once`,
  );
  const theirs = await live(arrivals, async (ports) => (await startLlmD(values["llm-d"], scratch, ports)).port);
  print("llm-d, live", theirs.served);
  const ours = await live(arrivals, async (ports) => {
    const port = await freePort();
    const flags = ["--picker-port", String(port), "--profile", PROFILE];
    await startGateway(ports, [...flags, "--set", `scrape.intervalMillis=${SCRAPE_MILLIS}`], 0);
    return port;
  });
  print("gnomon, live", ours.served);
  printSimulated(arrivals);
  for (const [name, { served, scraped, endpoints }] of [
    ["llm-d", theirs],
    ["gnomon", ours],
  ] as const) {
    const found = follow(PROFILE, endpoints, KV_BLOCKS * BLOCK_TOKENS, served, scraped);
    const share = (count: number): string => `${((100 * count) / found.decisions).toFixed(1)} %`;
    console.log(
      `decisions of ${name} among the profile's best: ${share(found.among)}; with the gauges of a scrape before or after ` +
        `${share(found.among + found.withinAnInterval)}; expected shares ${shares([...found.expected.values()])}`,
    );
  }
}

interface Run {
  readonly served: readonly Served[];
  readonly scraped: readonly Scraped[];
  readonly endpoints: readonly string[];
}

async function live(arrivals: readonly Arrival[], picker: (ports: readonly number[]) => Promise<number>): Promise<Run> {
  const engines = Array.from({ length: ENGINES }, startEngine);
  const ports = await Promise.all(engines.map(async (engine) => ((await message(engine)) as { port: number }).port));
  const { port } = await startEnvoy({
    binary: values.envoy,
    scratch,
    mode: "bodies",
    picker: await picker(ports),
    engines: ports,
    namesServed: true,
  });
  await sleep(3_000);
  const endpoints = ports.map((one) => `127.0.0.1:${one}`).toSorted();
  const began = performance.now() + 500;
  const now = (): number => Math.round((performance.now() - began) * 1_000);
  const scraped: Scraped[] = [];
  const scraping = setInterval(() => void scrapeAll(endpoints, now, scraped), SCRAPE_MILLIS);
  const agent = new Agent({ keepAlive: true, maxSockets: 512 });
  const pending = [];
  for (const arrival of arrivals) {
    await sleep(Math.max(0, (arrival.at - now()) / 1_000));
    pending.push(ask(port, agent, arrival, now));
  }
  const served = await Promise.all(pending);
  clearInterval(scraping);
  agent.destroy();
  endAll();
  await sleep(500);
  return { served, scraped: scraped.filter(({ at }) => at >= 0), endpoints };
}

function startEngine(): ChildProcess {
  const file = join(import.meta.dirname, "continuation/engine.ts");
  const args = [file, "0", STEP_MILLIS, "tiny", BLOCK_TOKENS, KV_BLOCKS, SEQUENCES_MAX].map(String);
  return kept(spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}

async function scrapeAll(endpoints: readonly string[], now: () => number, into: Scraped[]): Promise<void> {
  await Promise.all(
    endpoints.map(async (endpoint) => {
      const answer = await fetch(`http://${endpoint}/metrics`).catch(() => undefined);
      if (answer === undefined) return;
      const at = now();
      const reading = readingOf(at, readEnginePage(await answer.text()), undefined);
      if (reading !== undefined) into.push({ at, endpoint, load: loadOf(reading, undefined) });
    }),
  );
}

function ask(port: number, agent: Agent, arrival: Arrival, now: () => number): Promise<Served> {
  const body = JSON.stringify({ model: "tiny", prompt: arrival.tokens, max_tokens: OUTPUT_TOKENS, ignore_eos: true });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const sentAt = Math.max(0, now());
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path: "/v1/completions", method: "POST", agent, headers });
    sent.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (more: string) => (text += more));
      answer.on("end", () => {
        const endpoint = String(answer.headers[SERVED_HEADER] ?? "");
        if (answer.statusCode !== 200) return reject(new Error(`status ${answer.statusCode}: ${text.slice(0, 200)}`));
        const { usage } = JSON.parse(text) as { usage: { prompt_tokens_details?: { cached_tokens?: number } } };
        const cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
        resolve({ arrival, sentAt, endedAt: now(), endpoint, cachedTokens });
      });
    });
    sent.on("error", reject).end(body);
  });
}

function print(name: string, served: readonly Served[]): void {
  const counts = new Map<string, number>();
  for (const { endpoint } of served) counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  const cached = served.reduce((sum, { cachedTokens }) => sum + cachedTokens, 0);
  const prompt = served.reduce((sum, { arrival }) => sum + arrival.tokens.length, 0);
  const e2e = served.reduce((sum, { sentAt, endedAt }) => sum + endedAt - sentAt, 0) / served.length / 1_000;
  row(name, [...counts.values()], cached / prompt, e2e);
}

/** Ties are drawn, and who got a prompt's first request gets its later ones: shares are one draw of many. */
function printSimulated(arrivals: readonly Arrival[]): void {
  const runs = Array.from({ length: SEEDS }, (_, i) => simulated(arrivals, Number(values.seed) + i));
  const quantile = (share: number, of: (run: Simulated) => number): number =>
    runs.map(of).toSorted((a, b) => a - b)[Math.floor(share * (runs.length - 1))]!;
  const range = (of: (run: Simulated) => number): string =>
    [0.05, 0.5, 0.95].map((share) => quantile(share, of).toFixed(1)).join(" / ");
  console.log(
    `gnomon, simulated, ${SEEDS} draws, 5 / 50 / 95 % of them: largest share ${range(({ largest }) => largest)} %, ` +
      `hits ${range(({ hits }) => hits)} %, E2E ${range(({ e2eMillis }) => e2eMillis)} ms`,
  );
}

interface Simulated {
  readonly largest: number;
  readonly hits: number;
  readonly e2eMillis: number;
}

function simulated(arrivals: readonly Arrival[], seed: number): Simulated {
  const config = engineDefaults({
    blockTokens: BLOCK_TOKENS,
    kvBlocks: KV_BLOCKS,
    sequencesMax: SEQUENCES_MAX,
    stepTime: { kind: "coefficients", baseMicros: 1_000 * STEP_MILLIS, perPrefillTokenMicros: 10, perDecodeMicros: 10 },
  });
  const facts = { models: [], labels: {}, kvCapacityTokens: KV_BLOCKS * BLOCK_TOKENS, concurrencyMax: SEQUENCES_MAX };
  const { metrics, outcomes } = simulate({
    router: {
      seed,
      profiles: { [PROFILE]: loadProfile(PROFILE).spec },
      defaultProfile: PROFILE,
      blockTokens: BLOCK_TOKENS,
      staleAfterMicros: 5_000_000,
    },
    engines: Array.from({ length: ENGINES }, (_, i) => ({ config, endpoint: { id: `engine-${i}`, ...facts } })),
    arrivals: new WorkloadArrivals(asWorkload(arrivals, OUTPUT_TOKENS), {
      seed: 1,
      blockTokens: BLOCK_TOKENS,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: 1,
    }),
    signals: scrapedEvery(1_000 * SCRAPE_MILLIS),
    ...PLAIN_CLUSTER,
  });
  const counts = Array.from({ length: ENGINES }, () => 0);
  for (let i = 0; i < outcomes.length; i++) counts[outcomes.endpoint[i]!]!++;
  return {
    largest: (100 * Math.max(...counts)) / outcomes.length,
    hits: 100 * metrics.cacheHitRate.gpu,
    e2eMillis: (metrics.e2eMicros["all"]?.mean ?? NaN) / 1_000,
  };
}

function row(name: string, counts: readonly number[], hits: number, e2eMillis: number): void {
  const cells = [`shares ${shares(counts)}`, `hits ${(100 * hits).toFixed(1)} %`, `E2E ${e2eMillis.toFixed(0)} ms`];
  console.log(`${name.padEnd(18)} ${cells.join("  ")}`);
}

/** From the largest to the smallest. */
function shares(counts: readonly number[]): string {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const sorted = [...counts].toSorted((a, b) => b - a);
  return sorted.map((count) => `${((100 * count) / total).toFixed(1)} %`).join(" / ");
}
