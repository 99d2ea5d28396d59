/**
 * What gnomon as Envoy's endpoint picker does before two real engines, beside the gateway alone: the same chats one after
 * another, with empty caches, through either; then streams side by side, an engine that is killed, and a picker that is
 * killed, gone and back, where Envoy fails closed and where it fails open.
 *
 *     npx node bench/picker-engines.ts --envoy BINARY --vllm "serve.sh PORT" --tokenizer FOLDER [--chats 100]
 *
 * The command of --vllm starts an engine on PORT with /reset_prefix_cache (VLLM_SERVER_DEV_MODE=1 is set for it).
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import OpenAI from "openai";
import { randomFor } from "#core/random.ts";
import { endAll, kept } from "./children.ts";
import { startEnvoy } from "./envoy-process.ts";
import { freePort } from "./free-port.ts";
import { startGateway } from "./gateway-process.ts";

const SIDE_BY_SIDE = 12;
const AFTER_KILL = 30;
const START_MILLIS_MAX = 270_000;
const MAIN = join(import.meta.dirname, "../src/main.ts");

const { values } = parseArgs({
  options: {
    envoy: { type: "string", default: "envoy" },
    vllm: { type: "string", default: "" },
    tokenizer: { type: "string", default: "" },
    chats: { type: "string", default: "100" },
  },
});
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));
const BINARY = { binary: values.envoy, scratch };

/** One chat as its client saw it. */
interface Seen {
  readonly status: number;
  readonly endpoint: string;
  readonly hitTokens: number;
  readonly reason: string;
  readonly cachedTokens: number;
  readonly text: string;
}

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  const ports = [await freePort(), await freePort()];
  const engines = ports.map(startEngine);
  await Promise.all(ports.map(isUp));
  console.log("engines are up");
  const chats = conversations(Number(values.chats));
  const asked = [];
  for (const way of ["gateway", "picker"] as const) {
    await Promise.all(ports.map((port) => fetch(`http://127.0.0.1:${port}/reset_prefix_cache`, { method: "POST" })));
    const trace = join(scratch, way);
    const pickerPort = await freePort();
    const router = await startRouter(ports, ["--record", trace, "--picker-port", String(pickerPort)]);
    const envoy = await startEnvoy({ ...BINARY, mode: "bodies", picker: pickerPort, engines: ports });
    await sleep(2_000);
    const port = way === "gateway" ? router.port : envoy.port;
    const seen: Seen[] = [];
    for (const [i, messages] of chats.entries()) seen.push(await ask(port, messages, i % 2 === 1));
    asked.push(seen);
    if (way === "picker") {
      compare(asked[0]!, seen);
      await afterwards(ports, engines, envoy.port, pickerPort, router.pid);
    }
    await stop(envoy.pid);
    await stop(router.pid);
    const { stdout } = spawnSync(process.execPath, [MAIN, "replay", trace], { encoding: "utf8" });
    console.log(`${way}: replay: ${stdout.trim()}`);
  }
}

function compare(gateway: readonly Seen[], picker: readonly Seen[]): void {
  const sum = (all: readonly Seen[]) => all.reduce((total, { cachedTokens }) => total + cachedTokens, 0);
  const same = (of: (one: Seen) => unknown) => gateway.filter((one, i) => of(one) === of(picker[i]!)).length;
  const decision = ({ endpoint, hitTokens, reason }: Seen) => `${endpoint} ${hitTokens} ${reason}`;
  console.log(
    `${gateway.length} chats: the same endpoint ${same(({ endpoint }) => endpoint)}, the same endpoint, hits and reason ` +
      `${same(decision)}, the same text ${same(({ text }) => text)}; ` +
      `prompt tokens that the engines had cached ${sum(gateway)} and ${sum(picker)}`,
  );
  const first = gateway.findIndex((one, i) => decision(one) !== decision(picker[i]!));
  if (first >= 0) console.log("first that differs", first, decision(gateway[first]!), "|", decision(picker[first]!));
}

async function afterwards(
  ports: readonly number[],
  engines: readonly ChildProcess[],
  port: number,
  pickerPort: number,
  pid: number,
): Promise<void> {
  const random = randomFor(5, 1);
  const fresh = () => [{ role: "user" as const, content: words(random, 60) }];
  const streams = await Promise.all(Array.from({ length: SIDE_BY_SIDE }, () => ask(port, fresh(), true)));
  console.log(`streams side by side: ${count(streams)}`);
  const open = await startEnvoy({ ...BINARY, mode: "open", picker: pickerPort, engines: ports });
  process.kill(-engines[1]!.pid!, "SIGKILL");
  const after: Seen[] = [];
  for (let i = 0; i < AFTER_KILL; i++) after.push(await ask(port, fresh(), i % 2 === 1));
  console.log(`an engine killed: ${count(after)}`);
  await stop(pid);
  console.log(`picker gone: closed ${(await ask(port, fresh(), false)).status}`);
  console.log(`picker gone: open ${(await ask(open.port, fresh(), false)).status}`);
  await startRouter(ports, ["--picker-port", String(pickerPort)]);
  let back = 0;
  const since = performance.now();
  while (back === 0 && performance.now() - since < 10_000) {
    if ((await ask(port, fresh(), false)).endpoint !== "") back = performance.now() - since;
    else await sleep(100);
  }
  console.log(`picker back: decides again after ${back.toFixed(0)} ms`);
}

function count(all: readonly Seen[]): string {
  return `${all.filter(({ status, text }) => status === 200 && text !== "").length} of ${all.length} whole`;
}

async function ask(port: number, messages: Message[], stream: boolean): Promise<Seen> {
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "bench", maxRetries: 0 });
  const body = { model: "tiny", messages, max_tokens: 16, temperature: 0 };
  try {
    if (!stream) {
      const { data, response } = await client.chat.completions.create(body).withResponse();
      return seen(response, data.choices[0]?.message.content ?? "", data.usage ?? undefined);
    }
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } } as const;
    const { data, response } = await client.chat.completions.create(streamed).withResponse();
    let text = "";
    let usage: OpenAI.CompletionUsage | undefined;
    for await (const chunk of data) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    return seen(response, text, usage);
  } catch (error) {
    const status = error instanceof OpenAI.APIError ? Number(error.status ?? 0) : 0;
    return { status, endpoint: "", hitTokens: 0, reason: "", cachedTokens: 0, text: "" };
  }
}

function seen({ status, headers }: Response, text: string, usage: OpenAI.CompletionUsage | undefined): Seen {
  return {
    status,
    endpoint: headers.get("x-gnomon-endpoint") ?? "",
    hitTokens: Number(headers.get("x-gnomon-hit-tokens") ?? 0),
    reason: (headers.get("x-gnomon-reason") ?? "").replace(/;.*/, ""),
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
    text,
  };
}

interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Chats over a few system prompts, each with what was asked before in its conversation; answers are made up. */
function conversations(total: number): Message[][] {
  const random = randomFor(3, 1);
  const systems = Array.from({ length: 4 }, () => words(random, 150));
  const open: Message[][] = [];
  return Array.from({ length: total }, () => {
    const at = random.below(open.length + 1);
    const known = open[at] ?? [{ role: "system" as const, content: systems[random.below(systems.length)]! }];
    const messages = [...known, { role: "user" as const, content: words(random, 40) }];
    open[at] = [...messages, { role: "assistant", content: words(random, 20) }];
    return messages;
  });
}

function words(random: { below(n: number): number }, length: number): string {
  return Array.from({ length }, () => `word ${random.below(10_000)}`).join(" ");
}

function startEngine(port: number): ChildProcess {
  const [command, ...args] = values.vllm.replace("PORT", String(port)).split(" ");
  const env = { ...process.env, VLLM_SERVER_DEV_MODE: "1" };
  // A group of its own, so that all its processes end at once, and with this one.
  const engine = spawn(command!, args, { stdio: "ignore", env, detached: true });
  process.on("exit", () => {
    try {
      process.kill(-engine.pid!, "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  return kept(engine);
}

async function isUp(port: number): Promise<void> {
  for (const since = performance.now(); performance.now() - since < START_MILLIS_MAX;) {
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(500);
  }
  throw new Error(`no engine on port ${port}`);
}

function startRouter(ports: readonly number[], flags: readonly string[]) {
  const exact = ["--tokenizer", "huggingface", "--tokenizer-file", values.tokenizer];
  return startGateway(ports, [...(values.tokenizer === "" ? [] : exact), ...flags], 0);
}

/** Also where it was stopped before. */
async function stop(pid: number): Promise<void> {
  for (let signal: "SIGTERM" | 0 = "SIGTERM", alive = true; alive; signal = 0) {
    try {
      process.kill(pid, signal);
      await sleep(50);
    } catch {
      alive = false;
    }
  }
}
