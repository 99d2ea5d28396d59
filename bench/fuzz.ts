/**
 * Everything from outside that means harm, against one gateway: clients over HTTP, and an engine's metrics, answers and KV
 * events, and reports in Redis, each captured and mutated or made to be dear; one part after another, then all beside each
 * other for as long as is left. Beside them one client asks for /healthz and another one a model of a well engine.
 *
 *     npx node bench/fuzz.ts [--minutes 10] [--seconds 20] [--seed 1] [--wait-millis-max 50] [--rss-mib-max 900]
 *         [--stalls] [--attack NAME] [PART...]
 *
 * Shown for each part: how long either waited at most, without the time for which the processes waited for a core (and with
 * it), a client of a process on the gateway's core that does nothing else, and one that asks the well engine itself; CPU of the longest turn of the gateway's event
 * loop, which other work on the machine does not change; what the well client lost, memory of the gateway, and what it
 * counted as defects; with --stalls, what the gateway's event loop was late for (profiling adds some). Needs redis-server.
 * Ends with 1 where the gateway ended, counted a defect, lost a request of the well client, or kept another client waiting
 * too long.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { availableParallelism, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import type { HostileTurn } from "./fuzz/hostile-engine.ts";
import { Mutator } from "./fuzz/mutator.ts";
import type { WellReport } from "./fuzz/well-client.ts";
import { EXACT_TOKENS, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import type { HealthReport } from "./health-probe.ts";
import { HTTP_ATTACKS } from "./http-attacks.ts";
import { BenchRedis } from "./replicas/redis.ts";
import { StallFile } from "./streams/stall-file.ts";

const PARTS = ["http", "metrics", "answers", "events", "reports"] as const;
type Part = (typeof PARTS)[number];
const REPLICA = "gateway-a";
const ASKERS = 6;
const SETTLE_MILLIS = 3_000;
const LOOK_MILLIS = 100;
/** Who means harm must keep neither the gateway nor the others from their core. */
const HOSTILE_NICENESS = 19;
const GIVE_UP_MILLIS = 10_000;
const ATTACKS = Object.keys(HTTP_ATTACKS);
const DEFECTS = /^gnomon_internal_errors_total(?:\{.*\})? (\d+)$/gm;

const { values, positionals } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    seconds: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    "wait-millis-max": { type: "string", default: "50" },
    "rss-mib-max": { type: "string", default: "900" },
    attack: { type: "string" },
    stalls: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const seed = Number(values.seed);
const mutator = new Mutator(seed);
const parts = positionals.length > 0 ? (positionals as Part[]) : PARTS;
const unknown = parts.filter((part) => !PARTS.includes(part));
if (unknown.length > 0) throw new RangeError(`no part ${unknown.join(", ")}; expected some of ${PARTS.join(", ")}`);
if (values.attack !== undefined && !ATTACKS.includes(values.attack))
  throw new RangeError(`no attack "${values.attack}"; expected one of ${ATTACKS.join(", ")}`);
const lastCore = availableParallelism() - 1;

try {
  await main();
} finally {
  endAll();
}

interface Fleet {
  readonly port: number;
  readonly pid: number;
  readonly stalls: StallFile;
  readonly probe: ChildProcess;
  /** Of a process on the gateway's core that does nothing else. */
  readonly bareProbe: ChildProcess;
  readonly well: ChildProcess;
  /** Asks the well engine itself, past the gateway. */
  readonly straight: ChildProcess;
  readonly engine: ChildProcess;
  readonly writer: ChildProcess;
}

type Reports = [health: HealthReport, well: WellReport, bare: HealthReport, straight: WellReport];

async function main(): Promise<void> {
  const ends = performance.now() + Number(values.minutes) * 60_000;
  pinSelf(lastCore);
  const [probe, well, straight, upstream] = [
    child("health-probe.ts", []),
    child("fuzz/well-client.ts", []),
    child("fuzz/well-client.ts", []),
    child("stub-upstream.ts", ["1"]),
  ];
  const [{ ports }] = (await Promise.all([upstream, probe, well, straight].map(message))) as [{ ports: number[] }];
  const bare = child("fuzz/bare-loop.ts", [], 0);
  const { port: barePort } = (await message(bare)) as { port: number };
  const bareProbe = child("health-probe.ts", []);
  await message(bareProbe);
  const redis = await BenchRedis.start();
  const engine = child("fuzz/hostile-engine.ts", [String(seed)]);
  const writer = child("fuzz/hostile-writer.ts", [String(seed), String(redis.port)]);
  const [{ port: hostilePort }] = (await Promise.all([message(engine), message(writer)])) as [
    { port: number },
    unknown,
  ];
  process.env["FUZZ_SECRET"] = "a secret of this run alone";
  const settings = [
    "prefix.secretEnv=FUZZ_SECRET",
    "scrape.intervalMillis=100",
    "kvEvents.mode=on",
    `share.url=${redis.url}`,
    `share.replica=${REPLICA}`,
  ];
  const flags = [...EXACT_TOKENS, ...settings.flatMap((one) => ["--set", one])];
  const stalls = new StallFile(mkdtempSync(join(tmpdir(), "gnomon-fuzz-")), values.stalls);
  Object.assign(process.env, stalls.environment);
  const { port, pid } = await startGateway([...ports, hostilePort], flags, 0, undefined, stalls.nodeFlags);
  stalls.of(pid);
  // Only now: who is started by a process inherits its priority.
  for (const harmful of [0, engine.pid!, writer.pid!]) setPriority(harmful, HOSTILE_NICENESS);
  const fleet: Fleet = { port, pid, stalls, probe, bareProbe, well, straight, engine, writer };
  probe.send({ port, pid });
  bareProbe.send({ port: barePort, pid: bare.pid });
  well.send({ port, pids: [pid, upstream.pid!] });
  straight.send({ port: ports[0]!, pids: [upstream.pid!] });
  await sleep(SETTLE_MILLIS);
  await reports(fleet);
  console.log(`seed ${seed}`);
  const cells = [
    "healthz ms",
    "with cores",
    "bare loop",
    "turn CPU ms",
    "request ms",
    "with cores",
    "straight ms",
    "asked",
    "lost",
    "MiB at most",
    "MiB after",
    "defects",
  ];
  console.log(`${"".padEnd(60)}${cells.map((cell) => cell.padStart(12)).join("")}`);
  const worst = { millis: 0, lost: 0, mib: 0, defects: 0 };
  const round = async (chosen: readonly Part[], name: string): Promise<void> => {
    const row = await attack(fleet, chosen, name);
    worst.millis = Math.max(worst.millis, row.millis);
    worst.mib = Math.max(worst.mib, row.mib);
    worst.lost += row.lost;
    worst.defects = Math.max(worst.defects, row.defects);
  };
  await round([], "nobody else");
  for (const part of parts) await round([part], part);
  while (performance.now() < ends) await round(parts, "all");
  const limits = [Number(values["wait-millis-max"]), Number(values["rss-mib-max"])] as const;
  console.log(
    `worst wait of others ${worst.millis.toFixed(1)} ms (goal ${limits[0]}), lost ${worst.lost} (goal 0), ` +
      `memory at most ${worst.mib} MiB (goal ${limits[1]}), defects ${worst.defects} (goal 0)`,
  );
  const fails = worst.millis > limits[0] || worst.lost > 0 || worst.mib > limits[1] || worst.defects > 0;
  process.exitCode = fails ? 1 : 0;
  await redis.kill();
}

async function attack(fleet: Fleet, chosen: readonly Part[], name: string) {
  const { port, pid, engine, writer } = fleet;
  await fleet.stalls.restart();
  await reports(fleet);
  const until = performance.now() + Number(values.seconds) * 1_000;
  let mib = rssMib(pid);
  const looks = setInterval(() => (mib = Math.max(mib, rssMib(pid))), LOOK_MILLIS);
  engine.send(turnOf(chosen));
  writer.send(chosen.includes("reports"));
  const place = { port, until, draw: (below: number) => mutator.below(below), answered: () => {} };
  const work: Promise<unknown>[] = [sleep(Number(values.seconds) * 1_000)];
  const attacked = chosen.includes("http") ? (values.attack ?? mutator.of(ATTACKS)) : undefined;
  if (attacked !== undefined) work.push(HTTP_ATTACKS[attacked]!(place), httpMutated(port, until));
  if (chosen.includes("answers")) for (let i = 0; i < ASKERS; i++) work.push(askHostile(port, until));
  await Promise.all(work);
  const [health, well, bare, straight] = await reports(fleet);
  clearInterval(looks);
  await fleet.stalls.read();
  engine.send("none" satisfies HostileTurn);
  writer.send(false);
  await sleep(SETTLE_MILLIS);
  const defects = await defectsOf(port);
  const figures = [
    health.worstServedMillis.toFixed(1),
    health.worstMillis.toFixed(1),
    bare.worstServedMillis.toFixed(1),
    fleet.stalls.turnCpuMillis.toFixed(1),
    well.worstServedMillis.toFixed(1),
    well.worstMillis.toFixed(1),
    straight.worstServedMillis.toFixed(1),
    String(well.asked),
    String(well.lost.length),
    String(mib),
    String(rssMib(pid)),
    String(defects),
  ];
  const shown = attacked === undefined ? name : `${name}: ${attacked}`;
  console.log(`${shown.padEnd(60)}${figures.map((cell) => cell.padStart(12)).join("")}`);
  if (values.stalls) fleet.stalls.print("the gateway");
  for (const one of well.lost.slice(0, 3)) console.log(`  lost: ${one}`);
  return { millis: Math.max(health.worstServedMillis, well.worstServedMillis), mib, lost: well.lost.length, defects };
}

function turnOf(chosen: readonly Part[]): HostileTurn {
  const own = chosen.filter((part): part is "metrics" | "answers" | "events" => part !== "http" && part !== "reports");
  return own.length > 1 ? "all" : (own[0] ?? "none");
}

/** Requests for the hostile engine's model, whatever it answers. */
async function askHostile(port: number, until: number): Promise<void> {
  while (performance.now() < until) {
    const path = mutator.of([
      "/v1/chat/completions",
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/messages",
      "/v1/responses",
    ]);
    const prompt = {
      chat: { messages: [{ role: "user", content: "x" }] },
      text: { prompt: "x" },
      input: { input: "x" },
    };
    const fields = path.endsWith("responses") ? prompt.input : path === "/v1/completions" ? prompt.text : prompt.chat;
    const asked = {
      model: "evil",
      max_tokens: 100,
      stream: mutator.below(3) > 0,
      return_token_ids: mutator.below(2) === 0,
    };
    try {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...asked, ...fields }),
        signal: AbortSignal.timeout(GIVE_UP_MILLIS),
      });
      await answer.arrayBuffer();
    } catch {
      // Cut, as it may be.
    }
  }
}

/** Captured requests of clients, mutated. */
async function httpMutated(port: number, until: number): Promise<void> {
  const { connect } = await import("node:net");
  const { readdirSync } = await import("node:fs");
  const folder = join(import.meta.dirname, "../test/golden/vllm-http");
  const all = readdirSync(folder)
    .filter((file) => file.endsWith(".req.http"))
    .map((file) => readFileSync(join(folder, file)));
  while (performance.now() < until) {
    const bytes = mutator.mutated(mutator.of(all), mutator.of(all));
    await new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
      socket.setTimeout(1_000, () => socket.destroy());
      socket.on("error", () => {});
      socket.on("close", () => resolve());
      socket.resume();
    });
  }
}

async function defectsOf(port: number): Promise<number> {
  try {
    const page = await (
      await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(GIVE_UP_MILLIS) })
    ).text();
    return [...page.matchAll(DEFECTS)].reduce((sum, [, count]) => sum + Number(count), 0);
  } catch {
    return Infinity;
  }
}

function rssMib(pid: number): number {
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024);
}

async function reports({ probe, well, bareProbe, straight }: Fleet): Promise<Reports> {
  const all = [probe, well, bareProbe, straight];
  const answers = Promise.all(all.map(message));
  for (const one of all) one.send("report");
  return (await answers) as unknown as Reports;
}

function child(file: string, args: readonly string[], core = lastCore): ChildProcess {
  const [command, all] = pinned(core, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
