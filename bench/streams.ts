/**
 * Many streams held at once: CPU per event, resident bytes per stream, and the gap between tokens that the gateway adds.
 *
 *     npx node bench/streams.ts [--streams 2000 --streams 10000] [--events-per-second 10000] [--millis 5000] [--beside FOLDER]
 *
 * All streams together send so many events a second, whatever their number is, evenly spread. Engines and clients are one
 * process with one clock, on the last core, gateways on the first; each is measured in turn, and once without any gateway,
 * which is what the harness adds itself. The gap is what two events lie further apart at the client than at the engine.
 * Needs a limit of open files of some four times the streams (`ulimit -n`).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import { residentOf } from "./peer-process.ts";
import type { TimedOrder, TimedReport } from "./timed-streams.ts";

const WARM_UP: Omit<TimedOrder, "port"> = { streams: 200, gapMillis: 20, millis: 6_000 };

interface Target {
  readonly name: string;
  readonly port: number;
  readonly pid: number | undefined;
}

const { values } = parseArgs({
  options: {
    streams: { type: "string", multiple: true },
    "events-per-second": { type: "string" },
    millis: { type: "string" },
    beside: { type: "string" },
  },
});
const counts = (values.streams ?? ["2000", "10000"]).map(Number);
const eventsPerSecond = Number(values["events-per-second"] ?? 10_000);
const millis = Number(values.millis ?? 5_000);

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const [command, args] = pinned(availableParallelism() - 1, process.execPath, [
    join(import.meta.dirname, "timed-streams.ts"),
  ]);
  const load = kept(spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
  const engine = (await message(load)) as { port: number };
  const targets: Target[] = [{ name: "no gateway", port: engine.port, pid: undefined }];
  const flags = ["--set", "limits.requestsInFlightMax=30000", "--set", "limits.upstreamConnectionsMax=30000"];
  targets.push({ name: "gnomon", ...(await startGateway([engine.port], [...flags], 0)) });
  if (values.beside !== undefined)
    targets.push({ name: "beside", ...(await startGateway([engine.port], [...flags], 0, resolve(values.beside))) });
  for (const { port, pid } of targets) if (pid !== undefined) await hold(load, { port, ...WARM_UP }, pid);
  console.log(
    "streams   through       events/s  us/event  bytes/stream  delay p50 / p99 ms   added gap p50 / p99 ms   whole",
  );
  for (const streams of counts) {
    const gapMillis = Math.max(1, Math.round((1_000 * streams) / eventsPerSecond));
    for (const { name, port, pid } of targets) {
      const held = await hold(load, { port, streams, gapMillis, millis }, pid);
      const { events, whole, delayMicros, addedGapMicros } = held.report;
      const pair = ({ p50, p99 }: { p50: number; p99: number }): string =>
        `${(p50 / 1_000).toFixed(2)} / ${(p99 / 1_000).toFixed(2)}`;
      console.log(
        [
          String(streams).padStart(7),
          `   ${name.padEnd(11)}`,
          (events / (millis / 1_000)).toFixed(0).padStart(11),
          pid === undefined ? "".padStart(10) : (held.cpuMicros / events).toFixed(1).padStart(10),
          pid === undefined ? "".padStart(14) : (held.bytes / streams).toFixed(0).padStart(14),
          pair(delayMicros).padStart(20),
          pair(addedGapMicros).padStart(25),
          `${whole} of ${streams}`.padStart(17),
        ].join(""),
      );
    }
  }
}

interface Held {
  readonly report: TimedReport;
  readonly cpuMicros: number;
  readonly bytes: number;
}

async function hold(load: ChildProcess, order: TimedOrder, pid: number | undefined): Promise<Held> {
  const pids = pid === undefined ? [] : [pid];
  const resident = (): number => pids.reduce((sum, one) => sum + residentOf(one) * 2 ** 20, 0);
  const empty = resident();
  load.send(order);
  await message(load);
  const before = cpuMicros(pids);
  await message(load);
  const [cpu, full] = [cpuMicros(pids) - before, resident()];
  const { report } = (await message(load)) as { report: TimedReport };
  return { report, cpuMicros: cpu, bytes: full - empty };
}
