import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type Random, randomFor } from "#core/base/random.ts";
import { kept } from "../children.ts";
import { startGateway } from "../gateway-process.ts";

const BEGINNINGS = [695, 316, 789, 765, 687, 750, 610, 288, 788, 440];
const BEGINNINGS_SEED = 5;
const END_TOKENS_MEDIAN = 280;
const END_TOKENS_MAX = 2_500;
const ANSWER_TOKENS = 70;
/** Ids that every vocabulary has. */
const TOKEN_ID_MIN = 5;
const TOKEN_IDS = 240;
const DRIVE_MILLIS_MAX = 900_000;
const GATEWAY_CORE = 1;

/** A run's name, requests a second and how many, as NAME:RATE:COUNT. */
export interface AskedRun {
  readonly name: string;
  readonly perSecond: number;
  readonly count: number;
}

/** Undefined where it is none. */
export function askedRun(text: string): AskedRun | undefined {
  const [name = "", rate, requests] = text.split(":");
  const [perSecond, count] = [Number(rate), Number(requests)];
  return name !== "" && perSecond > 0 && Number.isInteger(count) && count > 0 ? { name, perSecond, count } : undefined;
}

/**
 * Records runs of a real engine that runs at `url`: a workload of ten shared beginnings goes through a gateway to it, once
 * for each rate, and each run becomes a trace in `out`. The beginnings are the same in all, so that what one run left in the
 * cache is found by the next. Answers have 70 tokens in the mean, own ends of prompts 280 in the median.
 */
export async function recordRuns(url: string, out: string, runs: readonly AskedRun[], seed: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-record-"));
  try {
    mkdirSync(out, { recursive: true });
    for (const [number, { name, perSecond, count }] of runs.entries()) {
      const workload = join(folder, `${name}.jsonl`);
      writeFileSync(workload, requestsOf(perSecond, count, seed * 1000 + number).join(""));
      await recorded(url, workload, join(out, name));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function recorded(url: string, workload: string, trace: string): Promise<void> {
  const port = Number(new URL(url).port || 80);
  const gateway = await startGateway([port], ["--tokenizer", "vllm", "--record", trace], GATEWAY_CORE);
  const main = join(import.meta.dirname, "../../src/main.ts");
  const to = ["--url", `http://127.0.0.1:${gateway.port}`, "--trace", workload, "--prompt-form", "tokens"];
  const driver = kept(
    spawn(process.execPath, [main, "drive", ...to], {
      stdio: "inherit",
      timeout: DRIVE_MILLIS_MAX,
      killSignal: "SIGTERM",
    }),
  );
  const [code] = (await once(driver, "exit")) as [number | null];
  process.kill(gateway.pid, "SIGTERM");
  while (isAlive(gateway.pid)) await setTimeout(100);
  if (code !== 0) throw new Error(`${trace}: drive ended with ${code}`);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Poisson arrivals, in the form of LLMServingSim's workloads. */
function requestsOf(rate: number, count: number, seed: number): string[] {
  const random = randomFor(seed, 1);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
  let at = 0;
  return Array.from({ length: count }, () => {
    at -= Math.log(1 - random.next()) / rate;
    const beginning = random.below(BEGINNINGS.length);
    const own = 8 + Math.floor(Math.min(END_TOKENS_MAX, END_TOKENS_MEDIAN * Math.exp(0.7 * normal())));
    const input_tok_ids = [
      ...idsOf(randomFor(BEGINNINGS_SEED, beginning), BEGINNINGS[beginning]!),
      ...idsOf(random, own),
    ];
    const output_toks = Math.max(6, Math.round(ANSWER_TOKENS + 25 * normal()));
    const one = { input_toks: input_tok_ids.length, output_toks, arrival_time_ns: Math.round(at * 1e9), input_tok_ids };
    return `${JSON.stringify(one)}\n`;
  });
}

function idsOf(random: Random, count: number): number[] {
  return Array.from({ length: count }, () => TOKEN_ID_MIN + random.below(TOKEN_IDS));
}
