/**
 * What Envoy and gnomon as its endpoint picker cost beside the gateway alone: CPU per request of 2 and 32 KB
 * and per server-sent event, and latency at 100 and 1,000 requests per second.
 *
 *     npx node bench/picker.ts --envoy BINARY [--rounds 3] [--millis 1500]
 *
 * All proxies run on the first core, the engines and the load on the last; CPU is that of all their threads. `envoy` alone
 * goes round its engines; `bodies` shows the picker requests and responses (full duplex), `requests` the requests alone.
 * The gateway and the picker are one program with the same flags (estimated tokens). Medians of interleaved rounds.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { createServer } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { median } from "./median.ts";

const ENDPOINTS = 3;
const CONNECTIONS = 32;
const STREAMS = 100;
const WARM_UP_MILLIS = 6_000;
const LATENCY_MILLIS = 5_000;
const CONFIG = join(import.meta.dirname, "../deploy/envoy.yaml");

interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
}

const { values } = parseArgs({
  options: { envoy: { type: "string" }, rounds: { type: "string" }, millis: { type: "string" } },
});
const rounds = Number(values.rounds ?? 3);
const millis = Number(values.millis ?? 1_500);
const lastCore = availableParallelism() - 1;
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main(values.envoy ?? "envoy");
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(binary: string): Promise<void> {
  const { ports } = (await message(child("stub-upstream.ts", [String(ENDPOINTS)]))) as { ports: number[] };
  const load = child("http-load.ts", []);
  await message(load);
  const pickerPort = await freePort();
  const estimate = ["--tokenizer", "estimate"];
  const gateway = await startGateway(ports, estimate, 0);
  const picker = await startGateway(ports, [...estimate, "--picker-port", String(pickerPort)], 0);
  const modes: [name: string, change: (config: string) => string, pids: number[]][] = [
    ["envoy", withoutPicker, []],
    ["requests", withoutResponses, [picker.pid]],
    ["bodies", (config) => config, [picker.pid]],
  ];
  const proxies: Proxy[] = [{ name: "gateway", port: gateway.port, pids: [gateway.pid] }];
  for (const [name, change, pids] of modes) {
    const port = await freePort();
    const pid = startEnvoy(binary, name, portsIn(change(readFileSync(CONFIG, "utf8")), port, pickerPort, ports));
    proxies.push({ name, port, pids: [pid, ...pids] });
  }
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await costs(load, proxies);
  await latencies([{ name: "engine", port: ports[0]!, pids: [] }, ...proxies]);
}

async function costs(load: ChildProcess, proxies: readonly Proxy[]): Promise<void> {
  const workloads = [
    { name: "2 KB", bodyBytes: 2_048, stream: false },
    { name: "32 KB", bodyBytes: 32_768, stream: false },
    { name: "SSE event", bodyBytes: 2_048, stream: true },
  ];
  const all = new Map<string, number[]>();
  for (const proxy of proxies) {
    for (const { bodyBytes, stream } of workloads) await run(load, proxy, bodyBytes, stream, WARM_UP_MILLIS);
  }
  for (let round = 0; round < rounds; round++) {
    for (const { name, bodyBytes, stream } of workloads) {
      for (const proxy of round % 2 === 0 ? proxies : proxies.toReversed()) {
        const before = cpuMicros(proxy.pids);
        const count = await run(load, proxy, bodyBytes, stream, millis);
        const key = `${proxy.name} ${name}`;
        all.set(key, [...(all.get(key) ?? []), (cpuMicros(proxy.pids) - before) / count]);
      }
    }
  }
  console.log(`us of CPU per answer or event, medians of ${rounds} rounds, ${ENDPOINTS} endpoints`);
  console.log("".padEnd(12) + proxies.map(({ name }) => name.padStart(12)).join(""));
  for (const { name } of workloads) {
    const cells = proxies.map((proxy) =>
      median(all.get(`${proxy.name} ${name}`) ?? [Number.NaN])
        .toFixed(1)
        .padStart(12),
    );
    console.log(name.padEnd(12) + cells.join(""));
  }
}

async function run(load: ChildProcess, { name, port }: Proxy, bodyBytes: number, stream: boolean, time: number) {
  const order: LoadOrder = { port, bodyBytes, stream, connections: stream ? STREAMS : CONNECTIONS, millis: time };
  load.send(order);
  const { answers, events, failures } = (await message(load)) as LoadReport;
  if (failures > 0) throw new Error(`${name}: ${failures} of ${answers} requests failed`);
  return stream ? events : answers;
}

async function latencies(proxies: readonly Proxy[]): Promise<void> {
  console.log("milliseconds of a 2 KB request at a steady rate, p50 / p99");
  for (const rate of [100, 1_000]) {
    for (const proxy of proxies) {
      const sorted = (await atRate(proxy.port, rate)).toSorted((a, b) => a - b);
      const at = (share: number) => (sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN).toFixed(2);
      console.log(
        `${String(rate).padStart(6)}/s ${proxy.name.padEnd(10)} ${at(0.5)} / ${at(0.99)}  (${sorted.length})`,
      );
    }
  }
}

/** Times of requests that are sent when they are due, whatever became of the ones before. */
async function atRate(port: number, rate: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const began = performance.now();
  for (let sent = 0; performance.now() - began < LATENCY_MILLIS;) {
    while (sent < ((performance.now() - began) * rate) / 1_000) pending.push(one(port, agent, sent++, times));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pending);
  agent.destroy();
  return times;
}

function one(port: number, agent: Agent, number: number, times: number[]): Promise<void> {
  const content = `${number % 32} ${"word ".repeat(400)}${number}`;
  const body = JSON.stringify({ model: "tiny", messages: [{ role: "user", content }], max_tokens: 10 });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const since = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path: "/v1/chat/completions", method: "POST", agent, headers });
    sent.on("response", (answer) => {
      answer.resume().on("end", () => {
        times.push(performance.now() - since);
        resolve();
      });
    });
    sent.on("error", reject).end(body);
  });
}

function startEnvoy(binary: string, name: string, config: string): number {
  const file = join(scratch, `${name}.yaml`);
  writeFileSync(file, config);
  const argv = ["-c", file, "--concurrency", "1", "-l", "error", "--use-dynamic-base-id"];
  const [command, args] = pinned(0, binary, argv);
  return kept(spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] })).pid!;
}

function portsIn(config: string, port: number, picker: number, engines: readonly number[]): string {
  const named = [[8000, port], [9002, picker], ...engines.map((engine, i) => [8101 + i, engine])];
  return named.reduce((text, [from, to]) => text.replace(`port_value: ${from}}`, `port_value: ${to}}`), config);
}

function withoutPicker(config: string): string {
  const begin = config.indexOf("          - name: envoy.filters.http.ext_proc");
  return config.slice(0, begin) + config.slice(config.indexOf("          - name: envoy.filters.http.router"));
}

function withoutResponses(config: string): string {
  return config
    .replace("response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: NONE")
    .replace("response_trailer_mode: SEND", "response_trailer_mode: SKIP");
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
