/**
 * Real engines of which one stops, for a while or for good, under streams of every interface: all are to come whole.
 *
 *     npm run bench -- lost-engine --engine-command "COMMAND PORT" [--cases only:stop:20,three:stop:20,three:term]
 *         [--streams 12] [--tokens 300]
 *
 * A case is how many engines there are (only, two, three), the signal that the first of them gets (stop, term, kill), and
 * for stop the seconds until SIGCONT. PORT stands for the engine's port. Streams are of chats, completions and Anthropic's
 * messages in turn, for as many tokens each; the gateway is what `serve` starts, with its defaults. Printed are streams
 * that came whole with all of their tokens, flaws of the others, and the longest silence in a stream.
 */
import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll } from "./children.ts";
import { enginePort, engineReady, signalGroup, startGroup } from "./engine-group.ts";
import { startGateway } from "./gateway-process.ts";

const ENGINES = { only: 1, two: 2, three: 3 } as const;
const SIGNALS = { stop: "SIGSTOP", term: "SIGTERM", kill: "SIGKILL" } as const;
const PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/messages"];
const FAULT_AFTER_MILLIS = 3_000;

const { values } = parseArgs({
  options: {
    "engine-command": { type: "string" },
    cases: { type: "string", default: "only:stop:20,three:stop:20,three:term" },
    streams: { type: "string", default: "12" },
    tokens: { type: "string", default: "300" },
  },
});
const tokens = Number(values.tokens);

interface Received {
  readonly outputTokens: number | undefined;
  readonly end: string | undefined;
  readonly error: string | undefined;
  readonly longestSilenceMillis: number;
}

try {
  const command = values["engine-command"];
  if (command === undefined) throw new RangeError("--engine-command: expected a command, got none");
  const base = enginePort();
  const cases = values.cases.split(",").map(parseCase);
  const count = Math.max(...cases.map(({ engines }) => engines));
  const started = Array.from({ length: count }, (_, i) => startEngine(command, base + i));
  await Promise.all(started.map(({ port, child }) => engineReady(port, child)));
  for (const [i, one] of cases.entries()) {
    await run(one, started);
    if (i + 1 < cases.length && one.signal !== "SIGSTOP") {
      started[0] = startEngine(command, started[0]!.port);
      await engineReady(started[0].port, started[0].child);
    }
  }
} finally {
  endAll();
}

interface Case {
  readonly name: string;
  readonly engines: number;
  readonly signal: NodeJS.Signals;
  readonly seconds: number;
}

function parseCase(text: string): Case {
  const [engines = "", signal = "", seconds = "20"] = text.split(":");
  if (!Object.hasOwn(ENGINES, engines) || !Object.hasOwn(SIGNALS, signal) || !(Number(seconds) > 0))
    throw new RangeError(`--cases: expected only|two|three:stop|term|kill[:SECONDS], got ${text}`);
  const [count, name] = [ENGINES[engines as keyof typeof ENGINES], SIGNALS[signal as keyof typeof SIGNALS]];
  return { name: text, engines: count, signal: name, seconds: Number(seconds) };
}

interface Engine {
  readonly port: number;
  readonly child: ChildProcess;
}

function startEngine(command: string, port: number): Engine {
  return { port, child: startGroup(command.replace("PORT", String(port))) };
}

async function run({ name, engines, signal, seconds }: Case, all: readonly Engine[]): Promise<void> {
  const used = all.slice(0, engines);
  const gateway = await startGateway(
    used.map(({ port }) => port),
    [],
    0,
  );
  const streams = Array.from({ length: Number(values.streams) }, (_, i) => listen(gateway.port, i));
  await sleep(FAULT_AFTER_MILLIS);
  const group = used[0]!.child.pid!;
  signalGroup(group, signal);
  if (signal === "SIGSTOP") void sleep(1_000 * seconds).then(() => signalGroup(group, "SIGCONT"));
  const received = await Promise.all(streams);
  const flaws = received.map(flawOf).filter((flaw) => flaw !== "");
  const silence = Math.max(...received.map(({ longestSilenceMillis }) => longestSilenceMillis));
  const whole = `${received.length - flaws.length} of ${received.length} whole with ${tokens} tokens each`;
  console.log(`${name}: ${whole}; longest silence ${(silence / 1e3).toFixed(1)} s`);
  for (const flaw of flaws) console.log(`  ${flaw}`);
  gateway.process.kill("SIGTERM");
}

function flawOf({ outputTokens, end, error }: Received): string {
  if (error !== undefined) return error;
  if (end !== "length" && end !== "max_tokens") return `ended by ${end ?? "nothing"}`;
  return outputTokens === tokens ? "" : `${outputTokens} tokens`;
}

async function listen(port: number, number: number): Promise<Received> {
  const path = PATHS[number % PATHS.length]!;
  const content = `Question ${number}: what became of the ${number} ships that left on day ${7 * number}?`;
  const prompt = path === "/v1/completions" ? { prompt: content } : { messages: [{ role: "user", content }] };
  const usage = path === "/v1/messages" ? {} : { stream_options: { include_usage: true } };
  const body = {
    model: "tiny",
    ...prompt,
    ...usage,
    stream: true,
    max_tokens: tokens,
    temperature: 0,
    ignore_eos: true,
  };
  const got = { outputTokens: undefined as number | undefined, end: undefined as string | undefined };
  let [lastMillis, longestSilenceMillis] = [performance.now(), 0];
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) return { ...got, error: `${path}: status ${response.status}`, longestSilenceMillis };
    let rest = "";
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      const now = performance.now();
      longestSilenceMillis = Math.max(longestSilenceMillis, now - lastMillis);
      lastMillis = now;
      const lines = (rest + piece).split("\n");
      rest = lines.pop()!;
      for (const line of lines) read(line, got);
    }
  } catch (error) {
    return { ...got, error: `${path}: ${String(error)}`, longestSilenceMillis };
  }
  return { ...got, error: undefined, longestSilenceMillis };
}

interface Event {
  readonly choices?: readonly { readonly finish_reason?: string | null }[];
  readonly usage?: { readonly completion_tokens?: number; readonly output_tokens?: number } | null;
  readonly delta?: { readonly stop_reason?: string | null };
}

function read(line: string, got: { outputTokens: number | undefined; end: string | undefined }): void {
  if (!line.startsWith("data: {")) return;
  const { choices = [], usage, delta } = JSON.parse(line.slice("data: ".length)) as Event;
  got.end ??= choices[0]?.finish_reason ?? delta?.stop_reason ?? undefined;
  got.outputTokens = usage?.completion_tokens ?? usage?.output_tokens ?? got.outputTokens;
}
