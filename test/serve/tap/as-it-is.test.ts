import assert from "node:assert/strict";
import { request } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { servePlan } from "#cli/serve/serve-options.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { ask, CHAT } from "../../live/gateway/rig.ts";
import {
  chatAnswer,
  event,
  jsonReply,
  type Reply,
  roleChunk,
  STREAM_END,
  STREAM_HEAD,
  streamOf,
  StubEngine,
  tokenChunk,
} from "../../live/gateway/stub-engine.ts";
import { startedGateway } from "../started-gateway.ts";

/** A tap in front of a router that answers with bytes; its engine is not there. */
async function rig(t: TestContext, reply: Reply, set: readonly string[] = []) {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-tap-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const router = await new StubEngine(reply).start();
  const all = [
    `record.directory=${directory}`,
    `tap.router=${router.url}`,
    "listen.drainNoticeMillis=0",
    "listen.warmUpMillis=0",
    "listen.port=0",
    "listen.adminPort=0",
    ...set,
  ];
  const plan = servePlan({ set: all, endpoint: ["http://127.0.0.1:9"] }, {});
  const stack = await startedGateway(plan, {}, ["gateway", "endpoints"]);
  t.after(async () => {
    await stack.close();
    await router.kill();
  });
  return { url: stack.listening.url, router, stack };
}

const write =
  (text: string, then: "stays" | "ends" | "breaks" = "stays"): Reply =>
  (_request, socket) => {
    socket.write(text);
    if (then === "ends") socket.end();
    if (then === "breaks") setImmediate(() => socket.destroy());
  };

const headed = (status: string, headers: string, body: string): string =>
  `HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

const ERROR = { error: { message: "no", type: "server_error", param: null, code: 500 } };

/** What a router may answer, which is not for a tap to judge. */
const ANSWERS: Readonly<Record<string, Reply>> = {
  "an answer in one piece": write(jsonReply(200, chatAnswer("hello"))),
  "a stream": write(streamOf(5)),
  "500 with a body of its own": write(jsonReply(500, ERROR)),
  "503 with when to come back": write(headed("503 Busy", "retry-after: 7\r\ncontent-type: text/plain\r\n", "busy")),
  "429": write(jsonReply(429, ERROR, "retry-after: 3\r\n")),
  "404 of a web framework": write(jsonReply(404, { detail: "Not Found" })),
  "text where JSON was asked for": write(headed("200 OK", "content-type: text/plain\r\n", "hello")),
  "what is no JSON": write(jsonReply(200, "{")),
  nothing: write(headed("200 OK", "", "")),
  "a stream whose first event is an error": write(STREAM_HEAD + event(ERROR) + STREAM_END),
  "a stream that ends with an error": write(STREAM_HEAD + roleChunk() + tokenChunk("a") + event(ERROR) + STREAM_END),
  "a stream without its mark": write(STREAM_HEAD + roleChunk() + tokenChunk("a") + STREAM_END),
  "a stream that breaks": write(STREAM_HEAD + roleChunk() + tokenChunk("a"), "breaks"),
  "an answer that breaks": write(
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
    "breaks",
  ),
  "garbage in a stream": write(`${STREAM_HEAD}${event("{{{")}${event("[DONE]")}${STREAM_END}`),
  "headers of its own": write(
    jsonReply(200, chatAnswer("hello"), "x-router: 7\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n"),
  ),
};

/** Of the connection, of this hop, or of the moment. */
const OWN = new Set(["connection", "keep-alive", "transfer-encoding", "x-request-id", "date"]);

for (const [what, reply] of Object.entries(ANSWERS)) {
  test(`${what} comes back as the router sent it`, async (t) => {
    const { url, router } = await rig(t, reply);
    for (const stream of [false, true]) {
      const body = { ...CHAT, stream };
      const [direct, tapped] = [await ask(router.url, body), await ask(url, body)];
      assert.deepEqual([tapped.status, tapped.body, tapped.cut], [direct.status, direct.body, direct.cut]);
      const headers = Object.entries(direct.headers).filter(([name]) => !OWN.has(name));
      for (const [name, value] of headers) assert.deepEqual(tapped.headers[name], value, name);
    }
    const [, own] = router.requests;
    assert.deepEqual(JSON.parse(own!.body.toString()), { ...CHAT, stream: false });
  });
}

test("the router gets a body byte for byte, with its engines' own fields, keys and headers", async (t) => {
  const { url, router } = await rig(t, write(jsonReply(200, chatAnswer("hello"))));
  const body =
    '{ "model":"tiny",  "priority": 3, "kv_transfer_params":{"a":1},"messages":[{"role":"user","content":"\\u00e9"}] }';
  await ask(url, body, { headers: { authorization: "Bearer theirs", "x-data-parallel-rank": "1", "x-mine": "2" } });
  const [request] = router.requests;
  assert.equal(request!.body.toString(), body);
  const headers = new Map(request!.headers.map(([name, value]) => [name.toLowerCase(), value]));
  assert.equal(headers.get("authorization"), "Bearer theirs");
  assert.equal(headers.get("x-data-parallel-rank"), "1");
  assert.equal(headers.get("x-mine"), "2");
});

test("a client that leaves ends its request at the router", async (t) => {
  let left = false;
  const { url, router } = await rig(t, (_request, socket) => {
    socket.write(STREAM_HEAD + roleChunk() + tokenChunk("a"));
    socket.on("close", () => (left = true));
  });
  const { hostname: host, port } = new URL(url);
  const headers = { "content-type": "application/json" };
  const sent = request({ host, port, path: "/v1/chat/completions", method: "POST", headers });
  sent.on("error", () => {});
  sent.on("response", (response) => response.once("data", () => response.destroy()));
  sent.end(JSON.stringify({ ...CHAT, stream: true }));
  await router.asked(1);
  await until("the router's connection is closed", () => left);
});

test("with no engine that answers, requests go on, and what waits for a place stays within its room", async (t) => {
  const set = ["tap.holdBytesMax=65536", "tap.holdMillis=100"];
  const { url, stack } = await rig(t, write(jsonReply(200, chatAnswer("hello"))), set);
  for (let i = 0; i < 60; i += 6) {
    const got = await Promise.all(Array.from({ length: 6 }, () => ask(url, CHAT)));
    assert.ok(got.every(({ status }) => status === 200));
  }
  const { held, heldBytes } = stack.front.status!();
  assert.ok(heldBytes <= 65_536, `${held} inputs, ${heldBytes} bytes`);
  await until("none waits", () => stack.front.status!().held === 0);
  assert.equal(stack.front.status!().places["none"], 60);
});
