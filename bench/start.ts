/**
 * What a start of the gateway costs: time until it answers, CPU and memory, with estimated tokens and with Llama 3's exact
 * ones (128,000 entries). Two things are kept on disk for the next start: code that V8 compiled (types erased), written as
 * a gateway ends, and the table of the vocabulary, written as it is made. Beside it, in the same rounds, a bare Hono proxy.
 *
 *     npx node bench/start.ts [--rounds 3] [--root FOLDER] [--root FOLDER]
 *
 * `--root` is another checkout to compare with, started in turns with this one. Each start is `bin/gnomon.js serve` before
 * one engine that costs next to nothing. Resident memory is that of the gateway's process (VmRSS), at the first answer and
 * after 2,000 more; children are counted by CPU alone.
 */
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { median } from "#core/base/quantile.ts";
import { freePort } from "./free-port.ts";
import { EXACT_TOKENS } from "./gateway-process.ts";

const HERE = resolve(import.meta.dirname, "..");
const ESTIMATE = ["--tokenizer", "estimate"];
/** In this order: what one leaves behind the next ones find, unless they have a folder of their own. */
const KINDS: readonly Kind[] = [
  { name: "exact, nothing kept", flags: EXACT_TOKENS, code: "kept", table: "kept" },
  { name: "exact, all kept", flags: EXACT_TOKENS, code: "kept", table: "kept" },
  { name: "exact, code kept, no table", flags: EXACT_TOKENS, code: "kept", table: "own" },
  { name: "exact, table kept, no code", flags: EXACT_TOKENS, code: "own", table: "kept" },
  { name: "estimate, nothing kept", flags: ESTIMATE, code: "own", table: "own" },
  { name: "estimate, code kept", flags: ESTIMATE, code: "kept", table: "own" },
];
const MORE_ANSWERS = 2_000;
const GIVE_UP_MILLIS = 60_000;

/** Which folders a start has: the one of all starts of its round, or one that is empty. */
interface Kind {
  readonly name: string;
  readonly flags: readonly string[];
  readonly code: "kept" | "own";
  readonly table: "kept" | "own";
}

/** A process before it answers. */
interface Begun {
  readonly process: ChildProcess;
  readonly port: number | Promise<number>;
}

interface Start {
  readonly answerMillis: number;
  readonly cpuMillis: number;
  readonly residentMegabytes: number;
  readonly usedMegabytes: number;
}

const { values } = parseArgs({ options: { rounds: { type: "string" }, root: { type: "string", multiple: true } } });
const rounds = Number(values.rounds ?? 3);
const roots = [...(values.root ?? []), HERE];

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const stub = join(import.meta.dirname, "stub-upstream.ts");
  const engines = kept(spawn(process.execPath, [stub, "1"], { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
  const { ports } = (await message(engines)) as { ports: number[] };
  const starts = new Map<string, Start[]>();
  const note = (key: string, one: Start): void => void starts.set(key, [...(starts.get(key) ?? []), one]);
  for (let round = 0; round < rounds; round++) {
    for (const root of round % 2 === 0 ? roots : roots.toReversed()) {
      const caches = mkdtempSync(join(tmpdir(), "gnomon-start-"));
      for (const [at, { name, flags, code, table }] of KINDS.entries()) {
        const folderOf = (which: string, kind: "kept" | "own"): string =>
          join(caches, kind === "own" ? `${which}-${at}` : which);
        const env = { NODE_COMPILE_CACHE: folderOf("code", code), XDG_CACHE_HOME: folderOf("tables", table) };
        const key = `${name.padEnd(28)}${root === HERE ? "here" : root}`;
        note(key, await start(() => gateway(root, flags, ports[0]!, env)));
      }
      const env = { NODE_COMPILE_CACHE: join(caches, "bare") };
      await start(() => bareProxy(ports[0]!, env));
      note("bare Hono, code kept", await start(() => bareProxy(ports[0]!, env)));
      rmSync(caches, { recursive: true, force: true });
    }
  }
  console.log(
    `medians of ${rounds} starts                     answer s   CPU s   MB at first   MB after ${MORE_ANSWERS}`,
  );
  for (const [key, all] of starts) {
    const of = (pick: (one: Start) => number): number => median(all.map(pick));
    const cells = [
      (of((one) => one.answerMillis) / 1000).toFixed(2).padStart(8),
      (of((one) => one.cpuMillis) / 1000).toFixed(2).padStart(7),
      of((one) => one.residentMegabytes)
        .toFixed(0)
        .padStart(13),
      of((one) => one.usedMegabytes)
        .toFixed(0)
        .padStart(15),
    ];
    console.log(`${key.padEnd(38)}${cells.join("")}`);
  }
}

type Environment = Readonly<Record<string, string>>;

async function gateway(root: string, flags: readonly string[], enginePort: number, own: Environment): Promise<Begun> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${enginePort}`;
  const serve = [
    "serve",
    "--port",
    String(port),
    "--admin-port",
    "0",
    "--endpoint",
    endpoint,
    ...flags,
    "--log-level",
    "error",
  ];
  const command = [join(root, "bin/gnomon.js"), ...serve];
  return { process: begun(command, own, ["ignore", "ignore", "inherit"]), port };
}

async function bareProxy(enginePort: number, own: Environment): Promise<Begun> {
  const command = [join(import.meta.dirname, "bare-proxy.ts"), String(enginePort)];
  const process = begun(command, own, ["ignore", "ignore", "inherit", "ipc"]);
  return { process, port: message(process).then((sent) => (sent as { port: number }).port) };
}

function begun(command: readonly string[], own: Environment, stdio: StdioOptions): ChildProcess {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("GNOMON_")));
  return kept(spawn(process.execPath, command, { stdio, env: { ...env, ...own } }));
}

/** From the start of the process to the first whole answer. */
async function start(begin: () => Promise<Begun>): Promise<Start> {
  const began = performance.now();
  const { process: child, port: announced } = await begin();
  const port = await announced;
  while (!(await answers(port))) {
    if (performance.now() - began > GIVE_UP_MILLIS || child.exitCode !== null) throw new Error("no answer");
    await new Promise((next) => setTimeout(next, 10));
  }
  const answerMillis = performance.now() - began;
  const [cpuMillis, residentMegabytes] = [cpu(child.pid!), resident(child.pid!)];
  for (let i = 0; i < MORE_ANSWERS; i++) await answers(port, i);
  const usedMegabytes = resident(child.pid!);
  await ended(child);
  return { answerMillis, cpuMillis, residentMegabytes, usedMegabytes };
}

async function answers(port: number, number = 0): Promise<boolean> {
  const messages = [{ role: "user", content: `${number} ${"some words of a prompt ".repeat(80)}` }];
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "tiny", messages }),
    });
    await answer.text();
    return answer.ok;
  } catch {
    return false;
  }
}

/** Of the process and of children that have ended, in the kernel's ticks of 10 ms. */
function cpu(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ").map(Number);
  return 10 * (fields[11]! + fields[12]! + fields[13]! + fields[14]!);
}

function resident(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** In order, so that what it compiled is written. */
function ended(child: ChildProcess): Promise<void> {
  const end = new Promise<void>((done) => void child.once("exit", () => done()));
  if (child.connected) child.disconnect();
  else child.kill("SIGTERM");
  return end;
}
