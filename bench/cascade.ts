/**
 * A cascade of two models, live: which share goes on to the second, and what that costs, by the openai client.
 *
 *     npx node bench/cascade.ts [--streams 200] [--tokens 64] [--clients 8] [--judged 8,16,0]
 *     npx node bench/cascade.ts --vllm "COMMAND PORT MODEL" [...]
 *
 * Without `--vllm`, emulated engines with steps of 10 and 30 ms. With it, two engines of that command, in which PORT
 * and MODEL stand for an engine's port and the name of its model; where its weights are random, --logprobs-mode
 * processed_logprobs is to be among its options, as a bias of the request makes such a model sure of answers. Each
 * model is asked alone first; the threshold is the middle of the means that the small one's answers have, so that about
 * half of them go on. `--judged` lists tokens after which an answer is judged, 0 for all. Every stream must be one
 * answer of one model, with the text that this model gives alone, and a replay of the trace must decide the same.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { openaiStream, type StreamSeen } from "./cascade/openai-stream.ts";
import { kept, message } from "./children.ts";
import { engineReady, startGroup } from "./engine-group.ts";
import { freePort } from "./free-port.ts";
import { startGateway } from "./gateway-process.ts";
import { median } from "./median.ts";

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "200" },
    tokens: { type: "string", default: "64" },
    clients: { type: "string", default: "8" },
    judged: { type: "string", default: "8,16,0" },
    vllm: { type: "string" },
  },
});
const tokens = Number(values.tokens);
const SUBJECTS = ["rivers", "engines", "maps", "rain", "bridges", "clocks", "gardens", "letters"];
const prompts = Array.from(
  { length: Number(values.streams) },
  (_, i) => `Question ${i}: what is worth knowing of ${SUBJECTS[i % SUBJECTS.length]}?`,
);
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));

try {
  await main();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(process.exitCode ?? 0);

async function main(): Promise<void> {
  const ports = values.vllm === undefined ? await emulated() : await real(values.vllm);
  const plain = await startGateway(ports, [], 0);
  const small = await all(plain.port, "small", true);
  const large = await all(plain.port, "large", false);
  print("small alone", small);
  print("large alone", large);
  const alone = new Map(
    [...small, ...large].map((one, i) => [`${one.model} ${prompts[i % prompts.length]}`, one.text]),
  );
  const threshold = median(small.map(({ meanLogprob }) => meanLogprob ?? NaN));
  for (const judged of values.judged.split(",").map(Number)) {
    const trace = join(scratch, `trace-${judged}`);
    const { port } = await startGateway(ports, ["--config", configured(judged, threshold), "--record", trace], 0);
    const seen = await all(port, "assistant", false);
    print(`cascade at ${threshold.toFixed(3)}, judged by ${judged === 0 ? "all" : judged} tokens`, seen);
    const other = seen.filter(({ model, text }, i) => alone.get(`${model} ${prompts[i]}`) !== text).length;
    console.log(`  text other than by that model alone: ${other}; ${await counted(port)}`);
    await sleep(1_500);
    const replay = spawnSync(process.execPath, [join(import.meta.dirname, "../src/main.ts"), "replay", trace]);
    console.log(`  replay: ${replay.stdout.toString().trim().split("\n")[0]}`);
    if (replay.status !== 0) process.exitCode = 1;
  }
}

async function emulated(): Promise<number[]> {
  const file = join(import.meta.dirname, "continuation/engine.ts");
  const start = async (model: string, stepMillis: number): Promise<number> => {
    const args = [file, "0", String(stepMillis), model];
    const child = kept(spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
    return ((await message(child)) as { port: number }).port;
  };
  return Promise.all([start("small", 10), start("large", 30)]);
}

async function real(command: string): Promise<number[]> {
  const ports: number[] = [];
  for (const model of ["small", "large"]) {
    const port = await freePort();
    const line = command.replaceAll("PORT", String(port)).replaceAll("MODEL", model);
    startGroup(line);
    ports.push(port);
  }
  for (const port of ports) await engineReady(port);
  return ports;
}

/** All prompts, by as many clients at once as asked for. */
async function all(port: number, model: string, logprobs: boolean): Promise<StreamSeen[]> {
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none", maxRetries: 0 });
  const seen: StreamSeen[] = [];
  let next = 0;
  const one = async (): Promise<void> => {
    for (let i = next++; i < prompts.length; i = next++)
      seen[i] = await openaiStream(client, model, prompts[i]!, tokens, { ...(logprobs && { logprobs }), ...biasOf(i) });
  };
  await Promise.all(Array.from({ length: Number(values.clients) }, one));
  return seen;
}

/** Of weights that are no trained model's every token is as likely: a bias makes answers sure, each by another measure. */
function biasOf(i: number): { readonly logit_bias?: Record<string, number> } {
  return values.vllm === undefined ? {} : { logit_bias: { "1000": 9 + ((i * 29) % 64) / 8 } };
}

function configured(judged: number, threshold: number): string {
  const path = join(scratch, `cascade-${judged}.yaml`);
  const steps = [{ model: "small", logprobMin: threshold }, { model: "large" }];
  const chain = { name: "assistant", steps, ...(judged > 0 && { judgedTokens: judged }) };
  writeFileSync(path, JSON.stringify({ cascade: { chains: [chain] } }));
  return path;
}

/** The gateway's own counts. */
async function counted(port: number): Promise<string> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const lines = page.matchAll(/^gnomon_cascade_answers_total\{.*verdict="(.*?)".*\} (\d+)/gm);
  return [...lines].map(([, verdict, count]) => `${verdict} ${count}`).join(", ");
}

function print(name: string, seen: readonly StreamSeen[]): void {
  const flaws = seen.filter(({ flaw }) => flaw !== "");
  const share = seen.filter(({ model }) => model === "large").length / seen.length;
  const of = (key: "ttftMillis" | "e2eMillis") => quantiles(seen.map((one) => one[key]));
  console.log(`${name}: ${seen.length} streams, ${flaws.length} with a flaw, ${(100 * share).toFixed(0)} % by large`);
  console.log(`  TTFT ms ${of("ttftMillis")}; E2E ms ${of("e2eMillis")}`);
  if (flaws.length > 0) console.log(`  ${flaws[0]!.flaw}`);
  if (flaws.length > 0) process.exitCode = 1;
}

function quantiles(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? NaN).toFixed(0);
  return `p50 ${at(0.5)}, p99 ${at(0.99)}`;
}
