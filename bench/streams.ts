/**
 * Many streams held at once: CPU per event, resident bytes per stream, and the gap between tokens that the gateway adds.
 *
 *     npx node bench/streams.ts [--streams 2000 --streams 10000] [--events-per-second 10000] [--millis 5000] [--rounds 1]
 *       [--beside FOLDER] [--stalls]
 *
 * All streams together send so many events a second, whatever their number is, evenly spread. Engines and clients are
 * one process with one clock, on the last core, gateways on the first; each is measured in turn, and once without any
 * gateway, which is what the harness adds itself. The gap is what two events lie further apart at the client than at
 * the engine. `in 1 ms` are the reads of clients that came within a millisecond of one of the same stream: what holding
 * events back so long could have joined. A bare Hono + dispatch proxy is measured too. With --stalls, a line below each
 * shows when its event loop and the load's own were more than 3 ms late, and what the thread did meanwhile: waited for
 * a core, collected garbage, or worked. Needs a limit of open files of some four times the streams (`ulimit -n`).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import { residentOf } from "./peer-process.ts";
import { StallFile } from "./streams/stall-file.ts";
import type { TimedOrder, TimedReport } from "./timed-streams.ts";

const WARM_UP: Omit<TimedOrder, "port"> = { streams: 200, gapMillis: 20, millis: 6_000 };

interface Target {
  readonly name: string;
  readonly port: number;
  readonly pid: number | undefined;
  readonly stalls?: StallFile | undefined;
}

const { values } = parseArgs({
  options: {
    streams: { type: "string", multiple: true },
    "events-per-second": { type: "string" },
    millis: { type: "string" },
    rounds: { type: "string" },
    beside: { type: "string" },
    stalls: { type: "boolean" },
  },
});
const counts = (values.streams ?? ["2000", "10000"]).map(Number);
const eventsPerSecond = Number(values["events-per-second"] ?? 10_000);
const millis = Number(values.millis ?? 5_000);
const rounds = Number(values.rounds ?? 1);
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const last = availableParallelism() - 1;
  const [load, engine] = await child("timed-streams.ts", last, []);
  const targets: Target[] = [{ name: "no gateway", ...engine, pid: undefined }];
  targets.push(await gateway("gnomon", engine.port));
  if (values.beside !== undefined) targets.push(await gateway("beside", engine.port, resolve(values.beside)));
  const [bare, { port, stalls }] = await child("bare-proxy.ts", 0, [String(engine.port)]);
  targets.push({ name: "bare", port, stalls, pid: bare.pid });
  for (const one of targets)
    if (one.pid !== undefined) await hold(load, { port: one.port, ...WARM_UP }, one, engine.stalls);
  console.log(
    "streams   through       events/s  us/event  bytes/stream  in 1 ms  delay p50 / p99 ms   added gap p50 / p99 ms   whole",
  );
  for (const streams of counts) {
    const gapMillis = Math.max(1, Math.round((1_000 * streams) / eventsPerSecond));
    for (let round = 0; round < rounds; round++)
      for (const target of targets) {
        const order = { port: target.port, streams, gapMillis, millis };
        const held = await hold(load, order, target, engine.stalls);
        print(streams, target, held);
        if (target.pid !== undefined) target.stalls?.print("its loop");
        engine.stalls?.print("the load's loop");
      }
  }
}

function print(streams: number, { name, pid }: Target, held: Held): void {
  const { events, reads, closeReads, whole, delayMicros, addedGapMicros } = held.report;
  const pair = ({ p50, p99 }: { p50: number; p99: number }): string =>
    `${(p50 / 1_000).toFixed(2)} / ${(p99 / 1_000).toFixed(2)}`;
  console.log(
    [
      String(streams).padStart(7),
      `   ${name.padEnd(11)}`,
      (events / (millis / 1_000)).toFixed(0).padStart(11),
      pid === undefined ? "".padStart(10) : (held.cpuMicros / events).toFixed(1).padStart(10),
      pid === undefined ? "".padStart(14) : (held.bytes / streams).toFixed(0).padStart(14),
      `${((100 * closeReads) / reads).toFixed(2)} %`.padStart(10),
      pair(delayMicros).padStart(20),
      pair(addedGapMicros).padStart(25),
      `${whole} of ${streams}`.padStart(17),
    ].join(""),
  );
}

function stallFile(): StallFile | undefined {
  return values.stalls === true ? new StallFile(scratch) : undefined;
}

async function child(
  file: string,
  core: number,
  args: readonly string[],
): Promise<[ChildProcess, { readonly port: number; readonly stalls: StallFile | undefined }]> {
  const stalls = stallFile();
  const line = [...(stalls?.nodeFlags ?? []), join(import.meta.dirname, file), ...args];
  const [command, rest] = pinned(core, process.execPath, line);
  const env = { ...process.env, ...stalls?.environment };
  const started = kept(spawn(command, rest, { stdio: ["ignore", "inherit", "inherit", "ipc"], env }));
  const { port } = (await message(started)) as { port: number };
  stalls?.of(started.pid!);
  return [started, { port, stalls }];
}

async function gateway(name: string, enginePort: number, root?: string): Promise<Target> {
  const stalls = stallFile();
  Object.assign(process.env, stalls?.environment);
  const flags = ["--set", "limits.requestsInFlightMax=30000", "--set", "limits.upstreamConnectionsMax=30000"];
  const { port, pid } = await startGateway([enginePort], flags, 0, root, stalls?.nodeFlags);
  stalls?.of(pid);
  return { name, port, pid, stalls };
}

interface Held {
  readonly report: TimedReport;
  readonly cpuMicros: number;
  readonly bytes: number;
}

async function hold(
  load: ChildProcess,
  order: TimedOrder,
  { pid, stalls }: Target,
  loadStalls: StallFile | undefined,
): Promise<Held> {
  const pids = pid === undefined ? [] : [pid];
  const files = new Set([stalls, loadStalls]);
  const resident = (): number => pids.reduce((sum, one) => sum + residentOf(one) * 2 ** 20, 0);
  const empty = resident();
  load.send(order);
  await message(load);
  for (const file of files) await file?.restart();
  const before = cpuMicros(pids);
  const measured = message(load);
  load.send("measure");
  await measured;
  const [cpu, full] = [cpuMicros(pids) - before, resident()];
  for (const file of files) await file?.read();
  const reported = message(load);
  load.send("end");
  const { report } = (await reported) as { report: TimedReport };
  return { report, cpuMicros: cpu, bytes: full - empty };
}
