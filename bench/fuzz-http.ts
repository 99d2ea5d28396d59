/**
 * What clients that mean harm do to others over HTTP: each attack for some seconds, then drawn ones beside each other for
 * as long as is left. Shown for each: how long a client that asks for /healthz all the while waited at most, without
 * and with the time for which gateway and client waited for a core of a machine that others use too; the same, without, of a
 * client of a process on the gateway's core that does nothing else; memory of the gateway at its highest and two seconds
 * after, its CPU as a share of one core, and what was answered. Ends with 1 where somebody waited too long or memory did not
 * come back.
 *
 *     npx node bench/fuzz-http.ts [--minutes 2] [--seconds 4] [--seed 1] [--wait-millis-max 50] [--rss-mib-max 700]
 *         [--root CHECKOUT] [--stalls] [NAME...]
 *
 * With --stalls, what the gateway's event loop was late for (profiling adds some).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { availableParallelism, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import type { HealthReport } from "./health-probe.ts";
import { HTTP_ATTACKS } from "./http-attacks.ts";
import { StallFile } from "./streams/stall-file.ts";

const ENDPOINTS = 2;
const AT_ONCE = 3;
const LOOK_MILLIS = 50;
const SETTLE_MILLIS = 2_000;
/** What attacks must keep neither the gateway nor the probes from their cores. */
const ATTACKER_NICENESS = 19;

const { values, positionals } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    seconds: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
    "wait-millis-max": { type: "string", default: "50" },
    "rss-mib-max": { type: "string", default: "700" },
    root: { type: "string" },
    stalls: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const attackMillis = Number(values.seconds) * 1_000;
const waitMillisMax = Number(values["wait-millis-max"]);
const rssMibMax = Number(values["rss-mib-max"]);
const lastCore = availableParallelism() - 1;
let state = Number(values.seed) >>> 0;

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const ends = performance.now() + Number(values.minutes) * 60_000;
  pinSelf(lastCore);
  const probes = [child("health-probe.ts", []), child("health-probe.ts", [])] as const;
  await Promise.all(probes.map(message));
  const bare = child("fuzz/bare-loop.ts", [], 0);
  const upstream = child("stub-upstream.ts", [String(ENDPOINTS)]);
  const [{ port: barePort }, { ports }] = (await Promise.all([message(bare), message(upstream)])) as [
    { port: number },
    { ports: number[] },
  ];
  const stalls = new StallFile(mkdtempSync(join(tmpdir(), "gnomon-fuzz-")), values.stalls);
  Object.assign(process.env, stalls.environment);
  const { port, pid } = await startGateway(ports, ["--tokenizer", "estimate"], 0, values.root, stalls.nodeFlags);
  stalls.of(pid);
  // Only now: who is started by a process inherits its priority.
  for (const harmful of [0, upstream.pid!]) setPriority(harmful, ATTACKER_NICENESS);
  probes[0].send({ port, pid });
  probes[1].send({ port: barePort, pid: bare.pid });
  const place: Attacked = { port, pid, probes, stalls };
  await sleep(SETTLE_MILLIS);
  await reports(place);
  await sleep(SETTLE_MILLIS);
  const [idle] = await reports(place);
  console.log(
    `seed ${values.seed}; /healthz alone: median ${shown(idle.medianMillis)}, worst ${shown(idle.worstServedMillis)} ms; ${rssMib(pid)} MiB`,
  );
  const cells = ["worst ms", "with cores", "bare loop", "turn CPU ms", "median ms", "MiB at most", "MiB after", "CPU"];
  console.log(`${"".padEnd(44)}${cells.map((cell) => cell.padStart(12)).join("")}  answers`);
  const names = positionals.length > 0 ? positionals : Object.keys(HTTP_ATTACKS);
  const total = { worstMillis: 0, rssMib: 0 };
  const round = async (chosen: readonly string[]): Promise<void> => {
    const { worstMillis, peakMib } = await attack(chosen, place);
    total.worstMillis = Math.max(total.worstMillis, worstMillis);
    total.rssMib = Math.max(total.rssMib, peakMib);
  };
  for (const name of names) await round([name]);
  while (performance.now() < ends) await round(Array.from({ length: AT_ONCE }, () => names[draw(names.length)]!));
  const fails = total.worstMillis > waitMillisMax || total.rssMib > rssMibMax;
  console.log(
    `worst wait of another client ${shown(total.worstMillis)} ms (goal ${waitMillisMax}), memory at most ${total.rssMib} MiB (goal ${rssMibMax})`,
  );
  if (fails) process.exitCode = 1;
}

interface Attacked {
  readonly port: number;
  readonly pid: number;
  /** Of the gateway, and of the bare loop beside it. */
  readonly probes: readonly [ChildProcess, ChildProcess];
  readonly stalls: StallFile;
}

async function attack(names: readonly string[], attacked: Attacked) {
  const { port, pid, stalls } = attacked;
  await stalls.restart();
  await reports(attacked);
  const statuses = new Map<number, number>();
  const answered = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  let peakMib = rssMib(pid);
  const looks = setInterval(() => (peakMib = Math.max(peakMib, rssMib(pid))), LOOK_MILLIS);
  const [beganAt, before] = [performance.now(), cpuMicros([pid])];
  const place = { port, until: performance.now() + attackMillis, draw, answered };
  await Promise.all(names.map((name) => HTTP_ATTACKS[name]!(place)));
  const [{ worstMillis, worstServedMillis, medianMillis }, bare] = await reports(attacked);
  const cpuShare = (cpuMicros([pid]) - before) / (performance.now() - beganAt) / 10;
  clearInterval(looks);
  await stalls.read();
  await sleep(SETTLE_MILLIS);
  const figures = [
    shown(worstServedMillis),
    shown(worstMillis),
    shown(bare.worstServedMillis),
    shown(stalls.turnCpuMillis),
    shown(medianMillis),
    String(peakMib),
    String(rssMib(pid)),
    `${cpuShare.toFixed(0)} %`,
  ];
  const answers = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `${names.join(" + ").padEnd(44)}${figures.map((cell) => cell.padStart(12)).join("")}  ${answers.join(", ")}`,
  );
  if (values.stalls) stalls.print("the gateway");
  return { worstMillis: worstServedMillis, peakMib };
}

/** "-" where nothing was answered at all. */
function shown(millis: number | null): string {
  return millis?.toFixed(1) ?? "-";
}

/** xorshift: the same attacks for the same seed. */
function draw(below: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % below;
}

function rssMib(pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
}

async function reports({ probes: [ofGateway, ofBare] }: Attacked): Promise<[HealthReport, HealthReport]> {
  const answers = Promise.all([message(ofGateway), message(ofBare)]);
  ofGateway.send("report");
  ofBare.send("report");
  return (await answers) as [HealthReport, HealthReport];
}

function child(file: string, args: readonly string[], core = lastCore): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
