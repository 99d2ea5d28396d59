import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KnownBodies } from "#live/request/known-bodies.ts";
import { DEFAULT_LIMITS, type GatewayLimits } from "#live/http/limits.ts";
import { type ParsedRequest, parseRequest } from "#live/request/parse-request.ts";
import { Routes } from "#live/http/route.ts";
import { sameShape } from "../../same-shape.ts";

const CHAT = new Routes().of("/v1/chat/completions")!;

type Message = Readonly<Record<string, unknown>>;

function read(body: string | Buffer, known?: KnownBodies, limits: GatewayLimits = DEFAULT_LIMITS) {
  const parsed = parseRequest(CHAT, "application/json", Buffer.from(body), limits, undefined, known);
  assert.ok(!(parsed instanceof Promise), "bodies here are read at once");
  return "prompt" in parsed ? { ...parsed, prompt: { ...parsed.prompt, source: withoutBeginning(parsed) } } : parsed;
}

/** A beginning is what the messages begin with: the very objects. */
function withoutBeginning({ prompt: { source } }: ParsedRequest) {
  if (source?.kind !== "chat" || source.beginning === undefined) return source;
  const { beginning, ...plain } = source;
  assert.ok(beginning.length > 0 && beginning.length < source.messages.length);
  for (const [at, message] of beginning.entries()) assert.equal(source.messages[at], message);
  return plain;
}

/** Messages of a conversation after so many turns, the last one a question. */
function conversation(turns: number, name = "a", chars = 1_500): Message[] {
  return Array.from({ length: 2 * turns - 1 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${i}: ${`text of ${name}, `.repeat(chars / (10 + name.length))}`,
  }));
}

function bodyOf(messages: readonly unknown[], more: object = {}): string {
  return JSON.stringify({ model: "m", messages, ...more });
}

test("of a conversation that goes on only what is new is read from its third request on", () => {
  const known = new KnownBodies({});
  for (let turns = 3; turns <= 12; turns++) {
    const body = bodyOf(conversation(turns), { stream: true });
    assert.deepEqual(read(body, known), read(body));
  }
  assert.equal(known.counts["known"], 8);
  assert.equal(known.counts["unknown"], 2);
  assert.ok(known.bytes < 3 * 12 * 2 * 1_600 + 16_384, "what it grew from is not kept beside it");
});

test("chats of one conversation have one array as their beginning, until more of it is known", () => {
  const known = new KnownBodies({});
  const beginningOf = (turns: number): readonly unknown[] | undefined => {
    const body = Buffer.from(bodyOf(conversation(turns)));
    const parsed = parseRequest(CHAT, "application/json", body, DEFAULT_LIMITS, undefined, known);
    assert.ok("prompt" in parsed && parsed.prompt.source?.kind === "chat");
    return parsed.prompt.source.beginning;
  };
  assert.deepEqual([beginningOf(4), beginningOf(4)], [undefined, undefined]);
  const first = beginningOf(4);
  assert.equal(first?.length, 6);
  assert.ok(beginningOf(4) === first && beginningOf(5) === first);
  assert.equal(beginningOf(5)?.length, 8);
});

test("what comes once is not kept, nor what is short", () => {
  const known = new KnownBodies({});
  for (let i = 0; i < 50; i++) {
    read(bodyOf(conversation(4, `conversation ${i}`)), known);
    read(bodyOf(conversation(1)), known);
    read(bodyOf(conversation(1, "a", 9_000)), known);
  }
  assert.equal(known.bytes, 0);
});

test("the bound holds, and what was not used for the longest time goes", () => {
  const known = new KnownBodies({});
  const limits = { ...DEFAULT_LIMITS, knownBodyBytesKept: 100_000 };
  const ask = (name: string) => read(bodyOf(conversation(5, name)), known, limits);
  for (let i = 0; i < 40; i++) {
    for (let again = 0; again < 3; again++) ask(`conversation ${i}`);
    ask("conversation 0");
    assert.ok(known.bytes <= 100_000);
  }
  assert.ok((known.counts["dropped"] ?? 0) > 20);
  const before = known.counts["known"];
  ask("conversation 0");
  assert.equal(known.counts["known"], before! + 1);
  ask("conversation 1");
  assert.equal(known.counts["known"], before! + 1);
  const none = { ...DEFAULT_LIMITS, knownBodyBytesKept: 0 };
  read(bodyOf(conversation(5)), known, none);
  assert.equal(known.bytes, 0, "a new bound holds for what was kept before");
  const off = new KnownBodies({});
  for (let i = 0; i < 4; i++) read(bodyOf(conversation(5)), off, none);
  assert.deepEqual(off.counts, {});
});

test("a second list of messages takes the place of the first, whatever its key is written as, and spoils nobody's", () => {
  for (const key of ['"messages"', '"messa\\u0067es"']) {
    const known = new KnownBodies({});
    const mine = bodyOf(conversation(5));
    const other = `${mine.slice(0, -1)},${key}:${JSON.stringify(conversation(5, "other"))}}`;
    for (let i = 0; i < 4; i++) {
      assert.deepEqual(read(other, known), read(other));
      assert.deepEqual(read(mine, known), read(mine));
    }
    const before = other.replace('"model":"m",', `"model":"m",${key}:[{"role":"user","content":"before"}],`);
    for (let i = 0; i < 3; i++) assert.deepEqual(read(before, known), read(before));
  }
});

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.constantFrom('},{"', '}, {"', '"messages":[', "\\", "]}", "{", "é".repeat(90), "plain ".repeat(20), ""),
);
const message = fc.oneof(
  { weight: 6, arbitrary: fc.record({ role: fc.constantFrom("user", "assistant", "system"), content: text }) },
  fc.record({
    role: fc.constant("user"),
    content: fc.array(fc.record({ type: fc.constant("text"), text }), { maxLength: 3 }),
  }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.constant(null),
    tool_calls: fc.array(fc.record({ id: text, function: fc.record({ arguments: text }) }), { maxLength: 2 }),
  }),
  fc.constantFrom<unknown>("no message", null, [{ role: "user" }], { content: 1 }),
);
const style = fc.record({
  spaced: fc.boolean(),
  first: fc.boolean(),
  tools: fc.option(fc.array(fc.record({ name: text, parameters: fc.jsonValue({ maxDepth: 2 }) }), { maxLength: 2 })),
  extra: fc.constantFrom({}, { stream: true }, { "messages ": [1] }, { metadata: { messages: [{ role: "x" }] } }),
});

type Style = typeof style extends fc.Arbitrary<infer T> ? T : never;

function written(messages: readonly unknown[], { spaced, first, tools, extra }: Style): string {
  const more = { ...(tools === null ? {} : { tools }), ...extra };
  const json = JSON.stringify(first ? { messages, model: "m", ...more } : { ...more, model: "m", messages });
  return spaced
    ? json.replaceAll(/("(?:[^"\\]|\\.)*")|([:,])/g, (_, quoted?: string, sign?: string) => quoted ?? `${sign} `)
    : json;
}

test("property: whatever was read before, a body is read as if it were the first", () => {
  const step = fc.record({
    branch: fc.nat(2),
    more: fc.array(message, { maxLength: 4 }),
    broken: fc.constantFrom(0, 0, 0, 0, 1, 7, 40),
    keys: fc.constantFrom(1e6, 1e6, 40),
  });
  const counts: Record<string, number> = {};
  fc.assert(
    fc.property(style, fc.array(step, { minLength: 4, maxLength: 20 }), (writing, steps) => {
      const known = new KnownBodies(counts, 64);
      const branches: unknown[][] = [[], [], []];
      for (const { branch, more, broken, keys } of steps) {
        const messages = (branches[branch] = [...branches[branch]!, ...more]);
        const whole = written(messages, writing);
        const body = Buffer.from(whole).subarray(0, Buffer.byteLength(whole) - broken);
        const limits = { ...DEFAULT_LIMITS, jsonKeysMax: keys };
        for (let again = 0; again < 2; again++) {
          const plain = read(body, undefined, limits);
          assert.deepEqual(read(body, known, limits), plain);
        }
      }
    }),
  );
  assert.ok((counts["known"] ?? 0) > 10, "some were read on");
});

test("keys keep their order, and a prototype is a field like any other", () => {
  const known = new KnownBodies({});
  const body = (turns: number) =>
    `{"b":1,"__proto__":{"x":1},"messages":${JSON.stringify(conversation(turns))},"a":2,"7":3}`;
  for (let turns = 3; turns < 8; turns++) {
    const [first, second] = [read(body(turns), known), read(body(turns))] as { fields: object }[];
    assert.deepEqual(Object.entries(first!.fields), Object.entries(second!.fields));
    assert.equal(Object.getPrototypeOf(first!.fields), Object.prototype);
  }
  assert.ok((known.counts["known"] ?? 0) > 0);
});

test("the fields of a body that is read on have the shape of those of a body that is read whole", () => {
  const known = new KnownBodies({});
  for (const more of [{}, { stream: true, max_tokens: 3 }, { tools: [] }]) {
    for (let turns = 3; turns < 8; turns++) {
      const body = bodyOf(conversation(turns), more);
      const [first, second] = [read(body, known), read(body)] as { fields: object }[];
      assert.ok(sameShape(first!.fields, second!.fields), body.slice(-30));
    }
  }
  assert.ok(known.counts["known"]! > 5);
});
