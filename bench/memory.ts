/**
 * What a gateway holds in memory after a long time of mixed load: one that only routes, and one that records and has the
 * shadow beside it, both with exact tokens, at once, each before emulated engines in processes of their own.
 *
 *     npm run bench -- memory [--minutes 60] [--rate 20] [--sessions 400] [--engines 4] [--beside CHECKOUT]
 *
 * Each gateway gets the same `--rate` requests a second, whether or not those before are answered, of `--sessions`
 * conversations under way at any time. A conversation begins with one of 16 system prompts, grows by a question and the
 * answer to it, and ends where it has 32 KB; half of all answers are streamed, one client in 50 leaves before the end,
 * one request in 100 is no JSON. A fifth of all words are new. With --beside a gateway of another commit that records,
 * too. Resident MB after 1, 5, 15, 30, 60 minutes and at the end, and after a pause of a minute.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { randomFor } from "#core/base/random.ts";
import { endAll, kept } from "./children.ts";
import { engineReady, enginePort } from "./engine-group.ts";
import { EXACT_TOKENS, startGateway } from "./gateway-process.ts";
import { residentOf } from "./peer-process.ts";

const SHOWN_MINUTES = [1, 5, 15, 30, 60];
const PAUSE_SECONDS = 60;
const SYSTEM_PROMPTS = 16;
const SYSTEM_BYTES = 1_500;
const SESSION_BYTES_MAX = 32_768;
const QUESTION_BYTES_MAX = 2_400;
const ANSWER_TOKENS_MAX = 120;
const NEW_WORDS = 0.2;
const STREAMED = 0.5;
const LEAVE = 0.02;
const NO_JSON = 0.01;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** What came of the requests of one gateway. */
interface Counts {
  answered: number;
  left: number;
  refused: number;
  failed: number;
}

interface Held {
  readonly name: string;
  readonly pid: number;
  readonly load: Load;
  readonly megabytes: number[];
}

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    rate: { type: "string", default: "20" },
    sessions: { type: "string", default: "400" },
    engines: { type: "string", default: "4" },
    beside: { type: "string" },
  },
});
const minutes = Number(values.minutes);
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-"));
const draws = randomFor(11, 0);

function drawnWord(): string {
  let word = "";
  for (let letters = 3 + draws.below(8); letters > 0; letters--) word += String.fromCharCode(97 + draws.below(26));
  return word;
}

const KNOWN_WORDS = Array.from({ length: 5_000 }, drawnWord);

function words(bytes: number): string {
  let text = "";
  while (text.length < bytes) {
    text += `${draws.below(1_000) < 1_000 * NEW_WORDS ? drawnWord() : KNOWN_WORDS[draws.below(KNOWN_WORDS.length)]} `;
  }
  return text.slice(0, bytes);
}

const systemPrompts = Array.from({ length: SYSTEM_PROMPTS }, () => words(SYSTEM_BYTES));

/** The clients of one gateway. */
class Load {
  readonly counts: Counts = { answered: 0, left: 0, refused: 0, failed: 0 };
  readonly #url: string;
  readonly #agent = new Agent({ connections: 256, headersTimeout: 60_000 });
  /** None of them is under way twice. */
  readonly #sessions: Message[][];

  constructor(port: number, sessions: number) {
    this.#url = `http://127.0.0.1:${port}/v1/chat/completions`;
    this.#sessions = Array.from({ length: sessions }, () => begun());
  }

  async ask(): Promise<void> {
    const at = draws.below(this.#sessions.length);
    const [session] = this.#sessions.splice(at, 1);
    if (session === undefined) return;
    session.push({ role: "user", content: words(20 + draws.below(QUESTION_BYTES_MAX)) });
    const answer = await this.#answer(session);
    if (answer !== undefined) session.push({ role: "assistant", content: answer });
    const bytes = session.reduce((sum, { content }) => sum + content.length, 0);
    this.#sessions.push(answer === undefined || bytes > SESSION_BYTES_MAX ? begun() : session);
  }

  /** Its text; undefined where there is none. */
  async #answer(messages: readonly Message[]): Promise<string | undefined> {
    const isStreamed = draws.below(100) < 100 * STREAMED;
    const leaves = draws.below(1_000) < 1_000 * LEAVE;
    const body = JSON.stringify({
      model: "tiny",
      messages,
      max_tokens: 1 + draws.below(ANSWER_TOKENS_MAX),
      stream: isStreamed,
    });
    const isJson = draws.below(1_000) >= 1_000 * NO_JSON;
    try {
      const { statusCode, body: bytes } = await request(this.#url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: isJson ? body : body.slice(1),
        dispatcher: this.#agent,
      });
      if (leaves) {
        this.counts.left++;
        bytes.on("error", () => {}).destroy();
        return undefined;
      }
      const text = await bytes.text();
      if (statusCode !== 200) {
        if (isJson) this.counts.failed++;
        else this.counts.refused++;
        return undefined;
      }
      this.counts.answered++;
      return answerIn(text);
    } catch {
      if (leaves) this.counts.left++;
      else this.counts.failed++;
      return undefined;
    }
  }
}

/** What the engine wrote, in one piece or in events. */
function answerIn(text: string): string {
  return [...text.matchAll(/"content":("(?:[^"\\]|\\.)*")/g)].map(([, one]) => JSON.parse(one!) as string).join("");
}

function begun(): Message[] {
  return [{ role: "system", content: systemPrompts[draws.below(SYSTEM_PROMPTS)]! }];
}

/** Emulated engines, each a process of its own. */
async function engines(count: number, firstPort: number): Promise<number[]> {
  const main = join(import.meta.dirname, "../bin/gnomon.js");
  const port = String(firstPort);
  const args = [main, "emulate", "--count", String(count), "--port-base", port, "--model", "tiny"];
  const child: ChildProcess = kept(spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] }));
  const ports = Array.from({ length: count }, (_, i) => firstPort + i);
  await Promise.all(ports.map((one) => engineReady(one, child)));
  return ports;
}

async function started(name: string, flags: readonly string[], port: number, root?: string): Promise<Held> {
  const ports = await engines(Number(values.engines), port);
  const gateway = await startGateway(ports, [...EXACT_TOKENS, ...flags], 0, root);
  gateway.process.once("exit", (code, signal) => console.error(`${name} ended with ${code ?? signal}`));
  return { name, pid: gateway.pid, load: new Load(gateway.port, Number(values.sessions)), megabytes: [] };
}

function recording(): string[] {
  return ["--record", mkdtempSync(join(scratch, "trace-")), "--set", "shadow.enabled=true"];
}

async function main(): Promise<void> {
  const first = enginePort();
  const all = [
    await started("gnomon", [], first),
    await started("recorded", recording(), first + 100),
    ...(values.beside === undefined ? [] : [await started("beside", recording(), first + 200, resolve(values.beside))]),
  ];
  const shown = [...SHOWN_MINUTES.filter((minute) => minute < minutes), minutes];
  const look = (): void => {
    for (const { pid, megabytes } of all) megabytes.push(residentOf(pid));
  };
  const began = performance.now();
  let asked = 0;
  for (const minute of shown) {
    for (let elapsed = 0; elapsed < minute * 60; elapsed = (performance.now() - began) / 1e3) {
      for (; asked < elapsed * Number(values.rate); asked++) for (const { load } of all) void load.ask();
      await sleep(5);
    }
    look();
    process.stderr.write(
      `${minute} min: ${all.map(({ name, megabytes }) => `${name} ${megabytes.at(-1)!.toFixed(0)} MB`).join(", ")}\n`,
    );
  }
  await sleep(PAUSE_SECONDS * 1e3);
  look();
  console.log(`${values.rate} requests a second to each; resident MB\n`);
  console.log(
    `| | ${shown.map((minute) => `${minute} min`).join(" | ")} | after a pause | answered, left, refused, failed |`,
  );
  console.log(`|---${"|---:".repeat(shown.length + 1)}|---|`);
  for (const { name, megabytes, load } of all) {
    const { answered, left, refused, failed } = load.counts;
    const cells = megabytes.map((one) => one.toFixed(0)).join(" | ");
    console.log(`| ${name} | ${cells} | ${answered}, ${left}, ${refused}, ${failed} |`);
  }
}

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();
