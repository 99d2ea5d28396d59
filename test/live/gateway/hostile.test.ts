import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";

import { SMALL_PIECES_MAX } from "#live/http/request-body.ts";
import { createTokenizer } from "../tokenizer/create-tokenizer.ts";
import type { GatewayLimits } from "#live/http/limits.ts";

import { type Ask, CHAT, ask, errorOf, startRig } from "./rig.ts";
import { chatAnswer, jsonReply } from "./stub-engine.ts";

const COMPLETIONS: Ask = { path: "/v1/completions" };
const RESPONSES: Ask = { path: "/v1/responses" };
const user = (content: unknown): object => ({ role: "user", content });

interface Case {
  readonly name: string;
  readonly limits: Partial<GatewayLimits>;
  readonly body: object | string;
  readonly how?: Ask;
  readonly param: string;
  readonly names: keyof GatewayLimits;
  /** Told before anything is read. */
  readonly unread?: true;
}

const CASES: readonly Case[] = [
  {
    name: "depth",
    limits: { jsonDepthMax: 10 },
    body: `{"model":"tiny","marker":${"[".repeat(10)}${"]".repeat(10)}}`,
    param: "body",
    names: "jsonDepthMax",
    unread: true,
  },
  {
    name: "depth of a long body that never closes",
    limits: {},
    body: `{"model":"tiny","marker":${"[".repeat(200_000)}`,
    param: "body",
    names: "jsonDepthMax",
    unread: true,
  },
  {
    name: "keys",
    limits: { jsonKeysMax: 5 },
    body: `{"marker":1,"b":{"c":1,"d":1},"e":1,"f":1}`,
    param: "body",
    names: "jsonKeysMax",
    unread: true,
  },
  {
    name: "fields",
    limits: { jsonFieldsMax: 3 },
    body: `{"marker":1,"b":{"c":1,"d":1},"e":1,"f":1}`,
    param: "body",
    names: "jsonFieldsMax",
    unread: true,
  },
  {
    name: "strings and objects",
    limits: { jsonItemsMax: 4 },
    body: `{"marker":["a","b",{},[]]}`,
    param: "body",
    names: "jsonItemsMax",
    unread: true,
  },
  {
    name: "values of a long body",
    limits: { jsonValuesMax: 50_000 },
    body: `{"marker":[${"1,".repeat(60_000)}1]}`,
    param: "body",
    names: "jsonValuesMax",
    unread: true,
  },
  {
    name: "messages",
    limits: { messagesMax: 2 },
    body: { ...CHAT, messages: [user("a"), user("b"), user("c")] },
    param: "messages",
    names: "messagesMax",
  },
  {
    name: "input items",
    limits: { messagesMax: 2 },
    body: { model: "tiny", input: [user("a"), user("b"), user("c")] },
    how: RESPONSES,
    param: "messages",
    names: "messagesMax",
  },
  {
    name: "content parts of all messages",
    limits: { contentPartsMax: 3 },
    body: { ...CHAT, messages: [user([{}, {}]), user([{}, {}])] },
    param: "messages[1].content",
    names: "contentPartsMax",
  },
  {
    name: "tools",
    limits: { toolsMax: 1 },
    body: { ...CHAT, tools: [{}, {}] },
    param: "tools",
    names: "toolsMax",
  },
  {
    name: "prompts",
    limits: { promptsMax: 2 },
    body: { model: "tiny", prompt: ["a", "b", "c"] },
    how: COMPLETIONS,
    param: "prompt",
    names: "promptsMax",
  },
];

describe("bounds of a request's content", () => {
  for (const { name, limits, body, how, param, names, unread } of CASES) {
    test(name, async (t) => {
      const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("x")))], { limits });
      const parse = t.mock.method(JSON, "parse");
      const got = await ask(rig.url, body, how);
      const read = parse.mock.calls.filter(({ arguments: [text] }) => text.includes("marker"));
      parse.mock.restore();
      assert.equal(got.status, 400);
      const error = errorOf(got);
      assert.equal(error.param, param);
      assert.match(error.message, new RegExp(`limits\\.${names}`));
      if (unread) assert.equal(read.length, 0);
      assert.equal(rig.engines[0]!.requests.length, 0);
      assert.deepEqual(rig.kinds(), []);
      await rig.close();
    });
  }

  test("as shipped they are far above what agents send", async () => {
    const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("x")))]);
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } }];
    const messages = Array.from({ length: 2_000 }, (_, i) =>
      i % 2 === 0 ? user("x") : { role: "assistant", content: null, tool_calls: calls },
    );
    const parameters = { type: "object", properties: { a: { type: "string" }, b: { type: "array", items: {} } } };
    const tools = Array.from({ length: 256 }, () => ({ type: "function", function: { name: "f", parameters } }));
    assert.equal((await ask(rig.url, { ...CHAT, messages, tools })).status, 200);
    await rig.close();
  });
});

describe("long work", () => {
  test("a body of megabytes is read in turns and arrives as it was sent", async () => {
    const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("x")))]);
    const body = JSON.stringify({ ...CHAT, messages: [user('long "text" \\ é '.repeat(200_000))] });
    assert.equal((await ask(rig.url, body)).status, 200);
    assert.equal(rig.engines[0]!.requests[0]!.body.toString(), body);
    assert.equal((await ask(rig.url, `${body.slice(0, -1)},`)).status, 400);
    await rig.close();
  });

  test("ends when its client leaves: no answer, no defect, and the memo grows no more", async () => {
    const tokenizer = await createTokenizer({ kind: "estimate", blockTokens: 16, blockHash: "blake3", secret: "s" });
    const limits = { messagesMax: 100_000, jsonItemsMax: 1e6, jsonKeysMax: 1e6 };
    const rig = await startRig([() => {}], { tokenizer: () => tokenizer, limits });
    const messages = Array.from({ length: 60_000 }, (_, i) => user(`message ${i}`));
    const body = JSON.stringify({ model: "tiny", messages });
    const client = connect(Number(new URL(rig.url).port), "127.0.0.1");
    client.on("error", () => {});
    client.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    while (tokenizer.describe().memo.entries < 2_000) await nextPass();
    client.destroy();
    while (rig.summaries.length === 0) await nextPass();
    const { entries } = tokenizer.describe().memo;
    for (let pass = 0; pass < 50; pass++) await nextPass();
    assert.equal(tokenizer.describe().memo.entries, entries);
    assert.ok(entries < messages.length);
    assert.equal(rig.summaries[0]!.outcome, "aborted");
    assert.deepEqual(rig.kinds(), []);
    await rig.close();
  });

  test("bytes of bodies that are still arriving are held bytes", async () => {
    const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("x")))], {
      limits: { bodyBytesInFlightMax: 150_000 },
    });
    const client = connect(Number(new URL(rig.url).port), "127.0.0.1");
    client.on("error", () => {});
    client.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 110000\r\n\r\n${" ".repeat(70_000)}`,
    );
    const { bodies } = rig.gateway.shared;
    while (bodies.bytes !== 70_000) await nextPass();
    assert.equal((await ask(rig.url, CHAT)).status, 200);
    assert.equal(rig.gateway.shared.bodies.bytes, 70_000);
    client.destroy();
    while (rig.gateway.shared.bodies.bytes > 0) await nextPass();
    await rig.close();
  });

  test("a body in very many pieces is whole", async () => {
    const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("x")))]);
    const body = JSON.stringify({ ...CHAT, messages: [user("x".repeat(SMALL_PIECES_MAX - 200))] });
    const client = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const chunks = [...Buffer.from(body)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join("");
    client.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    );
    const answer = await new Promise<string>((resolve) => client.once("data", (data) => resolve(String(data))));
    assert.match(answer, /^HTTP\/1.1 200/);
    assert.equal(rig.engines[0]!.requests[0]!.body.toString(), body);
    client.destroy();
    await rig.close();
  });
});

function nextPass(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
