/**
 * What it costs that requests are carried by several, at saturation: CPU time per request of one gateway, of one with two
 * workers, of two that share nothing, and of two that share over Redis, in turn and several times over.
 *
 *     npx node bench/workers.ts [--rounds 3] [--millis 4000] [--body-bytes 8192] [--connections 32] [--only one,workers]
 *
 * Needs redis-server in PATH. Engines are stubs that answer at once. Sender and stubs run on the same cores, so that what
 * is answered in a second shows little; CPU time is the gateways' own.
 */
import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { kept, message } from "./children.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { median } from "./median.ts";
import { type Gateway, shareOf, startGateway } from "./replicas/processes.ts";
import { BenchRedis } from "./replicas/redis.ts";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    millis: { type: "string", default: "4000" },
    "body-bytes": { type: "string", default: "8192" },
    connections: { type: "string", default: "32" },
    only: { type: "string", default: "one,workers,apart,shared" },
  },
});
const ENDPOINTS = 8;
const CONNECTIONS = Number(flags.connections);
const ONLY = flags.only.split(",");

function child(file: string, ...argv: readonly string[]): ChildProcess {
  return kept(fork(join(import.meta.dirname, file), argv, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}

const stub = child("stub-upstream.ts", String(ENDPOINTS));
const { ports } = (await message(stub)) as { ports: readonly number[] };
const engines = { urls: ports.map((port) => `http://127.0.0.1:${port}`), end: async () => {} };
const redis = ONLY.includes("shared") ? await BenchRedis.start() : undefined;
const starts: readonly (readonly [key: string, name: string, start: () => Promise<readonly Gateway[]>])[] = [
  ["one", "one", async () => [await startGateway(engines, "")]],
  ["workers", "one, two workers", async () => [await startGateway(engines, "", ["listen.workers=2"])]],
  ["apart", "two, nothing shared", () => two("")],
  ["shared", "two, sharing over Redis", () => two(redis?.url ?? "")],
];
const cases: (readonly [key: string, name: string, gateways: readonly Gateway[]])[] = [];
for (const [key, name, start] of starts) if (ONLY.includes(key)) cases.push([key, name, await start()]);
const figures = cases.map(() => ({ micros: [] as number[], perSecond: [] as number[] }));
// The first round is for the compilers.
for (let round = 0; round <= Number(flags.rounds); round++) {
  for (const [i, [, , gateways]] of cases.entries()) {
    const before = await cpuSeconds(gateways);
    const reports = await Promise.all(gateways.map((gateway) => load(gateway, CONNECTIONS / gateways.length)));
    const answers = reports.reduce((sum, report) => sum + report.answers, 0);
    const failures = reports.reduce((sum, report) => sum + report.failures, 0);
    if (failures > 0) throw new Error(`${failures} requests failed`);
    if (round === 0) continue;
    figures[i]!.micros.push(((await cpuSeconds(gateways)) - before) * (1e6 / answers));
    figures[i]!.perSecond.push(answers / (Number(flags.millis) / 1000));
  }
}
const base = median(figures[0]!.micros);
console.log("| gateways | CPU us a request | to one | requests a second |\n|---|---|---|---|");
for (const [i, [, name]] of cases.entries()) {
  const micros = median(figures[i]!.micros);
  console.log(
    `| ${name} | ${micros.toFixed(0)} | ${(micros / base).toFixed(2)} | ${median(figures[i]!.perSecond).toFixed(0)} |`,
  );
}
const shared = cases.find(([key]) => key === "shared")?.[2][0];
if (shared !== undefined) {
  const { lagMillis, counts } = await shareOf(shared);
  const bytes = (counts["newsBytesSent"] ?? NaN) / (counts["requestsSent"] ?? NaN);
  const [p50, p99] = [lagMillis?.p50.toFixed(1), lagMillis?.p99.toFixed(1)];
  console.log(`\nlag ms p50 ${p50}, p99 ${p99}; ${bytes.toFixed(0)} bytes a request`);
}
for (const [, , gateways] of cases) for (const gateway of gateways) gateway.child.kill("SIGTERM");
await redis?.kill();
process.exit(0);

async function two(url: string): Promise<readonly Gateway[]> {
  return [await startGateway(engines, url), await startGateway(engines, url)];
}

async function cpuSeconds(gateways: readonly Gateway[]): Promise<number> {
  let sum = 0;
  for (const { url } of gateways) {
    const text = await (await fetch(`${url}/metrics`)).text();
    sum += Number(/^gnomon_process_cpu_seconds_total (\S+)/m.exec(text)?.[1]);
  }
  return sum;
}

async function load({ url }: Gateway, connections: number): Promise<LoadReport> {
  const sender = child("http-load.ts");
  await message(sender);
  const order: LoadOrder = {
    port: Number(new URL(url).port),
    bodyBytes: Number(flags["body-bytes"]),
    stream: false,
    connections,
    millis: Number(flags.millis),
  };
  const answered = message(sender);
  sender.send(order);
  const report = (await answered) as LoadReport;
  sender.kill("SIGKILL");
  return report;
}
