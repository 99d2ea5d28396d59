import { spawn } from "node:child_process";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { randomFor } from "#core/base/random.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { freePort } from "../free-port.ts";
import { traceOfStorm } from "../policy/storm.ts";
import { DrivenGateway } from "./gateway.ts";

export interface RealEngines {
  /** A program that serves vLLM in the foreground: called with a port and vLLM's own options. */
  readonly serve: string;
  /** Options of the second engine; the first has none. */
  readonly flags: readonly string[];
  readonly seconds: number;
  readonly perSecond: number;
}

const NAME = "flags";
const WINDOW_MILLIS = 10_000;
/** Engines that share two cores are slow to start. */
const READY_MILLIS_MAX = 900_000;
const ANSWER_TOKENS = 70;
/** All prompts begin with it: of some 3,500 tokens, of which an engine that caches prefixes computes a few. */
const SHARED = "and what of the old harbour ".repeat(500);
/** Nobody waits longer for what is still answered at the end. */
const REST_MILLIS = 60_000;

/**
 * Two real vLLM that differ in their flags, as arms by a label of their endpoints: what the judge finds of them, by when,
 * and whether every request was answered and every decision replays. False where they are not; what is found is for whoever
 * chose the flags.
 */
export async function realEngines({ serve, flags, seconds, perSecond }: RealEngines): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-real-engines-"));
  process.once("exit", endEngines);
  const since = performance.now();
  const versions = { a: [], b: flags } as const;
  print(`engines write to ${folder}`);
  const urls = await Promise.all(Object.entries(versions).map(([one, options]) => engine(serve, one, options, folder)));
  print(`ready after ${((performance.now() - since) / 1000).toFixed(0)} s: a as it is, b with ${flags.join(" ")}`);
  const gateway = new DrivenGateway(folder, {
    listen: { port: 0 },
    endpoints: Object.keys(versions).map((version, i) => ({ id: version, url: urls[i], labels: { version } })),
    rollout: { lookMillis: 1_000 },
    policy: { directory: join(folder, "state") },
    record: { directory: join(folder, "trace") },
  });
  try {
    await gateway.start();
    await gateway.admin("POST", "/rollout", {
      name: NAME,
      arms: { by: "version", control: "a", other: "b" },
      design: { kind: "pools", windowMillis: WINDOW_MILLIS, by: "request" },
      plannedCount: Math.max(3, Math.floor((1_000 * seconds) / WINDOW_MILLIS)),
      primary: "ttft.mean",
      windowSamplesMin: 3,
      baselineMillis: 0,
    });
    const load = new OpenLoad(gateway.url, await modelOf(urls[0]!), perSecond);
    const end = performance.now() + 1_000 * seconds;
    let view = await gateway.rollout(NAME);
    const begun = performance.now();
    while (performance.now() < end && view.phase === "running" && view.verdict.advice === "wait") {
      await pause(1_000);
      view = await gateway.rollout(NAME);
    }
    const minutes = (performance.now() - begun) / 60_000;
    await load.stop();
    report(view, minutes);
    await gateway.end();
    const { replay, decisions } = await traceOfStorm(join(folder, "trace"));
    print(
      `${load.answered} requests answered, ${load.failures.length} not ${load.failures.slice(0, 3).join("; ")}; ` +
        `${replay.decisions} of ${decisions} decisions replayed, ${replay.differences} differences`,
    );
    return load.failures.length === 0 && replay.differences === 0 && replay.decisions === decisions;
  } finally {
    await gateway.end("SIGKILL").catch(() => {});
    endEngines();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Process groups of engines, none of which outlives the bench. */
const engines = new Set<number>();

function endEngines(): void {
  for (const group of engines) {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  }
  engines.clear();
}

/** Its address, once it is ready. */
async function engine(serve: string, name: string, options: readonly string[], folder: string): Promise<string> {
  const port = await freePort();
  const log = join(folder, `${name}.log`);
  // With a group of its own: vLLM has processes that outlive the one that started them.
  const child = spawn(serve, [String(port), ...options], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  if (child.pid !== undefined) engines.add(child.pid);
  const written = createWriteStream(log);
  child.stdout.pipe(written, { end: false });
  child.stderr.pipe(written, { end: false });
  let ended: string | undefined;
  child.once("error", ({ message }) => (ended = message));
  child.once("exit", (code, signal) => (ended = `exit ${code ?? signal}`));
  const url = `http://127.0.0.1:${port}`;
  for (const since = performance.now(); performance.now() - since < READY_MILLIS_MAX; await pause(500)) {
    if (ended !== undefined) throw new Error(`${serve}: engine ${name} ended before it was ready: ${ended}`);
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok === true) return url;
  }
  throw new Error(`${serve}: engine ${name} was not ready within ${READY_MILLIS_MAX / 1_000} s`);
}

async function modelOf(url: string): Promise<string> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { readonly data: readonly { id: string }[] };
  return data[0]!.id;
}

/** Requests that come as they would whatever the answers take. */
class OpenLoad {
  answered = 0;
  readonly failures: string[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #model: string;
  readonly #ended: Promise<void>;
  #stopped = false;

  constructor(url: string, model: string, perSecond: number) {
    this.#model = model;
    this.#ended = this.#send(url, perSecond);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#ended;
    await Promise.race([Promise.all(this.#open), pause(REST_MILLIS)]);
    for (const _ of this.#open) this.failures.push(`no answer within ${REST_MILLIS / 1_000} s of the end`);
  }

  async #send(url: string, perSecond: number): Promise<void> {
    const random = randomFor(1, 29);
    for (let number = 0; !this.#stopped; number++) {
      const one: Promise<void> = this.#ask(url, number).finally(() => this.#open.delete(one));
      this.#open.add(one);
      await pause((-1_000 * Math.log(1 - random.next())) / perSecond);
    }
  }

  async #ask(url: string, number: number): Promise<void> {
    const content = `${SHARED}${number}`;
    try {
      const answer = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: this.#model,
          messages: [{ role: "user", content }],
          stream: true,
          max_tokens: ANSWER_TOKENS,
          ignore_eos: true,
        }),
      });
      const text = await answer.text();
      if (answer.ok && text.trimEnd().endsWith("[DONE]")) this.answered++;
      else this.failures.push(`${answer.status} ${text.slice(-200)}`);
    } catch (error) {
      this.failures.push(error instanceof Error ? error.message : String(error));
    }
  }
}

function report({ phase, reason, verdict, health, differences, windows }: RolloutView, minutes: number): void {
  print(`${phase} after ${minutes.toFixed(1)} minutes (${reason})`);
  print(verdict.text);
  for (const line of health) print(line);
  for (const { metric, figure, count, meanMillis, lowMillis, highMillis } of differences) {
    if (figure !== "mean") continue;
    const [mean, low, high] = [meanMillis, lowMillis, highMillis].map((one) => one?.toFixed(1) ?? "-");
    print(`${metric} ${mean} [${low}, ${high}] ms of ${count.toFixed(0)} windows; ${windows.length} shown`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
