/**
 * What clients that mean harm do to others over HTTP: each attack for some seconds, then drawn ones beside each other for
 * as long as is left. Shown for each: how long a client that asks for /healthz all the while waited at most, without
 * and with the time for which gateway and client waited for a core of a machine that others use too, memory of the
 * gateway at its highest and two seconds after, its CPU as a share of one core, and what was answered. Ends with 1 where somebody waited too long or
 * memory did not come back.
 *
 *     npx node bench/fuzz-http.ts [--minutes 2] [--seconds 4] [--seed 1] [--wait-millis-max 50] [--rss-mib-max 700]
 *         [--root CHECKOUT] [NAME...]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import type { HealthReport } from "./health-probe.ts";
import { HTTP_ATTACKS } from "./http-attacks.ts";

const ENDPOINTS = 2;
const AT_ONCE = 3;
const LOOK_MILLIS = 50;
const SETTLE_MILLIS = 2_000;
/** What attacks must keep neither the gateway nor the probe from its core. */
const ATTACKER_NICENESS = 19;

const { values, positionals } = parseArgs({
  options: {
    minutes: { type: "string", default: "2" },
    seconds: { type: "string", default: "4" },
    seed: { type: "string", default: "1" },
    "wait-millis-max": { type: "string", default: "50" },
    "rss-mib-max": { type: "string", default: "700" },
    root: { type: "string" },
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
  const probe = child("health-probe.ts", []);
  await message(probe);
  setPriority(ATTACKER_NICENESS);
  const { ports } = (await message(child("stub-upstream.ts", [String(ENDPOINTS)]))) as { ports: number[] };
  const { port, pid } = await startGateway(ports, ["--tokenizer", "estimate"], 0, values.root);
  probe.send({ port, pid });
  await sleep(SETTLE_MILLIS);
  await report(probe);
  await sleep(SETTLE_MILLIS);
  const idle = await report(probe);
  console.log(
    `seed ${values.seed}; /healthz alone: median ${shown(idle.medianMillis)}, worst ${shown(idle.worstServedMillis)} ms; ${rssMib(pid)} MiB`,
  );
  const cells = ["worst ms", "with cores", "median ms", "MiB at most", "MiB after", "CPU"];
  console.log(`${"".padEnd(44)}${cells.map((cell) => cell.padStart(13)).join("")}  answers`);
  const names = positionals.length > 0 ? positionals : Object.keys(HTTP_ATTACKS);
  const total = { worstMillis: 0, rssMib: 0 };
  const round = async (chosen: readonly string[]): Promise<void> => {
    const { worstMillis, peakMib } = await attack(chosen, port, pid, probe);
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

async function attack(names: readonly string[], port: number, pid: number, probe: ChildProcess) {
  await report(probe);
  const statuses = new Map<number, number>();
  const answered = (status: number): void => void statuses.set(status, (statuses.get(status) ?? 0) + 1);
  let peakMib = rssMib(pid);
  const looks = setInterval(() => (peakMib = Math.max(peakMib, rssMib(pid))), LOOK_MILLIS);
  const [beganAt, before] = [performance.now(), cpuMicros([pid])];
  const place = { port, until: performance.now() + attackMillis, draw, answered };
  await Promise.all(names.map((name) => HTTP_ATTACKS[name]!(place)));
  const { worstMillis, worstServedMillis, medianMillis } = await report(probe);
  const cpuShare = (cpuMicros([pid]) - before) / (performance.now() - beganAt) / 10;
  clearInterval(looks);
  await sleep(SETTLE_MILLIS);
  const figures = [
    shown(worstServedMillis),
    shown(worstMillis),
    shown(medianMillis),
    String(peakMib),
    String(rssMib(pid)),
    `${cpuShare.toFixed(0)} %`,
  ];
  const answers = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  console.log(
    `${names.join(" + ").padEnd(44)}${figures.map((cell) => cell.padStart(13)).join("")}  ${answers.join(", ")}`,
  );
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

async function report(probe: ChildProcess): Promise<HealthReport> {
  const answer = message(probe);
  probe.send("report");
  return (await answer) as HealthReport;
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
