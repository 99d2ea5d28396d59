/**
 * Streams whose engines are killed: every one is to end whole, with the text that it would have had.
 *
 *     npx node bench/continuation.ts [--streams 1000] [--engines 10] [--tokens 150] [--kill-seconds 2] [--step-millis 100]
 *     npx node bench/continuation.ts --vllm "COMMAND PORT" [--streams 100] [--faults stop,term,kill] [--fault-seconds 3]
 *
 * With `--no-ids` a relay before each engine keeps the gateway's wish for token ids from it, as before an engine that
 * knows none: streams go on behind their text.
 *
 * Without `--vllm`, emulated engines in processes of their own, one of which gets SIGKILL every so many seconds and is
 * started again a second later. With it, two engines of that command (PORT stands for the port), of which one gets the
 * signal while all streams run; before, the same streams twice undisturbed, as a measure of how far the engines repeat
 * themselves. The gateway is what `serve` starts, with its defaults.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { TraceReader } from "#trace/reader.ts";
import { endAll, kept, message } from "./children.ts";
import { idHidingProxy } from "./continuation/id-hiding-proxy.ts";
import { type Received, type Question, keyOf, listen, questions } from "./continuation/stream.ts";
import { enginePort, engineReady, signalGroup, startGroup } from "./engine-group.ts";
import { startGateway } from "./gateway-process.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string" },
    engines: { type: "string", default: "10" },
    tokens: { type: "string", default: "150" },
    "kill-seconds": { type: "string", default: "2" },
    "step-millis": { type: "string", default: "100" },
    vllm: { type: "string" },
    faults: { type: "string", default: "stop,term,kill" },
    "fault-seconds": { type: "string", default: "3" },
    "no-ids": { type: "boolean", default: false },
  },
});
const tokens = Number(values.tokens);
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));
const DISTINCT = 50;
const SIGNALS = { stop: "SIGSTOP", term: "SIGTERM", kill: "SIGKILL" } as const;

try {
  if (values.vllm === undefined) await emulated();
  else await real(values.vllm);
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function emulated(): Promise<void> {
  const asked = questions(Number(values.streams ?? 1_000), DISTINCT, tokens);
  const engines = await Promise.all(Array.from({ length: Number(values.engines) }, () => startEngine(0)));
  const { port } = await startGateway(await portsBefore(engines), ["--record", scratch], 0);
  const alone = await Promise.all(questions(2 * DISTINCT, DISTINCT, tokens).map((one) => askEngine(engines[0]!, one)));
  const expected = new Map(alone.map(([question, { text }]) => [keyOf(question), text]));
  const run = { isOver: false };
  const down = new Set<Engine>();
  let kills = 0;
  const killing = (async () => {
    for (; !run.isOver; kills++) {
      await sleep(1_000 * Number(values["kill-seconds"]));
      if (run.isOver) break;
      const victim = engines[kills % engines.length]!;
      // On a full machine it may not be back yet.
      if (down.has(victim)) continue;
      down.add(victim);
      victim.child.kill("SIGKILL");
      void sleep(1_000)
        .then(() => startEngine(victim.port))
        .then((again) => {
          victim.child = again.child;
          down.delete(victim);
        });
    }
  })();
  const received = await Promise.all(asked.map((question, i) => listen(port, `stream-${i}`, question)));
  run.isOver = true;
  await killing;
  console.log(`${asked.length} streams of ${tokens} tokens, ${engines.length} engines, ${kills} killed`);
  report(asked, received, (question) => [expected.get(keyOf(question)) ?? ""]);
  await sleep(1_500);
  await seams(received);
  await denials(port);
}

/** Why streams did not go on, by the gateway's own count. */
async function denials(port: number): Promise<void> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = page.match(
    /^gnomon_(?:streams_not_continued|streams_continued_by_text|internal_errors)_total.* [1-9]\d*$/gm,
  );
  for (const line of lines ?? []) console.log(`  ${line}`);
}

interface Engine {
  child: ChildProcess;
  readonly port: number;
}

/** Where the gateway finds them. */
function portsBefore(engines: readonly Engine[]): Promise<number[]> {
  return Promise.all(engines.map(({ port }) => (values["no-ids"] ? idHidingProxy(port) : Promise.resolve(port))));
}

async function startEngine(port: number): Promise<Engine> {
  const file = join(import.meta.dirname, "continuation/engine.ts");
  const child = kept(
    spawn(process.execPath, [file, String(port), values["step-millis"]], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    }),
  );
  const { port: taken } = (await message(child)) as { port: number };
  return { child, port: taken };
}

async function askEngine({ port }: Engine, question: Question): Promise<readonly [Question, Received]> {
  return [question, await listen(port, `alone-${keyOf(question).replace(" ", "-")}`, { ...question, usage: false })];
}

async function real(command: string): Promise<void> {
  const asked = questions(Number(values.streams ?? 100), Number(values.streams ?? 100), tokens);
  const base = enginePort();
  const engines = [startReal(command, base), startReal(command, base + 1)];
  await Promise.all(engines.map(({ port, child }) => engineReady(port, child)));
  const { port } = await startGateway(await portsBefore(engines), ["--record", scratch], 0);
  const run = (name: string) => Promise.all(asked.map((one, i) => listen(port, `${name}-${i}`, one)));
  const first = await run("first");
  const second = await run("second");
  console.log(`${asked.length} streams of ${tokens} tokens, 2 engines, undisturbed twice`);
  report(asked, second, (_question, i) => [first[i]!.text]);
  for (const fault of values.faults.split(",") as (keyof typeof SIGNALS)[]) {
    const victim = engines[0]!;
    const running = run(fault);
    await sleep(1_000 * Number(values["fault-seconds"]));
    signalGroup(victim.child.pid!, SIGNALS[fault]);
    const received = await running;
    console.log(`${fault}: ${asked.length} streams, one engine gets ${SIGNALS[fault]}`);
    report(asked, received, (_question, i) => [first[i]!.text, second[i]!.text]);
    await sleep(1_500);
    await seams(received, fault);
    await denials(port);
    if (fault === "stop") {
      signalGroup(victim.child.pid!, "SIGCONT");
      await sleep(8_000);
    } else if (fault !== values.faults.split(",").at(-1)) {
      signalGroup(victim.child.pid!, "SIGKILL");
      await sleep(2_000);
      engines[0] = startReal(command, base);
      await engineReady(engines[0].port, engines[0].child);
      await sleep(20_000);
    }
  }
}

/** A group of processes of its own, all of which get the signals. */
function startReal(command: string, port: number): Engine {
  const line = command.replaceAll("PORT", String(port));
  return { child: startGroup(line), port };
}

/** `undisturbed` has the texts that a stream is to have one of. */
function report(
  asked: readonly Question[],
  received: readonly Received[],
  undisturbed: (question: Question, i: number) => readonly string[],
): void {
  const flaws = new Map<string, number>();
  for (const { flaw } of received) if (flaw !== "") flaws.set(flaw, (flaws.get(flaw) ?? 0) + 1);
  const same = received.filter(({ text }, i) => undisturbed(asked[i]!, i).includes(text)).length;
  const whole = received.filter(({ flaw }) => flaw === "").length;
  console.log(`  whole and well-formed: ${whole} of ${received.length}; text as undisturbed: ${same}`);
  for (const [flaw, count] of flaws) console.log(`  ${count} with: ${flaw}`);
}

/** Gaps where streams went on, from the trace: which those were, and what the router saw. */
async function seams(received: readonly Received[], prefix = "stream"): Promise<void> {
  const broken = new Map<string, number>();
  const routed: number[] = [];
  const continued = new Set<number>();
  let times = 0;
  for await (const item of new TraceReader(scratch).items()) {
    if (item.kind !== "record") continue;
    const { input } = item;
    if (input.kind === "request-continued" && input.requestId.startsWith(`${prefix}-`)) {
      times++;
      broken.set(input.requestId, input.at);
      continued.add(Number(/-(\d+)/.exec(input.requestId)![1]));
    }
    const since = input.kind === "first-token" ? broken.get(input.requestId) : undefined;
    if (input.kind !== "first-token" || since === undefined) continue;
    routed.push((input.at - since) / 1_000);
    broken.delete(input.requestId);
  }
  const gaps = [...continued].map((i) => addedGap(received[i]!));
  const others = received.filter((_one, i) => !continued.has(i)).map(addedGap);
  console.log(`  went on elsewhere: ${continued.size} streams, ${times} times`);
  console.log(`  ms from the break to the next token, at the router: ${quantiles(routed)}`);
  console.log(
    `  ms added to a stream's usual gap by its longest one: ${quantiles(gaps)}; of the others: ${quantiles(others)}`,
  );
}

/** The longest pause between two events over the usual one, in milliseconds. */
function addedGap({ arrivals }: Received): number {
  const gaps = arrivals.slice(1).map((at, i) => at - arrivals[i]!);
  const sorted = gaps.toSorted((a, b) => a - b);
  return (sorted.at(-1) ?? 0) - (sorted[sorted.length >> 1] ?? 0);
}

function quantiles(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? NaN).toFixed(1);
  return sorted.length === 0 ? "none" : `p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)}`;
}
