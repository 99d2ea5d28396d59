/**
 * Several gateways in front of one fleet, in processes of their own, on a real Redis: what they find in caches and how
 * evenly they spread requests, against one gateway (--apart: four that share nothing alone); what happens while Redis
 * is killed, stopped, slowed and full, and when a gateway is killed under load. Requests go to the gateways in turn.
 * Every gateway's trace is replayed. Ends with exit code 1 where a request failed, a decision comes out otherwise, or
 * charges outlive the lease.
 *
 *     npx node bench/replicas.ts [--part compare|faults|all] [--trouble killed] [--apart] [--requests 300] [--engines 4] [--time-scale 4]
 *
 * Needs redis-server in PATH. Engines are emulated H100s with Llama 3.1 8B.
 */
import { parseArgs } from "node:util";
import { setTimeout as pause } from "node:timers/promises";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DRIVE_DEFAULTS } from "#drive/options.ts";
import { drive } from "#drive/drive.ts";
import type { DriveReport } from "#drive/report.ts";
import { Replay } from "#shadow/recorded/replay.ts";
import { TraceReader } from "#trace/reader.ts";
import { type Engines, type Gateway, shareOf, startEngines, startGateway } from "./replicas/processes.ts";
import { BenchRedis, slowProxy } from "./replicas/redis.ts";

const { values: flags } = parseArgs({
  options: {
    part: { type: "string", default: "all" },
    trouble: { type: "string", default: "" },
    apart: { type: "boolean", default: false },
    requests: { type: "string", default: "300" },
    engines: { type: "string", default: "4" },
    "time-scale": { type: "string", default: "4" },
  },
});
const WORKLOAD = join(import.meta.dirname, "replicas/workload.yaml");
const LEASE_MILLIS = 3_000;
let failures = 0;

if (flags.part !== "faults") await compare();
if (flags.part !== "compare") await faults();
process.exit(failures === 0 ? 0 : 1);

async function load(gateways: readonly Gateway[], requestsMax: number): Promise<DriveReport> {
  const urls = gateways.map(({ url }) => url);
  return drive({
    ...DRIVE_DEFAULTS,
    urls,
    workload: WORKLOAD,
    requestsMax,
    rateScale: 3,
    seed: 7,
    activeSessionsMax: 256,
  });
}

function line(cells: readonly (string | number)[]): void {
  console.log(`| ${cells.join(" | ")} |`);
}

function check(holds: boolean, what: string): void {
  if (holds) return;
  failures++;
  console.log(`FAILED: ${what}`);
}

async function compare(): Promise<void> {
  line([
    "gateways",
    "shared",
    "hits %",
    "TTFT ms p50",
    "p99",
    "max/mean in flight",
    "failed",
    "lag ms p50 / p99",
    "bytes a request",
    "parity",
  ]);
  line(Array.from({ length: 10 }, () => "---"));
  const cases = [
    [1, false],
    [2, true],
    [4, true],
    [4, false],
  ] as const;
  for (const [count, shared] of flags.apart ? cases.slice(-1) : cases) {
    await withFleet(shared ? count : 0, count, async (gateways) => {
      const report = await load(gateways, Number(flags.requests));
      const shares = shared ? await Promise.all(gateways.map(shareOf)) : [];
      const parity = await ended(gateways);
      const bytes = sum(shares, "newsBytesSent") / sum(shares, "requestsSent");
      const lags = shares.map(({ lagMillis }) => lagMillis ?? { p50: NaN, p99: NaN });
      const most = (of: "p50" | "p99") => Math.max(...lags.map((lag) => lag[of])).toFixed(1);
      check(
        report.requests.failed === 0,
        `${report.requests.failed} requests failed: ${JSON.stringify(report.outcomes)}`,
      );
      line([
        count,
        shared ? "yes" : count === 1 ? "" : "no",
        (100 * (report.hitRatio.engine ?? NaN)).toFixed(1),
        report.ttftMillis.p50?.toFixed(0) ?? "",
        report.ttftMillis.p99?.toFixed(0) ?? "",
        report.imbalance.mean?.toFixed(2) ?? "",
        report.requests.failed,
        shared ? `${most("p50")} / ${most("p99")}` : "",
        shared ? bytes.toFixed(0) : "",
        parity,
      ]);
    });
  }
}

function sum(shares: readonly { readonly counts: Readonly<Record<string, number>> }[], name: string): number {
  return shares.reduce((all, { counts }) => all + (counts[name] ?? 0), 0);
}

/** Ends the gateways and replays each one's trace. */
async function ended(gateways: readonly Gateway[]): Promise<string> {
  let decisions = 0;
  let differences = 0;
  for (const gateway of gateways) {
    await gateway.end();
    const replay = new Replay();
    for await (const item of new TraceReader(gateway.trace, { strict: false }).items()) replay.take(item);
    const result = replay.result();
    decisions += result.decisions;
    differences += result.differences + result.unverifiable;
    if (result.first !== undefined) console.log(`first difference: ${result.first.what}`);
    rmSync(gateway.trace, { recursive: true, force: true });
  }
  check(differences === 0, `${differences} decisions differ or cannot be compared`);
  return `${decisions} decisions, ${differences} differ`;
}

/** Redis for so many of the gateways. */
async function withFleet(
  sharing: number,
  count: number,
  run: (gateways: readonly Gateway[], redis: BenchRedis, engines: Engines) => Promise<void>,
  through?: (redis: BenchRedis) => Promise<string>,
): Promise<void> {
  const redis = await BenchRedis.start();
  const engines = await startEngines(Number(flags.engines), Number(flags["time-scale"]));
  const url = through === undefined ? redis.url : await through(redis);
  const gateways: Gateway[] = [];
  for (let i = 0; i < count; i++) gateways.push(await startGateway(engines, i < sharing ? url : ""));
  try {
    await run(gateways, redis, engines);
  } finally {
    for (const gateway of gateways) await gateway.end();
    await engines.end();
    await redis.kill();
  }
}

type Trouble = (redis: BenchRedis, gateways: readonly Gateway[]) => Promise<void>;

async function faults(): Promise<void> {
  let delayMillis = 0;
  const proxied = async ({ port }: BenchRedis) =>
    `redis://127.0.0.1:${(await slowProxy(port, () => delayMillis)).port}`;
  const troubles: readonly (readonly [what: string, trouble: Trouble])[] = [
    ["killed for 2 s, restarted empty", async (redis) => (await redis.kill(), await pause(2_000), await redis.start())],
    ["stopped for 2 s (SIGSTOP)", async (redis) => (redis.pause(), await pause(2_000), redis.goOn())],
    ["full for 2 s (maxmemory)", async (redis) => (await redis.limit(1), await pause(2_000), await redis.limit(0))],
    ["slowed by 200 ms for 3 s", async () => ((delayMillis = 200), await pause(3_000), void (delayMillis = 0))],
  ];
  console.log(
    "\n| Redis | requests | failed | alone | shared again after ms | charges left | parity |\n|---|---|---|---|---|---|---|",
  );
  for (const [what, trouble] of troubles) {
    if (!what.includes(flags.trouble)) continue;
    await withFleet(2, 2, (gateways, redis) => inTrouble(what, trouble, gateways, redis), proxied);
  }
  if ("gateway".includes(flags.trouble)) await withFleet(2, 2, killed);
}

async function inTrouble(
  what: string,
  trouble: Trouble,
  gateways: readonly Gateway[],
  redis: BenchRedis,
): Promise<void> {
  const loading = load(gateways, Math.ceil(Number(flags.requests) / 2));
  await pause(2_000);
  let alone = 0;
  const watching = { on: true };
  const watched = (async () => {
    while (watching.on) {
      for (const gateway of gateways) if ((await shareOf(gateway)).state !== "shared") alone++;
      await pause(100);
    }
  })();
  await trouble(redis, gateways);
  const since = performance.now();
  while (
    (await Promise.all(gateways.map(shareOf))).some(({ state, peers }) => state !== "shared" || peers.length === 0)
  ) {
    if (performance.now() - since > 20_000) break;
    await pause(20);
  }
  const back = performance.now() - since;
  watching.on = false;
  await watched;
  const report = await loading;
  await pause(200);
  const left = (await Promise.all(gateways.map(shareOf)))
    .flatMap(({ peers }) => peers)
    .reduce((all, { requestsInFlight }) => all + requestsInFlight, 0);
  check(report.requests.failed === 0 && left === 0 && back < 20_000, `Redis ${what}`);
  line([
    what,
    report.requests.sent,
    report.requests.failed,
    alone > 0 ? "yes" : "no",
    back.toFixed(0),
    left,
    await ended(gateways),
  ]);
}

async function killed(gateways: readonly Gateway[]): Promise<void> {
  const [dies, stays] = gateways as [Gateway, Gateway];
  const loading = load([dies], Number(flags.requests)).catch(() => undefined);
  let held = 0;
  const until = performance.now() + 30_000;
  while (held < 4 && performance.now() < until) {
    await pause(20);
    held = (await shareOf(stays)).peers.reduce((all, { requestsInFlight }) => all + requestsInFlight, 0);
  }
  dies.child.kill("SIGKILL");
  const since = performance.now();
  while ((await shareOf(stays)).peers.length > 0 && performance.now() - since < 20_000) await pause(10);
  const gone = performance.now() - since;
  void loading;
  check(held > 0 && gone < LEASE_MILLIS + 1_000, "charges outlive the lease");
  console.log(
    `\na gateway killed with ${held} requests in flight: forgotten after ${gone.toFixed(0)} ms (lease ${LEASE_MILLIS} ms)`,
  );
}
