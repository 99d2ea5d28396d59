/**
 * What Envoy and gnomon as its endpoint picker cost beside the gateway alone: CPU per request of 2 and 32 KB and per
 * server-sent event, and latency at 100 and 1,000 requests per second.
 *
 *     npx node bench/picker.ts --envoy BINARY [--llm-d BINARY] [--rounds 3] [--millis 1500] [--only costs|latencies]
 *
 * All proxies run on the first core, the engines and the load on the last; CPU is that of all their threads. `envoy` alone
 * goes round its engines; `bodies` shows the picker requests and responses (full duplex), `requests` the requests and the
 * heads of responses. With --llm-d the same Envoy asks llm-d-router's picker instead. The gateway and the picker are one
 * program with the same flags (estimated tokens). Medians of interleaved rounds; a request that fails ends the bench.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { type PickerMode, startEnvoy } from "./envoy-process.ts";
import { freePort } from "./free-port.ts";
import { cpuMicros, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { startLlmD } from "./llm-d-process.ts";
import { median } from "./median.ts";
import { startNginx } from "./nginx-process.ts";

const ENDPOINTS = 3;
const CONNECTIONS = 32;
const STREAMS = 100;
/** Until compilers are done, where there is one. */
const WARM_UP_MILLIS = 5_000;
const LATENCY_MILLIS = 4_000;
const START_MILLIS = 3_000;

interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
  /** It has code that is compiled as it runs. */
  readonly warms: boolean;
}

const { values } = parseArgs({
  options: {
    envoy: { type: "string" },
    "llm-d": { type: "string" },
    rounds: { type: "string" },
    millis: { type: "string" },
    only: { type: "string" },
  },
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
  pinSelf(lastCore);
  const { ports } = (await message(child("stub-upstream.ts", [String(ENDPOINTS)]))) as { ports: number[] };
  const load = child("http-load.ts", []);
  await message(load);
  const proxies = await startProxies(binary, ports);
  await sleep(START_MILLIS);
  const engine: Proxy = { name: "engine", port: ports[0]!, pids: [], warms: false };
  if (values.only !== "latencies") await costs(load, proxies);
  if (values.only !== "costs") await latencies([engine, ...proxies]);
}

async function startProxies(binary: string, ports: readonly number[]): Promise<Proxy[]> {
  const pickerPort = await freePort();
  const estimate = ["--tokenizer", "estimate"];
  const gateway = await startGateway(ports, estimate, 0);
  const picker = await startGateway(ports, [...estimate, "--picker-port", String(pickerPort)], 0);
  const proxies: Proxy[] = [{ name: "gateway", port: gateway.port, pids: [gateway.pid], warms: true }];
  const nginx = await startNginx(ports, scratch);
  if (nginx !== undefined) proxies.push({ name: "nginx", ...nginx, warms: false });
  const envoy = async (name: string, mode: PickerMode, to: number, pids: readonly number[]): Promise<void> => {
    const { port, pid } = await startEnvoy({ binary, scratch, mode, picker: to, engines: ports });
    proxies.push({ name, port, pids: [pid, ...pids], warms: pids.length > 0 });
  };
  await envoy("envoy", "none", pickerPort, []);
  await envoy("requests", "requests", pickerPort, [picker.pid]);
  await envoy("bodies", "bodies", pickerPort, [picker.pid]);
  if (values["llm-d"] === undefined) return proxies;
  const other = await startLlmD(values["llm-d"], scratch, ports);
  await envoy("llm-d", "bodies", other.port, [other.pid]);
  return proxies;
}

async function costs(load: ChildProcess, proxies: readonly Proxy[]): Promise<void> {
  const workloads = [
    { name: "2 KB", bodyBytes: 2_048, stream: false },
    { name: "32 KB", bodyBytes: 32_768, stream: false },
    { name: "SSE event", bodyBytes: 2_048, stream: true },
  ];
  const all = new Map<string, number[]>();
  for (const proxy of proxies) {
    for (const { bodyBytes, stream } of workloads) {
      await run(load, proxy, bodyBytes, stream, proxy.warms ? WARM_UP_MILLIS : millis);
    }
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
      median(all.get(`${proxy.name} ${name}`)!)
        .toFixed(1)
        .padStart(12),
    );
    console.log(name.padEnd(12) + cells.join(""));
  }
}

async function run(load: ChildProcess, { name, port }: Proxy, bodyBytes: number, stream: boolean, time: number) {
  const order: LoadOrder = { port, bodyBytes, stream, connections: stream ? STREAMS : CONNECTIONS, millis: time };
  load.send(order);
  const { answers, events, failures, statuses } = (await message(load)) as LoadReport;
  if (failures > 0) throw new Error(`${name}: ${failures} beside ${answers} failed: ${JSON.stringify(statuses)}`);
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
    await sleep(1);
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
      if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
      answer.resume().on("end", () => {
        times.push(performance.now() - since);
        resolve();
      });
    });
    sent.on("error", reject).end(body);
  });
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
