/**
 * What a question costs an endpoint picker, from its first one on: gnomon's beside llm-d's, both started anew for each row of a
 * turn, by the same policy file (llm-d's of docs/migrate.md), asked by the same client as Envoy asks (full duplex, 2 KB chats, the
 * answer shown too).
 *
 *     npm run bench -- picker [--turns 3] [--seconds 8] [--rate 1000] [--at-once 32] [--only plain] [--profile NAME]
 *                             [--engines 8] [--few-metrics] [--beside CHECKOUT] [--llm-d PROGRAM]
 *
 * Both read the engines' metrics every 50 ms, which is most of what they do while nobody asks: pages are a real vLLM's, with
 * --few-metrics only what routers read of them. `closed` has so many questions open at once, `open` has so many begin a second, evenly spread. CPU is of all threads of the
 * picker; p50 and p99 are from when a question was due until its request could go on to an engine. Each picker is pinned to the
 * first core, engines and client to the last. --llm-d: its program, `cmd/epp` of its sources; without it gnomon is measured alone.
 * --beside: the gnomon of another checkout (with its node_modules), in turns.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { median } from "#core/base/quantile.ts";
import { block } from "../test/config/migrate-page.ts";
import { engineHost } from "../test/serve/migrate/record/held-engines.ts";
import { startEpp } from "../test/serve/migrate/record/routers.ts";
import { endAll, kept, message } from "./children.ts";
import { freePort } from "./free-port.ts";
import { cpuMicros, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import { residentOf } from "./peer-process.ts";
import type { PickerOrder, PickerReport } from "./picker/load.ts";

const BODY_BYTES = 2_048;
const FIRST = 300;
/** Until code is compiled, and caches are full. */
const WARMING = 4_000;
const IDLE_MILLIS = 2_000;
/** After which a start has kept all code that it compiled. */
const KEPT_CODE_MILLIS = 3_000;
const CORE = 0;

type Mode = "closed" | "open";
const MODES: readonly Mode[] = ["closed", "open"];

interface Started {
  readonly port: number;
  readonly process: ChildProcess;
}

interface Picker {
  readonly name: string;
  readonly isOurs?: boolean;
  readonly start: (tls: boolean) => Promise<Started>;
}

interface Part {
  readonly micros: number;
  readonly perSecond: number;
  readonly report: PickerReport;
}

interface Measured {
  readonly first: Part;
  readonly warm: Part;
  /** CPU without a question, in ms a second. */
  readonly idleMillis: number;
  readonly megabytes: number;
}

const { values } = parseArgs({
  options: {
    turns: { type: "string", default: "3" },
    seconds: { type: "string", default: "8" },
    rate: { type: "string", default: "1000" },
    "at-once": { type: "string", default: "32" },
    only: { type: "string", default: "" },
    profile: { type: "string" },
    engines: { type: "string", default: "8" },
    "few-metrics": { type: "boolean", default: false },
    beside: { type: "string" },
    "llm-d": { type: "string", default: "" },
  },
});
const [turns, seconds, rate, atOnce] = [values.turns, values.seconds, values.rate, values["at-once"]].map(Number) as [
  number,
  number,
  number,
  number,
];
const lastCore = availableParallelism() - 1;
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();

async function main(): Promise<void> {
  pinSelf(lastCore);
  const pages = values["few-metrics"] ? "few" : "whole";
  const { ports } = (await message(child("stub-upstream.ts", [values.engines, "pods", pages]))) as { ports: number[] };
  const load = child("picker/load.ts", []);
  await message(load);
  const pickers = pickersBefore(ports);
  // So that each start finds the compiled code that a first one keeps.
  for (const { start, isOurs } of pickers) {
    if (isOurs !== true) continue;
    const first = await start(false);
    await sleep(KEPT_CODE_MILLIS);
    await ended(first.process);
  }
  for (const transport of ["plain", "TLS"].filter((one) => values.only === "" || values.only === one)) {
    const all = new Map<string, Measured[]>();
    for (let turn = 0; turn < turns; turn++) {
      for (const mode of MODES) {
        for (const { name, start } of turn % 2 === 0 ? pickers : pickers.toReversed()) {
          const row = `${name}, ${mode}`;
          all.set(row, [
            ...(all.get(row) ?? []),
            await measure(load, await start(transport === "TLS"), transport, mode),
          ]);
        }
      }
    }
    report(transport, all);
  }
}

function pickersBefore(ports: readonly number[]): readonly Picker[] {
  const epp = join(scratch, "epp.yaml");
  writeFileSync(epp, block("theirs", "llm-d"));
  const gnomon = (root?: string) => async (tls: boolean) => {
    const port = await freePort();
    const endpoints = ports.flatMap((one, i) => ["--endpoint", `http://${engineHost(i)}:${one}`]);
    const set = ["--set", `picker.port=${port}`, "--set", `picker.plaintext=${!tls}`];
    const flags = [...endpoints, "--profile", values.profile ?? epp, ...set];
    const { process } = await startGateway([], flags, CORE, root);
    return { port, process };
  };
  const pickers: Picker[] = [{ name: "gnomon", isOurs: true, start: gnomon() }];
  if (values.beside !== undefined)
    pickers.push({ name: "beside", isOurs: true, start: gnomon(resolve(values.beside)) });
  const program = values["llm-d"];
  if (program !== "" && existsSync(program))
    pickers.push({
      name: "llm-d",
      start: (tls) => startEpp({ command: program, engines: ports, scratch }, { tls, core: CORE }),
    });
  else console.log(`llm-d: --llm-d: ${program === "" ? "not given" : `${program} is not there`}: left out`);
  return pickers;
}

async function measure(load: ChildProcess, picker: Started, transport: string, mode: Mode): Promise<Measured> {
  const pids = [picker.process.pid!];
  await ordered(load, { kind: "connect", port: picker.port, tls: transport === "TLS", bodyBytes: BODY_BYTES });
  const part = async (order: PickerOrder & { readonly count: number }): Promise<Part> => {
    const before = cpuMicros(pids);
    const reported = (await ordered(load, order)) as PickerReport;
    if (reported.failures > 0) console.log(`${reported.failures} of ${order.count} failed`);
    const micros = (cpuMicros(pids) - before) / order.count;
    return { micros, perSecond: (1e3 * order.count) / reported.millis, report: reported };
  };
  const closed = (count: number) => part({ kind: "closed", count, atOnce });
  const open = (count: number) => part({ kind: "open", count, perSecond: rate });
  const first = await (mode === "closed" ? closed(FIRST) : open(FIRST));
  const { perSecond } = await closed(WARMING);
  const warm = await (mode === "closed" ? closed(Math.round(seconds * perSecond)) : open(seconds * rate));
  const before = cpuMicros(pids);
  await sleep(IDLE_MILLIS);
  const idleMillis = (cpuMicros(pids) - before) / IDLE_MILLIS;
  const megabytes = residentOf(pids[0]!);
  await ended(picker.process);
  return { first, warm, idleMillis, megabytes };
}

function report(transport: string, all: ReadonlyMap<string, readonly Measured[]>): void {
  console.log(`\n${transport}; CPU in us a question (of llm-d's; range), p50, p99 in ms; medians of ${turns}\n`);
  console.log(`| | first ${FIRST} | warm | beyond idle | questions/s | idle, ms/s | MB |`);
  console.log("|---|---:|---:|---:|---:|---:|---:|");
  for (const [row, runs] of all) {
    const peers = all.get(row.replace(/^[^,]+/, "llm-d"));
    const of = (pick: (one: Measured) => number, from = runs): number => median(from.map(pick));
    const cell = (which: "first" | "warm"): string => {
      const each = runs.map((one) => one[which].micros);
      const micros = of((one) => one[which].micros);
      const ratio = peers === undefined ? "" : `${(micros / of((one) => one[which].micros, peers)).toFixed(2)}; `;
      const range = `${Math.min(...each).toFixed(0)}-${Math.max(...each).toFixed(0)}`;
      const waits = [of((one) => one[which].report.p50Millis), of((one) => one[which].report.p99Millis)];
      return `${micros.toFixed(0)} (${ratio}${range}), ${waits.map((one) => one.toFixed(1)).join(", ")}`;
    };
    const own = ({ warm, idleMillis }: Measured): number =>
      Math.max(0, warm.micros - (1e3 * idleMillis) / warm.perSecond);
    const ownRatio = peers === undefined ? "" : ` (${(of(own) / of(own, peers)).toFixed(2)})`;
    const [throughput, idle, megabytes] = [
      of((m) => m.warm.perSecond),
      of((m) => m.idleMillis),
      of((m) => m.megabytes),
    ];
    const more = [`${of(own).toFixed(0)}${ownRatio}`, ...[throughput, idle, megabytes].map((one) => one.toFixed(0))];
    console.log(`| ${row} | ${[cell("first"), cell("warm"), ...more].join(" | ")} |`);
  }
}

async function ordered(load: ChildProcess, order: PickerOrder): Promise<unknown> {
  const reported = message(load);
  load.send(order);
  return reported;
}

function ended(one: ChildProcess): Promise<void> {
  const end = new Promise<void>((done) => void one.once("exit", () => done()));
  one.kill("SIGKILL");
  return end;
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
