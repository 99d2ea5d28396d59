import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import fc from "fast-check";

import type { Reply } from "../gateway/stub-engine.ts";
import { STREAM_END, STREAM_HEAD, jsonReply } from "../gateway/stub-engine.ts";
import { type Got, NEVER_OPEN, type Rig, ask, startRig } from "../gateway/rig.ts";
import { type ModelAnswer, QUESTION, detokenized, eventsOf } from "./model-engine.ts";

/** What the engines do with the requests of one run, in the order in which these come. */
interface Script {
  answer: ModelAnswer;
  groups: readonly number[];
  /** Bytes after which the connection breaks, in thousandths of the whole; 1,000 and more for never. */
  cuts: readonly number[];
  /** Lengths of the pieces that go out at once. */
  pieces: readonly number[];
  /** What each of them sent, whole events alone. */
  sent: Sent[];
}

interface Sent {
  readonly textEvents: number;
  /** The engine's own count; undefined where it did not send it. */
  readonly tokens: number | undefined;
}

const script: Script = { answer: { promptTokens: 3, tokens: [] }, groups: [1], cuts: [], pieces: [1_000], sent: [] };

const reply: Reply = (request, socket) => {
  if (request.path === "/detokenize") {
    socket.write(jsonReply(200, detokenized(script.answer, request)));
    return;
  }
  const cut = script.cuts[script.sent.length] ?? 1_000;
  const events = eventsOf(script.answer, request, script.groups).map((data) => `data: ${data}\n\n`);
  const body = Buffer.from(events.join(""));
  const sent = body.subarray(0, Math.floor((body.length * Math.min(1_000, cut)) / 1_000));
  script.sent.push(sentIn(sent.toString()));
  socket.write(STREAM_HEAD);
  for (let at = 0, piece = 0; at < sent.length; piece++) {
    const part = sent.subarray(at, at + script.pieces[piece % script.pieces.length]!);
    socket.write(Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]));
    at += part.length;
  }
  if (cut >= 1_000) socket.write(STREAM_END);
  else socket.end();
};

function sentIn(body: string): Sent {
  const chunks = chunksOf(body.slice(0, Math.max(0, body.lastIndexOf("\n\n"))));
  return {
    textEvents: chunks.filter(({ choices }) => choices.some((choice) => textOf(choice) !== "")).length,
    tokens: chunks.find(({ usage }) => usage !== undefined)?.usage?.completion_tokens,
  };
}

function textOf({ text, delta }: Chunk["choices"][number]): string {
  return text ?? delta?.content ?? "";
}

function chunksOf(body: string): Chunk[] {
  const events = body.split("\n\n").filter((one) => one !== "" && one !== "data: [DONE]");
  return events.map((one) => JSON.parse(one.slice("data: ".length)) as Chunk);
}

/** Tokens as bytes: words, stop strings in pieces, and characters in one, two and three tokens. */
const TOKENS: readonly (readonly Buffer[])[] = [
  ...["a", " bc", "END", "E", "N", "D", ' x\\"', "\n", "\u00e9"].map((text) => [Buffer.from(text)]),
  [Buffer.from([0xf0, 0x9f]), Buffer.from([0x98, 0x80])],
  [Buffer.from([0x20, 0xe6]), Buffer.from([0xbc]), Buffer.from([0xa2])],
];
const ANSWER = fc
  .array(fc.constantFrom(...TOKENS), { minLength: 3, maxLength: 25 })
  .map((parts) => ({ promptTokens: 3, tokens: [...parts.flat(), Buffer.from("")] }));
type Run = Pick<Script, "answer" | "groups" | "cuts" | "pieces">;
const RUN: fc.Arbitrary<Run> = fc.record({
  answer: ANSWER,
  groups: fc.array(fc.constantFrom(1, 1, 1, 2, 3), { minLength: 1, maxLength: 6 }),
  cuts: fc.array(fc.integer({ min: 0, max: 1_100 }), { maxLength: 3 }),
  pieces: fc.array(fc.integer({ min: 3, max: 900 }), { minLength: 1, maxLength: 5 }),
});
interface Asked {
  readonly isChat: boolean;
  readonly greedy: boolean;
  readonly usage: boolean;
  readonly ids: boolean;
  readonly maxTokens: number;
  readonly stops: readonly string[];
  readonly includesStop: boolean;
}
const ASK: fc.Arbitrary<Asked> = fc.record({
  isChat: fc.boolean(),
  greedy: fc.boolean(),
  usage: fc.boolean(),
  ids: fc.boolean(),
  maxTokens: fc.integer({ min: 1, max: 40 }),
  stops: fc.constantFrom<readonly string[]>([], [], ["END"], ["ND", "bcaE"]),
  includesStop: fc.boolean(),
});

const SAMPLED = { isChat: false, greedy: false, usage: true, ids: false, maxTokens: 40, includesStop: true };
const tokensOf = (...texts: readonly string[]): readonly Buffer[] => texts.map((text) => Buffer.from(text));
const INSIDE_CHARACTER = [
  ...tokensOf(' x\\"'),
  ...[[0x20, 0xe6], [0xbc], [0xa2]].map((bytes) => Buffer.from(bytes)),
  ...tokensOf("a", "a", "a", ""),
];
const BROKEN_BEFORE: [Run, Asked][] = [
  // A stop string that began at one engine ends in the first of two tokens that another one sends in one event.
  [
    { answer: { promptTokens: 3, tokens: tokensOf("a", "N", "D", "a", "") }, groups: [2, 1], cuts: [349], pieces: [3] },
    { ...SAMPLED, stops: ["ND", "bcaE"] },
  ],
  [
    {
      answer: { promptTokens: 3, tokens: tokensOf("a", "b", "N", "D", "a", "") },
      groups: [3],
      cuts: [300],
      pieces: [9],
    },
    { ...SAMPLED, isChat: true, greedy: true, ids: true, stops: ["ND", "bcaE"] },
  ],
  // The engine that breaks second had written what the first one held back for a stop string.
  [
    {
      answer: { promptTokens: 3, tokens: tokensOf(' x\\"', "a", " bc", "a", "a", "a", "") },
      groups: [1],
      cuts: [128, 434],
      pieces: [3],
    },
    { ...SAMPLED, stops: ["END"], includesStop: false },
  ],
  // The engine before owes text, and the first token of the one that goes on ends inside a character.
  [
    { answer: { promptTokens: 3, tokens: INSIDE_CHARACTER }, groups: [1], cuts: [113, 505], pieces: [3] },
    { ...SAMPLED, usage: false, maxTokens: 8, stops: ["ND", "bcaE"], includesStop: false },
  ],
  // Each event has two tokens, so that no place is a seam, and a stop string might have begun at the end.
  [
    {
      answer: { promptTokens: 3, tokens: Array.from({ length: 39 }, () => tokensOf("a")[0]!) },
      groups: [2],
      cuts: [823],
      pieces: [3],
    },
    { ...SAMPLED, usage: false, stops: ["END"], includesStop: false },
  ],
];

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly choices: readonly {
    readonly text?: string;
    readonly delta?: { readonly content?: string; readonly role?: string };
    readonly finish_reason: string | null;
    readonly stop_reason?: string | null;
    readonly token_ids?: readonly number[] | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
}

/** What a client makes of a stream. */
function seenIn({ body }: Got) {
  const events = body.split("\n\n").filter((one) => one !== "");
  assert.ok(
    events.every((one) => one.startsWith("data: ")),
    body,
  );
  assert.equal(events.at(-1), "data: [DONE]", body);
  const chunks = chunksOf(body);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  const ends = choices.filter(({ finish_reason }) => finish_reason !== null);
  return {
    names: new Set(chunks.map(({ id, object }) => `${id} ${object}`)).size,
    roles: choices.filter(({ delta }) => delta?.role !== undefined).length,
    text: choices.map(textOf).join(""),
    ids: choices.flatMap(({ token_ids }) => token_ids ?? []),
    ends: ends.map(({ finish_reason, stop_reason }) => `${finish_reason} ${stop_reason}`),
    lastHasEnd: choices.at(-1)?.finish_reason !== null,
    usage: chunks.flatMap(({ usage }) => (usage === undefined ? [] : [usage])),
  };
}

describe("a stream whose engine breaks", () => {
  let rig: Rig;
  before(async () => {
    const limits = { attemptsMax: 8, continuationsMax: 8, retryBurst: 1e6 };
    rig = await startRig([reply, reply, reply, reply, reply], {
      breaker: NEVER_OPEN,
      stages: { clients: { continueStreams: true } },
      requestUsage: true,
      limits,
    });
  });
  after(() => rig.close());

  test("is for its client the stream that it would have been, wherever it breaks and however its bytes come", async () => {
    await fc.assert(
      fc.asyncProperty(RUN, ASK, async (run, { isChat, greedy, usage, ids, maxTokens, stops, includesStop }) => {
        const prompt = isChat ? { messages: [{ role: "user", content: QUESTION }] } : { prompt: QUESTION };
        const body = {
          model: "tiny",
          ...prompt,
          stream: true,
          ...(greedy && { temperature: 0 }),
          max_tokens: maxTokens,
          ...(usage && { stream_options: { include_usage: true } }),
          // What a sampled answer showed it cannot repeat.
          ...(ids && greedy && { return_token_ids: true }),
          ...(stops.length > 0 && { stop: stops, include_stop_str_in_output: includesStop }),
        };
        const path = isChat ? "/v1/chat/completions" : "/v1/completions";
        Object.assign(script, run, { sent: [], cuts: [] });
        const whole = seenIn(await ask(rig.url, body, { path }));
        Object.assign(script, run, { sent: [] });
        const got = await ask(rig.url, body, { path });
        assert.equal(got.status, 200, got.body);
        assert.deepEqual(seenIn(got), whole);
        assert.equal(whole.ends.length, 1);
        assert.equal(whole.names, 1);
        assert.equal(whole.usage.length, usage ? 1 : 0);
      }),
      { numRuns: 80, examples: BROKEN_BEFORE },
    );
    const { continuations, cuts } = rig.gateway.counters;
    assert.ok(continuations["cut"]! > 12, JSON.stringify(continuations));
    assert.equal(cuts, 0);
  });
});

/** Tokens that are whole characters, so that each has an event of its own. */
const WHOLE_ANSWER = fc
  .array(fc.constantFrom("a", " bc", "END", "E", "N", "D", ' x\\"', "\n", "\u00e9", "\u{1f600}"), {
    minLength: 3,
    maxLength: 40,
  })
  .map((texts) => ({ promptTokens: 3, tokens: [...texts, ""].map((text) => Buffer.from(text)) }));
const WHOLE_RUN = fc.record({
  answer: WHOLE_ANSWER,
  cuts: fc.array(fc.integer({ min: 0, max: 1_100 }), { maxLength: 3 }),
  pieces: fc.array(fc.integer({ min: 3, max: 900 }), { minLength: 1, maxLength: 5 }),
});

/** An engine that does not know what token ids are. */
const withoutIds: Reply = (request, socket) => {
  const fields = JSON.parse(request.body.toString()) as Record<string, unknown>;
  delete fields["return_token_ids"];
  reply({ ...request, body: Buffer.from(JSON.stringify(fields)) }, socket);
};

describe("a stream whose engine sends no token ids, and breaks", () => {
  let rig: Rig;
  before(async () => {
    const limits = { attemptsMax: 8, continuationsMax: 8, retryBurst: 1e6 };
    rig = await startRig([withoutIds, withoutIds, withoutIds, withoutIds], {
      breaker: NEVER_OPEN,
      stages: { clients: { continueStreams: true, continueByText: true } },
      requestUsage: true,
      limits,
    });
  });
  after(() => rig.close());

  test("goes on behind its text, and is counted apart", async () => {
    await fc.assert(
      fc.asyncProperty(WHOLE_RUN, ASK, async (run, { isChat, greedy, usage, stops, includesStop }) => {
        const body = {
          model: "tiny",
          ...(isChat ? { messages: [{ role: "user", content: QUESTION }] } : { prompt: QUESTION }),
          stream: true,
          ...(greedy && { temperature: 0 }),
          max_tokens: 100,
          ...(usage && { stream_options: { include_usage: true } }),
          ...(stops.length > 0 && { stop: stops, include_stop_str_in_output: includesStop }),
        };
        const path = isChat ? "/v1/chat/completions" : "/v1/completions";
        Object.assign(script, run, { groups: [1], sent: [], cuts: [] });
        const { usage: counts, ...whole } = seenIn(await ask(rig.url, body, { path }));
        Object.assign(script, run, { groups: [1], sent: [] });
        const got = await ask(rig.url, body, { path });
        assert.equal(got.status, 200, got.body);
        const { usage: ownCounts, ...seen } = seenIn(got);
        assert.deepEqual(seen, whole);
        assert.equal(ownCounts.length, counts.length);
        for (const [
          i,
          { prompt_tokens: prompt, completion_tokens: output, total_tokens: total },
        ] of ownCounts.entries()) {
          assert.equal(total, prompt + output);
          // Those of the engine that wrote the end as it counts them itself, and others' events with text.
          const ofEach = script.sent.map(({ textEvents, tokens = textEvents }) => tokens);
          const isStopped = whole.ends[0] !== "stop null";
          const holdsBack = stops.length > 0 && !includesStop;
          // A stop string's last token has text, and no other token of these has none.
          const counted = ofEach.reduce((sum, one) => sum + one, 0);
          if (isStopped && !holdsBack) assert.equal(output, counts[i]!.completion_tokens);
          // The end of a stop string that is held back is a token without a text, which only its event shows.
          else if (isStopped && output === counted + 1) assert.ok(output <= counts[i]!.completion_tokens);
          else assert.equal(output, counted);
          // Where no engine's count came before the end, the prompt is as the gateway counts it.
          const isCounted = script.sent.some(({ tokens }) => tokens !== undefined);
          if (isCounted && !isStopped && !holdsBack) assert.equal(prompt, counts[i]!.prompt_tokens);
          else assert.ok(prompt > 0);
        }
      }),
      { numRuns: 80 },
    );
    const { continuations, continuationsByText, cuts } = rig.gateway.counters;
    assert.ok(continuationsByText["cut"]! > 12, JSON.stringify(continuationsByText));
    assert.deepEqual(continuationsByText, continuations);
    assert.equal(cuts, 0);
  });
});

describe("a stream that breaks once its model has ended, and could not go on", () => {
  /** The last event but [DONE], and the counts, is there. */
  const brokenAtEnd: Reply = (request, socket) => {
    const events = eventsOf(script.answer, request, [1]).slice(0, -1);
    const body = events.filter((data) => !data.includes('"choices":[]')).map((data) => `data: ${data}\n\n`);
    const text = body.join("");
    socket.end(`${STREAM_HEAD}${text.length.toString(16)}\r\n${text}\r\n`);
  };
  const withoutIdsAtEnd: Reply = (request, socket) => {
    const fields = JSON.parse(request.body.toString()) as Record<string, unknown>;
    delete fields["return_token_ids"];
    brokenAtEnd({ ...request, body: Buffer.from(JSON.stringify(fields)) }, socket);
  };
  const cases = [
    { why: "it has no text to go on behind", engine: withoutIdsAtEnd, tokens: ["END", ""], output: 1, limits: {} },
    {
      why: "it is longer than what is kept",
      engine: brokenAtEnd,
      tokens: ["a", "b", "c", "d", "e", "f", "END", ""],
      output: 7,
      limits: { continuationTokensKept: 6 },
    },
  ];
  for (const { why, engine, tokens, output, limits } of cases) {
    test(`is whole where ${why}`, async (context) => {
      const rig = await startRig([engine], {
        stages: { clients: { continueStreams: true, continueByText: true } },
        requestUsage: true,
        limits,
      });
      context.after(() => rig.close());
      for (const usage of [true, false]) {
        Object.assign(script, { answer: { promptTokens: 3, tokens: tokens.map((text) => Buffer.from(text)) } });
        const stream_options = { include_usage: usage };
        const body = { model: "tiny", prompt: QUESTION, stream: true, max_tokens: 100, stop: ["END"], stream_options };
        const seen = seenIn(await ask(rig.url, body, { path: "/v1/completions" }));
        assert.deepEqual(seen.ends, ["stop END"]);
        assert.deepEqual(
          seen.usage.map((counts) => counts.completion_tokens),
          usage ? [output] : [],
        );
      }
      assert.equal(rig.gateway.counters.cuts, 0);
    });
  }
});
