import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { BREAKER_DEFAULTS } from "#core/endpoint/breaker.ts";
import { engineDefaults } from "#engine/config.ts";
import { startEmulator } from "#emulator/server.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import { createTokenizer } from "../tokenizer/create-tokenizer.ts";
import { Replay } from "#shadow/recorded/replay.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { CHAT_TOKENS, folderOf, smallLlama } from "../tokenizer/llama-files.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { LOWEST_ID_FIRST, type Rig, type RigOptions, ask, startRig } from "./rig.ts";
import { type Reply, STREAM_END, STREAM_HEAD, event, jsonReply } from "./stub-engine.ts";

const BLOCK = 4;
const folder = folderOf({
  "tokenizer.json": smallLlama(),
  "tokenizer_config.json": { bos_token: "<|begin_of_text|>", eos_token: "<|eot_id|>" },
  "chat.json": {
    bos_token: "<|begin_of_text|>",
    eos_token: "<|eot_id|>",
    chat_template: readFileSync(join(CHAT_TOKENS, "headers.jinja"), "utf8"),
  },
});
const chatTemplateFile = join(CHAT_TOKENS, "headers.jinja");
const FILES = { kind: "huggingface", tokenizerFile: folder, chatTemplateFile } as const;
const tokenizer = await createTokenizer({ ...FILES, blockTokens: BLOCK, blockHash: "blake3", secret: "s" });
const EXACT: RigOptions = { tokenizer: () => tokenizer, answersIndexed: "text" };

const USER = { role: "user", content: "Tell me of the old harbor and of the ships in it." };
const TEXT = 'The "harbor"\\n has\tthe line, über \u{1F6A2} and\n\nall that was there on the day before.';
const [PROMPT_TOKENS, TEXT_TOKENS] = await Promise.all([tokensOfChat([USER]), tokensOf(TEXT)]);

async function tokensOf(text: string): Promise<number> {
  const source = { kind: "text", text, specialTokens: false } as const;
  return (await tokenizer.encode(source, { model: "tiny", salt: "" })).promptTokens;
}

async function tokensOfChat(messages: readonly { role: string; content: string }[]): Promise<number> {
  const source = { kind: "chat", messages, tools: undefined, template: {} } as const;
  return (await tokenizer.encode(source, { model: "tiny", salt: "" })).promptTokens;
}

const blocks = (tokens: number): number => Math.floor(tokens / BLOCK) * BLOCK;
const PROMPT_ONLY = blocks(PROMPT_TOKENS);
/** All that was generated but for its last token, which ended the answer and is not in the text. */
const WITH_ANSWER = blocks(PROMPT_TOKENS + TEXT_TOKENS);

const usage = (completion_tokens: number, prompt_tokens = PROMPT_TOKENS) => ({ prompt_tokens, completion_tokens });

interface Answered {
  readonly message?: object;
  readonly finish?: string;
  readonly tokens?: number;
  readonly usage?: object | null;
  /** In place of those of the message. */
  readonly choices?: readonly object[];
}

function whole({ message = {}, finish = "stop", tokens = TEXT_TOKENS + 1, ...more }: Answered): Reply {
  const logprobs = { content: [{ token: "The" }] };
  const own = { role: "assistant", content: TEXT, tool_calls: [], reasoning: null, ...message };
  const choices = [{ index: 0, logprobs, message: own, finish_reason: finish }];
  return (_request, socket) => socket.write(jsonReply(200, { choices, usage: usage(tokens), ...more }));
}

const delta = (part: object, finish_reason: string | null = null): string =>
  event({ choices: [{ index: 0, delta: part, logprobs: null, finish_reason }] });

/** The text in deltas of a few UTF-16 code units, one of which is half a character, as JSON may well have it. */
function streamOf(pieces: readonly string[], tokens = TEXT_TOKENS + 1): string {
  const first = delta({ role: "assistant", content: "" });
  const last = delta({ content: "" }, "stop") + event({ choices: [], usage: usage(tokens) }) + event("[DONE]");
  return STREAM_HEAD + first + pieces.map((content) => delta({ content })).join("") + last + STREAM_END;
}

const PIECES = Array.from({ length: Math.ceil(TEXT.length / 3) }, (_, i) => TEXT.slice(3 * i, 3 * i + 3));

const streamed: Reply = (_request, socket) => {
  const bytes = Buffer.from(streamOf(PIECES));
  const middle = Math.floor(bytes.length / 2);
  socket.write(bytes.subarray(0, middle));
  setImmediate(() => socket.write(bytes.subarray(middle)));
};

/** After the answers that the gateway took have become known. */
async function settled(rig: Rig): Promise<void> {
  const count = (kind: string) => rig.inputs.filter((input) => input.kind === kind).length;
  const follow = () => rig.inputs.filter((input) => input.kind === "request-finished" && input.answerFollows === true);
  while (count("answer-known") < follow().length) await new Promise((resolve) => setImmediate(resolve));
}

async function expectedNext(rig: Rig, text = TEXT): Promise<number> {
  await settled(rig);
  const messages = [USER, { role: "assistant", content: text }, { role: "user", content: "And then? ".repeat(9) }];
  await ask(rig.url, { model: "tiny", messages });
  const last = rig.decisions.at(-1)!;
  return last.kind === "routed" ? last.hitTokens : assert.fail(last.reason);
}

interface Seen {
  readonly expected: number;
  readonly known: Readonly<Record<string, number>>;
  readonly unknown: Readonly<Record<string, number>>;
}

async function afterOne(reply: Reply, more: object = {}, options: RigOptions = EXACT, text = TEXT): Promise<Seen> {
  const rig = await startRig([reply], options);
  const got = await ask(rig.url, { model: "tiny", messages: [USER], ...more });
  assert.equal(got.status, 200, got.body);
  await settled(rig);
  const known = { ...rig.gateway.counters.answersKnown };
  const unknown = { ...rig.gateway.counters.answersUnknown };
  const expected = await expectedNext(rig, text);
  await rig.close();
  return { expected, known, unknown };
}

const STREAMS = { stream: true, stream_options: { include_usage: true } };

describe("an answer that comes as text", () => {
  test("is found by the next turn, whole or streamed, where it becomes as many tokens as the engine counted", async () => {
    assert.ok(WITH_ANSWER > PROMPT_ONLY + BLOCK);
    const told = { expected: WITH_ANSWER, known: { text: 1 }, unknown: {} };
    assert.deepEqual(await afterOne(whole({})), told);
    assert.deepEqual(await afterOne(streamed, STREAMS), told);
    assert.deepEqual(await afterOne(streamed, { stream: true }, { ...EXACT, requestUsage: true }), told);
  });

  test("ends a token earlier where its length ended it, since the last token is not computed", async () => {
    const cut = await afterOne(whole({ finish: "length", tokens: TEXT_TOKENS }));
    assert.deepEqual(cut, { expected: blocks(PROMPT_TOKENS + TEXT_TOKENS - 1), known: { text: 1 }, unknown: {} });
  });

  test("is left unknown, by reason, where its tokens cannot be determined", async () => {
    const tool = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
    const cases: readonly [string, Reply, object?, RigOptions?][] = [
      ["count", whole({ tokens: TEXT_TOKENS + 2 })],
      ["count", whole({ tokens: TEXT_TOKENS - 1 })],
      ["count", whole({ finish: "length", tokens: TEXT_TOKENS + 1 })],
      ["prompt", whole({ usage: usage(TEXT_TOKENS + 1, PROMPT_TOKENS + 1) })],
      ["uncounted", whole({ usage: null })],
      ["parts", whole({ finish: "tool_calls" })],
      ["parts", whole({ message: { tool_calls: [tool] } })],
      ["parts", whole({ message: { reasoning: "Let me see." } })],
      ["parts", whole({ message: { content: null } })],
      ["long", whole({}), {}, { ...EXACT, limits: { answerTokensKept: 2 } }],
      ["busy", whole({}), {}, { ...EXACT, load: { isBusy: true } }],
    ];
    for (const [reason, reply, more, options] of cases) {
      const seen = await afterOne(reply, more, options);
      assert.deepEqual(seen, { expected: PROMPT_ONLY, known: {}, unknown: { [reason]: 1 } });
    }
  });

  test("is left unknown where a stream has parts beside the text", async () => {
    const more = delta({ reasoning_content: "Let me see." });
    const reply: Reply = (_request, socket) => socket.write(streamOf(PIECES).replace(delta({ content: "The" }), more));
    const seen = await afterOne(reply, STREAMS);
    assert.deepEqual(seen, { expected: PROMPT_ONLY, known: {}, unknown: { parts: 1 } });
  });

  test("is not read where it is not asked for, or could not be distinguished", async () => {
    for (const [more, options] of [
      [{}, { ...EXACT, answersIndexed: "ids" }],
      [{}, { ...EXACT, answersIndexed: "off" }],
      [{ n: 2 }, EXACT],
      [{ echo: true }, EXACT],
      [{ truncate_prompt_tokens: 5 }, EXACT],
    ] as const) {
      const { known, unknown } = await afterOne(whole({}), more, options);
      assert.deepEqual([known, unknown], [{}, {}], JSON.stringify(more));
    }
    const { known, unknown } = await afterOne(streamed, { stream: true });
    assert.deepEqual([known, unknown], [{}, {}]);
  });

  test("is found where the engine sends its ids, by those", async () => {
    const ids = { index: 0, message: { content: TEXT }, finish_reason: "stop", token_ids: [1, 2, 3, 4, 5, 6] };
    const { known } = await afterOne(whole({ tokens: 6, choices: [ids] }), { return_token_ids: true });
    assert.deepEqual(known, { ids: 1 });
  });

  test("of the endpoint that answered at last, after another one broke", async () => {
    const broken: Reply = (_request, socket) => socket.write(jsonReply(500, { error: { code: 500 } }));
    const rig = await startRig([broken, whole({})], EXACT);
    await ask(rig.url, { model: "tiny", messages: [USER] });
    assert.equal(await expectedNext(rig), WITH_ANSWER);
    await rig.close();
  });

  test("waits in a queue that has an end, and its client does not wait for it", async () => {
    const rig = await startRig([whole({})], { ...EXACT, limits: { answersWaitingMax: 1 } });
    await Promise.all(Array.from({ length: 12 }, () => ask(rig.url, { model: "tiny", messages: [USER] })));
    await settled(rig);
    const { answersKnown, answersUnknown } = rig.gateway.counters;
    assert.equal((answersKnown["text"] ?? 0) + (answersUnknown["full"] ?? 0), 12);
    assert.ok(answersKnown["text"]! > 0);
    const kinds = rig.kinds();
    assert.ok(kinds.indexOf("request-finished") < kinds.indexOf("answer-known"));
    await rig.close();
  });
});

describe("conversations with emulated engines that have the model's tokenizer", async () => {
  const stepTime = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
  const engine = engineDefaults({ blockTokens: 16, stepTime });
  const files = { tokenizerPath: join(folder, "tokenizer.json"), templatePath: join(folder, "chat.json") };
  const engines = await Promise.all(
    [1, 2].map((seed) =>
      startEmulator({
        host: "127.0.0.1",
        port: 0,
        model: "tiny",
        engine,
        timeScale: 20,
        seed,
        tokenizer: files,
        enablePromptTokensDetails: true,
        naturalTokensMean: 60,
      }),
    ),
  );
  after(() => Promise.all(engines.map((emulator) => emulator.close())));

  test("every turn is expected to the token; a replay decides alike, and a simulation has the answers", async () => {
    const wide = await createTokenizer({ ...FILES, blockTokens: 16, blockHash: "blake3", secret: "s" });
    const urls = engines.map(({ url }) => url);
    const rig = await startRig([], { tokenizer: () => wide, urls, requestUsage: true, answersIndexed: "text" });
    await Promise.all([0, 1, 2].map((which) => converse(rig, which)));
    const followUps = rig.summaries.filter(({ cachedTokens = 0 }) => cachedTokens > 0);
    assert.ok(followUps.length >= 6, `${followUps.length} turns at the endpoint of one before`);
    const wrong = rig.summaries.filter(({ hitTokens, cachedTokens }) => hitTokens !== cachedTokens);
    assert.deepEqual(wrong.map(told), []);
    assert.deepEqual([rig.gateway.counters.answersKnown, rig.gateway.counters.answersUnknown], [{ text: 15 }, {}]);
    await sameAgain(rig);
    await rig.close();
  });

  test("so is every turn that streams, by the ids that are kept so that it could go on elsewhere", async () => {
    const wide = await createTokenizer({ ...FILES, blockTokens: 16, blockHash: "blake3", secret: "s" });
    const urls = engines.map(({ url }) => url);
    const rig = await startRig([], {
      tokenizer: () => wide,
      urls,
      requestUsage: true,
      stages: { clients: { continueStreams: true } },
    });
    await Promise.all([3, 4, 5].map((which) => converse(rig, which, () => true)));
    const followUps = rig.summaries.filter(({ cachedTokens = 0 }) => cachedTokens > 0);
    assert.ok(followUps.length >= 6, `${followUps.length} turns at the endpoint of one before`);
    assert.deepEqual(rig.summaries.filter(({ hitTokens, cachedTokens }) => hitTokens !== cachedTokens).map(told), []);
    assert.equal(rig.gateway.counters.answersKnown["ids"], 15);
    await rig.close();
  });
});

const told = ({ promptTokens, hitTokens, cachedTokens }: RequestSummary) => [promptTokens, hitTokens, cachedTokens];

async function converse(rig: Rig, which: number, streams = (turn: number) => turn % 2 === 0): Promise<void> {
  const messages = [{ role: "system", content: `Number ${which} is to answer at length. `.repeat(6) }];
  for (let turn = 0; turn < 5; turn++) {
    messages.push({ role: "user", content: `In turn ${turn} the harbor has ${which} more ships.` });
    const stream = streams(turn);
    const got = await ask(rig.url, { model: "tiny", messages, stream, max_tokens: turn % 3 === 0 ? 40 : 300 });
    assert.equal(got.status, 200, got.body);
    messages.push({ role: "assistant", content: textOf(got.body, stream) });
    await settled(rig);
  }
}

interface Choice {
  readonly delta?: { readonly content?: string };
  readonly message?: { readonly content: string };
}

function textOf(body: string, stream: boolean): string {
  const events = stream ? [...body.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => json!) : [body];
  const choices = events.flatMap((json) => (JSON.parse(json) as { choices: Choice[] }).choices);
  return choices.map(({ delta: part, message }) => message?.content ?? part?.content ?? "").join("");
}

/** What was recorded: its replay has the same decisions, and as a workload it has an answer where one was known. */
async function sameAgain({ inputs, decisions, gateway }: Rig): Promise<void> {
  const breaker = BREAKER_DEFAULTS;
  const profiles = { default: LOWEST_ID_FIRST };
  const router = {
    seed: 1,
    profiles,
    defaultProfile: "default",
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
    breaker,
  };
  const header = { ...HEADER, router: { ...HEADER.router, ...router } };
  async function* items(): AsyncGenerator<TraceItem> {
    const encoder = new LineEncoder({ blockTokens: 16 });
    const decoder = new TraceDecoder(encoder.header(header));
    yield { kind: "run", header };
    let next = 0;
    for (const input of inputs) {
      const decision = input.kind === "request-arrived" ? decisions[next++] : undefined;
      yield decoder.decode(encoder.record(input, decision));
    }
  }
  const replay = new Replay();
  for await (const item of items()) replay.take(item);
  const { decisions: compared, differences, reasons } = replay.result();
  assert.deepEqual([compared, differences, reasons], [decisions.length, 0, []]);
  const { workload } = await readRecordedRun(items());
  const answered = workload.filter(({ answerIds }) => answerIds !== undefined).length;
  assert.equal(answered, gateway.counters.answersKnown["text"]);
}
