import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";

import { CHAT, type Ask, type Rig, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply } from "./stub-engine.ts";

const TEXT = { model: "tiny", prompt: "x" };
const completions: Ask = { path: "/v1/completions" };

interface Case {
  readonly name: string;
  readonly body?: string | Buffer | object;
  readonly how?: Ask;
  readonly status: number;
  readonly param?: string;
  readonly says: RegExp;
}

const CASES: readonly Case[] = [
  { name: "malformed JSON", body: '{"model":"tiny",', status: 400, param: "body", says: /not valid JSON/ },
  { name: "an empty body", body: "", status: 400, param: "body", says: /empty/ },
  { name: "an array", body: "[]", status: 400, param: "body", says: /must be a JSON object/ },
  { name: "null", body: "null", status: 400, param: "body", says: /must be a JSON object/ },
  {
    name: "a wrong content type",
    body: CHAT,
    how: { headers: { "content-type": "text/plain" } },
    status: 400,
    says: /application\/json/,
  },
  { name: "a model that is no string", body: { ...CHAT, model: 7 }, status: 400, param: "model", says: /string/ },
  {
    name: "a stream that is no boolean",
    body: { ...CHAT, stream: "maybe" },
    status: 400,
    param: "stream",
    says: /true/,
  },
  { name: "no messages", body: { model: "tiny" }, status: 400, param: "messages", says: /required/ },
  { name: "messages as text", body: { ...CHAT, messages: "x" }, status: 400, param: "messages", says: /array/ },
  { name: "empty messages", body: { ...CHAT, messages: [] }, status: 400, param: "messages", says: /at least one/ },
  {
    name: "a message without a role",
    body: { ...CHAT, messages: [{ role: "user", content: "x" }, { content: "x" }] },
    status: 400,
    param: "messages[1]",
    says: /role/,
  },
  { name: "no prompt", body: { model: "tiny" }, how: completions, status: 400, param: "prompt", says: /required/ },
  {
    name: "an empty prompt",
    body: { ...TEXT, prompt: "" },
    how: completions,
    status: 400,
    param: "prompt",
    says: /empty/,
  },
  { name: "no prompts", body: { ...TEXT, prompt: [] }, how: completions, status: 400, param: "prompt", says: /empty/ },
  {
    name: "a mixed prompt",
    body: { ...TEXT, prompt: ["a", 1] },
    how: completions,
    status: 400,
    param: "prompt",
    says: /array of token ids/,
  },
  {
    name: "an unknown model",
    body: { ...CHAT, model: "nope" },
    status: 404,
    param: "model",
    says: /^The model `nope` does not exist. Valid aliases: tiny\.$/,
  },
  {
    name: "a body above the limit",
    body: Buffer.alloc(5000, 0x20),
    status: 413,
    says: /larger than 4096 bytes \(this gateway's limits.bodyBytesMax\)/,
  },
  { name: "a wrong method", how: { method: "GET" }, status: 405, says: /takes POST/ },
  {
    name: "an unknown path",
    how: { method: "GET", path: "/v1/nothing" },
    status: 404,
    says: /GET \/v1\/nothing/,
  },
  { name: "the root", how: { method: "GET", path: "/" }, status: 404, says: /GET \// },
  ...[
    "/v1/load_lora_adapter",
    "/sleep",
    "/v1/nothing",
    "/v1/chat/completions/x",
    "/v1/a/%2e%2e/b",
    "/v1/a/..",
    "/v1/..%2Fb",
    "/v1/a%2f..%2f..%2fb",
    "/v1/a%5C..",
  ].map((path) => ({
    name: `${path}, which is no route,`,
    body: CHAT,
    how: { path },
    status: 404,
    says: /There is nothing at POST .* POST serves \/v1\/chat\/completions, .*\/v1\/embeddings.*routes\.extra .*listen\.adminPort/,
  })),
];

describe("bad input", () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
      limits: { bodyBytesMax: 4096 },
    });
  });
  after(() => rig.close());

  for (const { name, body, how, status, param, says } of CASES) {
    test(`${name} is ${status}`, async () => {
      const got = await ask(rig.url, body, how);
      assert.equal(got.status, status);
      assert.equal(got.headers["content-type"], "application/json");
      const error = errorOf(got);
      assert.equal(error.code, status);
      assert.equal(error.param, param ?? null);
      assert.match(error.message, says);
      assert.ok(got.headers["x-gnomon-reason"]);
      assert.equal(rig.engines[0]!.requests.length, 0, "no engine was troubled");
    });
  }

  test("a wrong method names the right one", async () => {
    assert.equal((await ask(rig.url, undefined, { method: "PUT" })).headers["allow"], "POST");
  });

  test("a body above the limit is refused while it comes, whatever its declared length", async () => {
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.write(
      "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    for (let i = 0; i < 8; i++) socket.write(`400\r\n${"x".repeat(1024)}\r\n`);
    const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
    assert.match(answer, /^HTTP\/1.1 413 /);
    assert.match(answer, /connection: close/i);
    socket.destroy();
  });

  test("bytes that are not HTTP get a clear error and cost nobody else anything", async () => {
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.write("\u0016\u0003\u0001\u0002\r\n\r\n");
    const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
    assert.match(answer, /^HTTP\/1.1 400 .*well-formed/s);
    socket.destroy();
    assert.equal((await ask(rig.url, CHAT)).status, 200);
    rig.engines[0]!.requests.length = 0;
  });

  test("a head that is too large is 431", async () => {
    const got = await ask(rig.url, CHAT, { headers: { "x-large": "x".repeat(40_000) } });
    assert.equal(got.status, 431);
    assert.match(errorOf(got).message, /head is larger than 16384 bytes/);
    assert.equal(got.headers["x-gnomon-reason"], "headers-too-large");
  });

  test("a request with a malformed host is refused", async () => {
    const { length } = JSON.stringify(CHAT);
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a b\r\ncontent-type: application/json\r\ncontent-length: ${length}`;
    socket.write(`${head}\r\n\r\n${JSON.stringify(CHAT)}`);
    const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
    assert.match(answer, /^HTTP\/1.1 400 .*host or target is malformed/s);
    socket.destroy();
  });

  test("targets that need reading first reach the same place", async () => {
    for (const target of [
      "http://gateway/v1/chat/completions",
      "http://gateway/v1/chat/completions?x=1",
      "/v1/chat/completions/",
      "/v1/chat/completions?x=1",
    ]) {
      rig.engines[0]!.requests.length = 0;
      const body = JSON.stringify(CHAT);
      const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
      const head = `POST ${target} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\nconnection: close`;
      socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
      const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
      assert.match(answer, /^HTTP\/1.1 200 /, target);
      const query = target.includes("?") ? "?x=1" : "";
      assert.deepEqual(
        rig.engines[0]!.requests.map(({ path }) => path),
        [`/v1/chat/completions${query}`],
        target,
      );
      assert.equal(rig.summaries.at(-1)!.route, "/v1/chat/completions", target);
      socket.destroy();
    }
    rig.engines[0]!.requests.length = 0;
  });

  test("a target that is another one than it seems is shown as it was sent", async () => {
    for (const target of ["/v1/../v1/chat/completions", "/v1/./chat/completions", "/v1/chat/completions#a"]) {
      const got = await raw(rig.url, `POST ${target}?key=x HTTP/1.1\r\nhost: x\r\ncontent-length: 0`);
      assert.match(got, /^HTTP\/1.1 404 /, target);
      assert.ok(got.includes(`There is nothing at POST ${target}.`), got);
    }
    const got = await raw(rig.url, "PATCH /v1/../v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 0");
    assert.match(got, /^HTTP\/1.1 405 .*\r\nallow: POST\r\n/s);
  });

  test("a request without a host is served", async () => {
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.write("GET /v1/models HTTP/1.0\r\n\r\n");
    const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
    assert.match(answer, /^HTTP\/1.1 200 /);
    socket.destroy();
  });
});

describe("what only the engine can judge passes untouched", () => {
  const odd = [
    { ...CHAT, temperature: -2, n: "three", max_tokens: 0, top_p: null, unknown_field: {} },
    { ...CHAT, messages: [{ role: "wizard", content: null }] },
    { ...CHAT, max_tokens: -1, priority: "high", session_id: 5 },
  ];
  test("odd values reach the engine byte by byte", async () => {
    const reply: Reply = (_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")));
    const rig = await startRig([reply], { engineFields: ["priority"] });
    for (const body of odd) {
      const bytes = ` ${JSON.stringify(body, undefined, 1)}\n`;
      assert.equal((await ask(rig.url, bytes)).status, 200);
      assert.equal(rig.engines[0]!.requests.at(-1)!.body.toString(), bytes);
    }
    await rig.close();
  });
});

test("a body that begins with UTF-8's mark is read, and passed on as it was", async () => {
  const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))]);
  const bytes = `\u{feff}${JSON.stringify(CHAT)}`;
  assert.equal((await ask(rig.url, bytes)).status, 200);
  assert.equal(rig.engines[0]!.requests.at(-1)!.body.toString(), bytes);
  await rig.close();
});

describe("a missing model", () => {
  test("is filled in where exactly one is served, and nothing else changes", async () => {
    const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))]);
    for (const [sent, forwarded] of [
      ['{"messages":[{"role":"user","content":"x"}]}', '{"messages":[{"role":"user","content":"x"}],"model":"tiny"}'],
      ['{"model":null,"messages":[{"role":"user"}] } ', '{"model":null,"messages":[{"role":"user"}] ,"model":"tiny"} '],
      ['{"model":"","messages":[{"role":"user"}]}', '{"model":"","messages":[{"role":"user"}],"model":"tiny"}'],
    ]) {
      assert.equal((await ask(rig.url, sent)).status, 200);
      assert.equal(rig.engines[0]!.requests.at(-1)!.body.toString(), forwarded);
      assert.equal((JSON.parse(forwarded!) as { model: string }).model, "tiny");
    }
    assert.equal((await ask(rig.url, "{}", { path: "/v1/embeddings" })).status, 200);
    assert.equal(rig.engines[0]!.requests.at(-1)!.body.toString(), '{"model":"tiny"}');
    await rig.close();
  });

  test("is 400 where two are", async () => {
    const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
      models: ["tiny", "adapter-a"],
    });
    const got = await ask(rig.url, { messages: CHAT.messages });
    assert.equal(got.status, 400);
    assert.equal(errorOf(got).param, "model");
    await rig.close();
  });

  test("is 503 where no engine has reported yet what it serves", async () => {
    const rig = await startRig([], { urls: ["http://127.0.0.1:9"], models: [] });
    const got = await ask(rig.url, { messages: CHAT.messages });
    assert.equal(got.status, 503);
    assert.match(errorOf(got).message, /what it serves/);
    await rig.close();
  });

  test("is 503 where no engine is known", async () => {
    const rig = await startRig([]);
    const got = await ask(rig.url, { messages: CHAT.messages });
    assert.equal(got.status, 503);
    assert.equal(got.headers["retry-after"], "2");
    await rig.close();
  });
});

describe("/v1/models", () => {
  test("is the union of what the endpoints serve", async () => {
    const rig = await startRig([() => {}], { models: ["tiny", "org/adapter-a"] });
    rig.directory.add({ ...rig.directory.get("a")!, id: "z", models: [{ id: "other", object: "model" }] });
    const all = await ask(rig.url, undefined, { method: "GET", path: "/v1/models" });
    const { object, data } = JSON.parse(all.body) as { object: string; data: { id: string; owned_by?: string }[] };
    assert.equal(object, "list");
    assert.deepEqual(
      data.map(({ id }) => id),
      ["tiny", "org/adapter-a", "other"],
    );
    assert.equal(data[0]!.owned_by, "vllm", "an endpoint's own object is kept");
    const one = await ask(rig.url, undefined, { method: "GET", path: "/v1/models/org/adapter-a" });
    assert.equal((JSON.parse(one.body) as { id: string }).id, "org/adapter-a");
    assert.equal((await ask(rig.url, undefined, { method: "GET", path: "/v1/models/nope" })).status, 404);
    await rig.close();
  });
});

/** The first piece of an answer. */
async function raw(url: string, head: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(`${head}\r\n\r\n`);
  const answer = await new Promise<string>((resolve) => socket.once("data", (data) => resolve(String(data))));
  socket.destroy();
  return answer;
}
