import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { type TestContext, test } from "node:test";
import { Hono } from "hono";
import type { HttpBindings } from "@hono/node-server";
import OpenAI from "openai";
import { nowMicros } from "#live/base/clock.ts";
import { adminAccess } from "#live/admin/admin-access.ts";
import { enginePages } from "#live/status/open-pages.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { Readiness } from "#live/status/readiness.ts";
import { CHAT, type Got, type Rig, type RigOptions, ask, errorOf, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  chunk,
  event,
  headerOf,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

async function rigOf(t: TestContext, replies: readonly Reply[], options: RigOptions = {}): Promise<Rig> {
  const rig = await startRig(replies, options);
  t.after(() => rig.close());
  return rig;
}

const ok: Reply = (_r, socket) => void socket.write(jsonReply(200, chatAnswer("ok")));
const missing: Reply = (_r, socket) =>
  void socket.write(jsonReply(404, { error: { message: "Response with id 'resp_1' not found.", code: 404 } }));
const json = (got: Got) => JSON.parse(got.body) as Record<string, unknown>;

test("engine administration goes nowhere unless it is configured, and needs admin access", async (t) => {
  const none = await rigOf(t, [ok]);
  assert.equal((await ask(none.url, { lora_name: "a" }, { path: "/v1/load_lora_adapter" })).status, 404);
  const administration = { paths: ["/v1/load_lora_adapter"], access: adminAccess("secret"), millisMax: 5_000 };
  const rig = await rigOf(t, [ok, ok], { administration, clientKeys: ["client"] });
  const wrong: Record<string, string>[] = [{}, { authorization: "Bearer client" }, { "x-api-key": "wrong" }];
  for (const headers of wrong) {
    const got = await ask(rig.adminUrl, { lora_name: "a" }, { path: "/v1/load_lora_adapter", headers });
    assert.equal(got.status, 401);
    assert.equal(errorOf(got).type, "AuthenticationError");
  }
  assert.deepEqual(
    rig.engines.map(({ requests }) => requests.length),
    [0, 0],
  );
  assert.equal(rig.gateway.counters.administrationCalls, 0);
});

test("engine administration reaches all ready engines with method, query and body, and returns what each answered", async (t) => {
  const administration = { paths: ["/sleep", "/is_sleeping"], access: adminAccess("secret"), millisMax: 5_000 };
  let status = 200;
  const second: Reply = (_r, socket) => void socket.write(jsonReply(status, { b: true }));
  const rig = await rigOf(t, [(_r, s) => void s.write(jsonReply(200, { a: true })), second, ok], { administration });
  rig.directory.get("c")!.state = "lost";
  const headers = { authorization: "Bearer secret" };
  const got = await ask(rig.adminUrl, { level: 1 }, { path: "/sleep?level=1", headers });
  assert.equal(got.status, 200);
  const [a, b, c] = rig.engines;
  assert.deepEqual(json(got), {
    path: "/sleep?level=1",
    succeeded: 2,
    failed: 0,
    engines: [
      { url: a!.url, endpoints: ["a"], status: 200, body: { a: true } },
      { url: b!.url, endpoints: ["b"], status: 200, body: { b: true } },
    ],
    notReady: ["c"],
  });
  for (const { requests } of [a!, b!]) {
    assert.deepEqual(
      requests.map(({ method, path, body }) => [method, path, body.toString()]),
      [["POST", "/sleep?level=1", '{"level":1}']],
    );
    assert.equal(headerOf(requests[0]!, "content-type"), "application/json");
  }
  assert.equal(c!.requests.length, 0);
  const asked = await ask(rig.adminUrl, undefined, { path: "/is_sleeping", method: "GET", headers });
  assert.deepEqual([asked.status, b!.requests.at(-1)!.method], [200, "GET"]);
  status = 500;
  const partly = await ask(rig.adminUrl, undefined, { path: "/sleep", headers });
  assert.deepEqual([partly.status, json(partly)["succeeded"], json(partly)["failed"]], [502, 1, 1]);
  await b!.kill();
  const dead = await ask(rig.adminUrl, undefined, { path: "/sleep", headers });
  const engines = json(dead)["engines"] as { status: number; body: string }[];
  assert.deepEqual([dead.status, engines[1]!.status], [502, 0]);
  assert.match(engines[1]!.body, /^no answer \(/);
  assert.equal(rig.gateway.counters.administrationCalls, 4);
  assert.equal(rig.inputs.filter(({ kind }) => kind === "request-arrived").length, 0, "no decision was made");
});

test("a stored response is found at the engine that has it, by the openai client, and remembered", async (t) => {
  const stored = { id: "resp_1", object: "response", status: "completed", output: [] };
  const has: Reply = (_r, socket) => void socket.write(jsonReply(200, stored));
  const rig = await rigOf(t, [missing, missing, has], { clientKeys: ["sk"] });
  const client = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "sk", maxRetries: 0 });
  const asked = () => rig.engines.map(({ requests }) => requests.length);
  assert.equal((await client.responses.retrieve("resp_1")).status, "completed");
  assert.equal((await client.responses.cancel("resp_1")).status, "completed");
  assert.equal((await client.responses.retrieve("resp_1")).id, "resp_1");
  assert.equal(asked()[2], 3);
  assert.ok(asked()[0]! <= 1 && asked()[1]! <= 1, `the others were asked at most once: ${asked().join()}`);
  const { method, path, body } = rig.engines[2]!.requests[1]!;
  assert.deepEqual([method, path, body.length], ["POST", "/v1/responses/resp_1/cancel", 0], "without a body");
  const anonymous = await ask(rig.url, undefined, { method: "GET", path: "/v1/responses/resp_1" });
  assert.equal(anonymous.status, 401);
  for (const engine of rig.engines) engine.reply = missing;
  await assert.rejects(client.responses.retrieve("resp_2"), OpenAI.NotFoundError);
  for (const path of ["/v1/responses/..", "/v1/responses/%2e%2e", "/v1/responses/a%2fb"]) {
    assert.equal((await ask(rig.url, undefined, { method: "GET", path })).status, 404, path);
  }
});

/** An engine that stores its responses, streamed or whole, and knows no others. */
function storing(name: string): Reply {
  const stored = new Set<string>();
  return ({ method, path, body }, socket) => {
    const notFound = jsonReply(404, { error: { message: "Response with id not found.", code: 404 } });
    if (method === "GET") {
      const id = path.slice("/v1/responses/".length);
      return void socket.write(stored.has(id) ? jsonReply(200, { id }) : notFound);
    }
    const asked = JSON.parse(body.toString()) as { previous_response_id?: string; stream?: boolean };
    if (asked.previous_response_id !== undefined && !stored.has(asked.previous_response_id))
      return void socket.write(notFound);
    const id = `resp_${name}${stored.size}`;
    stored.add(id);
    const response = { id, status: "completed", output: [{}], usage: { input_tokens: 3, output_tokens: 1 } };
    if (asked.stream !== true) return void socket.write(jsonReply(200, response));
    const of = (type: string, more: object) => chunk(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
    const begun = of("response.created", { response: { ...response, status: "in_progress" } });
    const delta = of("response.output_text.delta", { delta: "x" });
    socket.write(STREAM_HEAD + begun + delta + of("response.completed", { response }) + STREAM_END);
  };
}

const RANDOM = { filters: [], scorers: [], picker: { plugin: "random", parameters: {} } };
const FOLLOW = { model: "tiny", input: "x" };
const PATH = { path: "/v1/responses" };

test("a request that follows a response goes to the engine that has it, which the trace states", async (t) => {
  const rig = await rigOf(t, ["a", "b", "c"].map(storing), { profile: RANDOM });
  let last: string | undefined;
  const places = new Set<string>();
  for (let i = 0; i < 30; i++) {
    // Each conversation has three answers.
    const body = { ...FOLLOW, stream: i % 2 === 0, ...(i % 3 > 0 && { previous_response_id: last }) };
    const got = await ask(rig.url, body, PATH);
    assert.equal(got.status, 200, got.body);
    last = /"id":"(resp_[^"]*)"/.exec(got.body)![1]!;
    places.add(last.slice(5, 6));
  }
  assert.equal(places.size, 3, "the first of each conversation went anywhere");
  assert.deepEqual(rig.gateway.counters.responsesFollowed, { noted: 20 });
  const arrived = rig.inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request] : []));
  assert.equal(arrived.filter(({ subset }) => subset?.length === 1).length, 20);
});

test("what follows a response of before the gateway's start is found by asking the engines, once", async (t) => {
  const rig = await rigOf(t, ["a", "b", "c"].map(storing));
  const made = await fetch(`${rig.engines[2]!.url}/v1/responses`, { method: "POST", body: JSON.stringify(FOLLOW) });
  const { id } = (await made.json()) as { id: string };
  for (let i = 0; i < 3; i++) {
    const got = await ask(rig.url, { ...FOLLOW, previous_response_id: id }, PATH);
    assert.deepEqual([got.status, got.headers["x-gnomon-endpoint"]], [200, "c"]);
  }
  assert.deepEqual(rig.gateway.counters.responsesFollowed, { found: 1, noted: 2 });
  for (const unknown of ["resp_none", "../../health", "x".repeat(2_000)]) {
    const got = await ask(rig.url, { ...FOLLOW, previous_response_id: unknown }, PATH);
    assert.equal(got.status, 404, "in the engine's own words");
  }
  assert.deepEqual(rig.gateway.counters.responsesFollowed, { found: 1, noted: 2, unknown: 3 });
});

test("a response is gone with its engine: 404, as from an engine that does not have it", async (t) => {
  const rig = await rigOf(t, ["a", "b"].map(storing));
  const { body } = await ask(rig.url, FOLLOW, PATH);
  const { id } = JSON.parse(body) as { id: string };
  rig.directory.remove("a");
  rig.intake.accept({ kind: "endpoint-left", at: nowMicros(), endpoint: "a" });
  const got = await ask(rig.url, { ...FOLLOW, previous_response_id: id }, PATH);
  assert.equal(got.status, 404);
  assert.deepEqual(errorOf(got), {
    message: `Response with id '${id}' not found.`,
    type: "invalid_request_error",
    param: "response_id",
    code: 404,
  });
  assert.deepEqual(rig.gateway.counters.responsesFollowed, { gone: 1 });
});

test("an engine that has not stored a response is not taken for one that has, however soon it answers", async (t) => {
  const answered = Promise.withResolvers<void>();
  const soon: Reply = (_r, socket) => void socket.write(jsonReply(404, {}), () => answered.resolve());
  const late: Reply = (_r, socket) =>
    void answered.promise.then(() => setTimeout(() => socket.write(jsonReply(200, { id: "resp_3" })), 20));
  const rig = await rigOf(t, [soon, late]);
  const got = await ask(rig.url, undefined, { method: "GET", path: "/v1/responses/resp_3" });
  assert.deepEqual([got.status, json(got)["id"]], [200, "resp_3"]);
});

test("a stored response streams, also while another engine hangs", async (t) => {
  const event = chunk('event: response.completed\ndata: {"type":"response.completed"}\n\n');
  const rig = await rigOf(t, [() => {}, (_r, socket) => void socket.write(STREAM_HEAD + event + STREAM_END)]);
  const got = await ask(rig.url, undefined, { method: "GET", path: "/v1/responses/resp_9?stream=true" });
  assert.deepEqual([got.status, got.cut], [200, false]);
  assert.match(got.body, /response\.completed/);
  assert.equal(rig.engines[1]!.requests[0]!.path, "/v1/responses/resp_9?stream=true");
  while (rig.engines[0]!.sockets.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

test("a stored response whose engine breaks off is cut, logged and counted, and nothing is printed", async (t) => {
  const printed = t.mock.method(console, "error", () => {});
  const begun = chunk('event: response.created\ndata: {"type":"response.created"}\n\n');
  const rig = await rigOf(t, [(_r, socket) => void socket.write(STREAM_HEAD + begun, () => socket.destroy())]);
  const path = "/v1/responses/resp_9?stream=true";
  const got = await ask(rig.url, undefined, { method: "GET", path, headers: { "x-request-id": "mine" } });
  assert.deepEqual([got.status, got.cut], [200, true]);
  assert.equal(rig.gateway.counters.cuts, 1);
  const [{ requestId, endpoint, kind }] = rig.faults as [FaultEvent];
  assert.deepEqual([requestId, endpoint, kind], ["mine", rig.directory.all()[0]!.id, "answer-cut"]);
  assert.equal(printed.mock.callCount(), 0);
});

test("preflights: where no origins are configured they allow nothing, and no engine gets any, with or without keys", async (t) => {
  for (const options of [{}, { clientKeys: ["sk-1"] }]) {
    const rig = await rigOf(t, [ok], options);
    const headers = { origin: "https://chat.example", "access-control-request-method": "POST" };
    for (const [path, allow] of [
      ["/v1/chat/completions", "POST, OPTIONS"],
      ["/v1/models", "GET, HEAD, POST, OPTIONS"],
      ["/sleep", "GET, HEAD, POST, OPTIONS"],
    ] as const) {
      const got = await ask(rig.url, undefined, { method: "OPTIONS", headers, path });
      assert.deepEqual([got.status, got.headers.allow, got.body], [204, allow, ""]);
      for (const name of Object.keys(got.headers)) assert.ok(!name.startsWith("access-control-"), name);
    }
    assert.equal(rig.engines[0]!.requests.length, 0);
  }
});

test("preflights: where origins are configured, they hold for every answer and the engines' own are replaced", async (t) => {
  const theirs: Reply = (_r, socket) =>
    void socket.write(jsonReply(200, chatAnswer("ok"), "access-control-allow-origin: *\r\n"));
  const rig = await rigOf(t, [theirs], { corsOrigins: ["https://chat.example"] });
  const origin = "https://chat.example";
  const asks = { "access-control-request-headers": "authorization,content-type" };
  const flight = await ask(rig.url, undefined, { method: "OPTIONS", headers: { origin, ...asks } });
  assert.equal(flight.status, 204);
  assert.equal(flight.headers["access-control-allow-headers"], "authorization,content-type");
  assert.match(String(flight.headers["access-control-allow-methods"]), /POST/);
  assert.equal(rig.engines[0]!.requests.length, 0);
  const answers = [
    await ask(rig.url, CHAT, { headers: { origin } }),
    await ask(rig.url, { ...CHAT, model: "nope" }, { headers: { origin } }),
    await ask(rig.url, CHAT, { headers: { origin }, path: "/v1/nothing" }),
    await ask(rig.url, undefined, { headers: { origin }, method: "GET", path: "/v1/models" }),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 404, 404, 200],
  );
  for (const { headers } of [flight, ...answers]) assert.equal(headers["access-control-allow-origin"], origin);
  const foreign = await ask(rig.url, CHAT, { headers: { origin: "https://evil.example" } });
  assert.equal(foreign.headers["access-control-allow-origin"], undefined);
  const unlisted = await ask(rig.url, undefined, {
    method: "OPTIONS",
    headers: { origin: "https://evil.example", ...asks },
  });
  assert.equal(unlisted.headers["access-control-allow-origin"], undefined);
});

test("a compressed body is 415, with the encodings that are accepted", async (t) => {
  const rig = await rigOf(t, [ok]);
  const headers = { "content-encoding": "gzip" };
  const got = await ask(rig.url, gzipSync(JSON.stringify(CHAT)), { headers });
  assert.equal(got.status, 415);
  assert.match(errorOf(got).message, /compressed \(gzip\); accepted content encodings: identity/);
  assert.equal(got.headers["accept-encoding"], "identity");
  assert.equal((await ask(rig.url, CHAT, { headers: { "content-encoding": "identity" } })).status, 200);
});

test("errors of /v1/messages have Anthropic's shape, whoever finds them", async (t) => {
  const rig = await rigOf(t, [(_r, socket) => socket.destroy()], { clientKeys: ["k"], limits: { bodyBytesMax: 2048 } });
  const headers = { "x-api-key": "k" };
  const path = "/v1/messages";
  const cases: [Got, number, string][] = [
    [await ask(rig.url, CHAT, { path }), 401, "authentication_error"],
    [await ask(rig.url, "{", { path, headers }), 400, "invalid_request_error"],
    [await ask(rig.url, { ...CHAT, model: "nope" }, { path, headers }), 404, "not_found_error"],
    [await ask(rig.url, Buffer.alloc(4096), { path, headers }), 413, "request_too_large"],
    [await ask(rig.url, CHAT, { path, headers }), 502, "api_error"],
    [await ask(rig.url, "{", { path: `${path}/count_tokens`, headers }), 400, "invalid_request_error"],
    [await ask(rig.url, undefined, { path, headers, method: "GET" }), 405, "invalid_request_error"],
    [await ask(rig.url, CHAT, { path: `${path}/batches`, headers }), 404, "not_found_error"],
  ];
  for (const [got, status, type] of cases) {
    assert.equal(got.status, status);
    const { type: outer, error } = json(got) as { type: string; error: { type: string; message: string } };
    assert.deepEqual([outer, Object.keys(error), error.type], ["error", ["type", "message"], type]);
    assert.ok(error.message.length > 10);
  }
});

test("the gateway's own headers stay here where that is configured", async (t) => {
  const rig = await rigOf(t, [ok], { sendsOwnHeaders: false });
  const answers = [
    await ask(rig.url, CHAT),
    await ask(rig.url, "{"),
    await ask(rig.url, CHAT, { path: "/v1/nothing" }),
    await ask(rig.url, CHAT, { headers: { "x-large": "x".repeat(40_000) } }),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 400, 404, 431],
  );
  for (const { headers } of answers) {
    assert.deepEqual(
      Object.keys(headers).filter((name) => name.startsWith("x-gnomon")),
      [],
    );
  }
  assert.ok(answers[0]!.headers["x-request-id"]);
});

test("counting, rendering and further configured paths pass to one engine; what only counts is not charged", async (t) => {
  const rig = await rigOf(t, [ok], { extraRoutes: ["/v1/images/generations"] });
  for (const path of ["/tokenize", "/detokenize", "/v1/messages/count_tokens", "/v1/images/generations", "/rerank"]) {
    assert.equal((await ask(rig.url, { model: "tiny", prompt: "a b c d e" }, { path })).status, 200, path);
    assert.equal(rig.summaries.at(-1)!.route, path);
  }
  const tokens = rig.inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request.promptTokens] : []));
  assert.deepEqual(tokens, [0, 0, 0, 5, 5]);
});

test("a stream is asked for by what vLLM reads as true", async (t) => {
  const rig = await rigOf(t, [ok]);
  for (const [stream, expected] of [
    ["true", true],
    [1, true],
    ["Yes", true],
    ["false", false],
    [0, false],
  ] as const) {
    assert.equal((await ask(rig.url, { ...CHAT, stream })).status, 200);
    assert.equal(rig.summaries.at(-1)!.stream, expected, String(stream));
  }
  assert.equal((await ask(rig.url, { ...CHAT, stream: 2 })).status, 400);
});

test("tokens of answers side by side come as often as those of one", async (t) => {
  const usage = { prompt_tokens: 5, total_tokens: 11, completion_tokens: 6 };
  const slow: Reply = (_r, socket) => {
    socket.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
    setTimeout(() => socket.write(event({ choices: [], usage }) + event("[DONE]") + STREAM_END), 50);
  };
  const rig = await rigOf(t, [slow]);
  await ask(rig.url, { ...CHAT, n: 2, stream: true, stream_options: { include_usage: true } });
  assert.ok(rig.summaries[0]!.tpotMicros! >= 40_000 / 2);
});

test("vLLM's pages about itself are there", async (t) => {
  const rig = await rigOf(t, [ok]);
  const readiness = new Readiness(rig.directory);
  const app = new Hono<{ Bindings: HttpBindings }>();
  enginePages(readiness, "1.2.3")(app);
  const status = async (path: string, method = "GET") => (await app.request(path, { method })).status;
  assert.deepEqual([await status("/health"), await status("/ping"), await status("/ping", "POST")], [503, 503, 503]);
  readiness.warm = true;
  assert.deepEqual([await status("/health"), await status("/ping"), await status("/ping", "POST")], [200, 200, 200]);
  readiness.draining = true;
  assert.equal(await status("/health"), 503);
  assert.deepEqual(await (await app.request("/version")).json(), { version: "1.2.3", server: "gnomon" });
});

test("a gateway that ends waits for a call to the engines, and cuts it after the grace", async (t) => {
  const administration = { paths: ["/sleep"], access: () => "allowed" as const, millisMax: 60_000 };
  let answer = (): void => {};
  const slow: Reply = (_r, socket) => void (answer = () => void socket.write(jsonReply(200, {})));
  for (const [graceMillis, answers] of [
    [10_000, true],
    [20, false],
  ] as const) {
    const rig = await startRig([slow], { administration });
    t.after(() => rig.engines[0]!.kill());
    const asked = ask(rig.adminUrl, undefined, { path: "/sleep" }).catch(() => undefined);
    while (rig.engines[0]!.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    const closed = rig.gateway.close(graceMillis);
    if (answers) answer();
    assert.equal((await closed).requestsCut, answers ? 0 : 1);
    assert.equal((await asked)?.status, answers ? 200 : undefined);
    assert.equal(rig.gateway.inFlight(), 0);
  }
});
