import { AS_ASKED } from "#live/routing/ask.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { test, type TestContext } from "node:test";
import { loadConfig } from "#config/load.ts";
import { nowMicros } from "#live/base/clock.ts";
import { ModelRewrites } from "#live/discovery/workload-rules.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import { BUFFERED, DUPLEX, headerOf, metadataOf, NONE, pieceOf, ProxyRig, STREAMED, TLS } from "./proxy.ts";
import { EXTERNAL_PROCESSOR, serviceOf } from "./protocol.ts";
import type { ProcessingRequest } from "./proxy-messages.ts";

const DESTINATION = "x-gateway-destination-endpoint";
const chat = (more: object = {}): string =>
  JSON.stringify({ model: "m", messages: [{ role: "user", content: "one two three four five" }], ...more });
const ANSWER = JSON.stringify({
  choices: [{ index: 0, message: { content: "x" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 5, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 4 } },
});
const event = (content: string): string =>
  `data: {"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}\n\n`;

test("the destination is one value in header and metadata, before any byte of the body goes on", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  const [head, piece] = await exchange.nexts(2);
  assert.equal(headerOf(head!, DESTINATION), "10.0.0.1:8000");
  assert.equal(metadataOf(head!), "10.0.0.1:8000");
  assert.equal(head!.requestHeaders?.response?.clearRouteCache, true);
  assert.deepEqual(pieceOf(piece!), { body: chat(), endOfStream: true });
});

test("full duplex: nothing is answered before the body is whole, and it goes on byte for byte in pieces below 64 KiB", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  const body = chat({ messages: [{ role: "user", content: "word ".repeat(40_000) }] });
  exchange.head();
  for (let at = 0; at < body.length; at += 50_000)
    exchange.body(body.slice(at, at + 50_000), at + 50_000 >= body.length);
  const head = await exchange.next();
  assert.equal(metadataOf(head), "10.0.0.1:8000");
  let got = "";
  for (let ends = false; !ends;) {
    const piece = pieceOf(await exchange.next());
    assert.ok(piece.body.length <= 65_536);
    got += piece.body;
    ends = piece.endOfStream;
  }
  assert.equal(got, body);
});

test("full duplex: where trailers end the request, they follow the last piece", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat(), false);
  exchange.send({ requestTrailers: {} });
  const [head, piece, trailers] = await exchange.nexts(3);
  assert.equal(metadataOf(head!), "10.0.0.1:8000");
  assert.deepEqual(pieceOf(piece!), { body: chat(), endOfStream: false });
  assert.ok(trailers!.requestTrailers);
});

test("full duplex: a last piece that comes twice, as some versions of Envoy send it, changes nothing", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  await exchange.nexts(2);
  exchange.body(chat());
  exchange.response(200);
  assert.ok((await exchange.next()).responseHeaders);
  assert.equal(proxy.rig.gateway.counters.pickerRepeated, 1);
  assert.equal(proxy.rig.decisions.length, 1);
});

test("buffered: the head goes on at once, the answer to the body names the destination and leaves the body alone", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head({ modes: [BUFFERED, NONE] });
  assert.equal(headerOf(await exchange.next(), DESTINATION), undefined);
  exchange.body(chat());
  const reply = await exchange.next();
  assert.ok(reply.requestBody);
  assert.equal(headerOf(reply, DESTINATION), "10.0.0.1:8000");
  assert.equal(metadataOf(reply), "10.0.0.1:8000");
  assert.equal(reply.requestBody.response?.bodyMutation, undefined);
});

test("what engines arrange among themselves is taken out of head and body, in every mode that shows them", async (t) => {
  const proxy = await ProxyRig.start(t);
  const headers = { "x-vllm-priority": "-9", "x-prefiller-host-port": "10.9.9.9:1", "x-other": "1" };
  const sent = chat({ kv_transfer_params: { remote_host: "10.9.9.9" }, vllm_xargs: { priority: 1, mine: 2 } });
  const left = chat({ vllm_xargs: { mine: 2 } });
  const removed = ["x-vllm-priority", "x-prefiller-host-port"];

  const duplex = proxy.open();
  duplex.head({ headers });
  duplex.body(sent);
  const [head, piece] = await duplex.nexts(2);
  assert.deepEqual(head!.requestHeaders?.response?.headerMutation?.removeHeaders, removed);
  assert.equal(headerOf(head!, "content-length"), String(left.length));
  assert.deepEqual(pieceOf(piece!), { body: left, endOfStream: true });

  const buffered = proxy.open();
  buffered.head({ headers, modes: [BUFFERED, NONE] });
  await buffered.next();
  buffered.body(sent);
  const reply = (await buffered.next()).requestBody?.response;
  assert.deepEqual(reply?.headerMutation?.removeHeaders, removed);
  assert.equal(String(reply?.bodyMutation?.body), left);

  const unread = proxy.open();
  unread.head({ headers, modes: [NONE, NONE] });
  assert.deepEqual((await unread.next()).requestHeaders?.response?.headerMutation?.removeHeaders, removed);
  const counted = { kv_transfer_params: 2, priority: 2, "x-vllm-priority": 3, "x-prefiller-host-port": 3 };
  assert.deepEqual({ ...proxy.rig.gateway.counters.stripped }, counted);
});

test("what changes engines is refused: one alone would get it, from whoever may ask for inference", async (t) => {
  const proxy = await ProxyRig.start(t, {}, { administration: ["/v1/of_this_deployment"] });
  for (const path of [
    "/v1/load_lora_adapter",
    "/sleep?level=1",
    "/collective_rpc/",
    "//reset_prefix_cache",
    "/w%61ke_up",
    "/x/../pause",
    "/v1/of_this_deployment",
  ]) {
    const exchange = proxy.open();
    exchange.head({ path, endOfStream: path === "/sleep?level=1" });
    const { immediateResponse } = await exchange.next();
    assert.equal(immediateResponse?.status?.code, 403, path);
    assert.match(String(immediateResponse?.body), /PermissionDeniedError.*|listen\.adminPort/);
  }
  assert.equal(proxy.rig.decisions.length, 0);
  assert.equal(proxy.rig.gateway.counters.refused["forbidden"], 7);
});

test(
  "beyond the limit of requests in flight each gets 503 and a reason, and none the protocol's own refusal",
  { timeout: 30_000 },
  async (t) => {
    const proxy = await ProxyRig.start(t, { limits: { requestsInFlightMax: 3 } });
    const exchanges = Array.from({ length: 12 }, () => proxy.open());
    for (const exchange of exchanges) {
      exchange.head();
      exchange.body(chat());
    }
    const answers = await Promise.all(exchanges.map((exchange) => exchange.next()));
    const refused = answers.flatMap(({ immediateResponse }) =>
      immediateResponse === undefined ? [] : [immediateResponse],
    );
    assert.deepEqual([answers.length - refused.length, refused.length], [3, 9]);
    for (const { status, body } of refused) {
      assert.equal(status?.code, 503);
      assert.match(String(body), /as many requests in flight as it may/);
    }
    assert.equal(proxy.rig.gateway.counters.refused["full"], 9);
  },
);

test("without a body, or where the proxy sends none in time, the headers alone decide", async (t) => {
  const proxy = await ProxyRig.start(t);
  for (const options of [
    { path: "/v1/models", method: "GET", endOfStream: true },
    { modes: [NONE, NONE] as const },
    { modes: [STREAMED, STREAMED] as const },
    { path: "/custom/thing" },
  ]) {
    const exchange = proxy.open();
    exchange.head(options);
    const reply = await exchange.next();
    assert.match(headerOf(reply, DESTINATION) ?? "", /:8000$/);
    assert.equal(headerOf(reply, DESTINATION), metadataOf(reply));
    exchange.cancel();
  }
});

test("what the request is promised is read of its headers and its class, with a body or without", async (t) => {
  const slo = { classes: { interactive: { tpotMicros: 40_000 } }, tenants: {}, models: { m: "interactive" } };
  const proxy = await ProxyRig.start(t, { slo });
  const stated = { "x-gnomon-slo-ttft-ms": "250" };
  for (const [headers, body, promised] of [
    [stated, false, { ttftMicros: 250_000, tpotMicros: 40_000 }],
    [stated, true, { ttftMicros: 250_000, tpotMicros: 40_000 }],
    [{}, false, { tpotMicros: 40_000 }],
  ] as const) {
    const exchange = proxy.open();
    exchange.head({ headers, ...(!body && { modes: [NONE, NONE] }) });
    if (body) exchange.body(chat());
    await exchange.next();
    const last = proxy.rig.inputs.findLast(({ kind }) => kind === "request-arrived");
    assert.ok(last?.kind === "request-arrived");
    assert.deepEqual([last.request.slo, last.request.sloClass], [promised, "interactive"]);
    exchange.cancel();
  }
  const wrong = proxy.open();
  wrong.head({ headers: { "x-gnomon-slo-ttft-ms": "soon" }, modes: [NONE, NONE] });
  assert.equal((await wrong.next()).immediateResponse?.status.code, 400);
});

test("a body on an unknown path goes on as it comes", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head({ path: "/custom/thing" });
  await exchange.next();
  exchange.body("first", false);
  exchange.body("last", true);
  const [first, last] = await exchange.nexts(2);
  assert.deepEqual(
    [pieceOf(first!), pieceOf(last!)],
    [
      { body: "first", endOfStream: false },
      { body: "last", endOfStream: true },
    ],
  );
});

test("one address where nothing else is configured, which every proxy can use", async (t) => {
  const { picker } = loadConfig({ file: undefined, environment: {}, overrides: [] });
  const proxy = await ProxyRig.start(t, {}, { fallbacksMax: picker.fallbacks });
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  const reply = await exchange.next();
  assert.equal(metadataOf(reply), "10.0.0.1:8000");
  assert.equal(headerOf(reply, "x-gateway-destination-endpoint"), "10.0.0.1:8000");
});

test("fallbacks follow the chosen endpoint in order of their totals, as many as configured, IPv6 in brackets", async (t) => {
  const proxy = await ProxyRig.start(t, {}, { fallbacksMax: 2 });
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  assert.equal(metadataOf(await exchange.next()), "10.0.0.1:8000,10.0.0.2:8000,[fd00::3]:8000");
});

test("only endpoints of the subset hint are picked, fallbacks included, as a list and as a text", async (t) => {
  const proxy = await ProxyRig.start(t, {}, { fallbacksMax: 2 });
  for (const subset of [["10.0.0.2:8000", "[fd00::3]:8000"], "10.0.0.2:8000, [fd00::3]:8000"]) {
    const exchange = proxy.open();
    exchange.head({ subset });
    exchange.body(chat());
    assert.equal(metadataOf(await exchange.next()), "10.0.0.2:8000,[fd00::3]:8000");
    exchange.cancel();
    await until("over", () => proxy.rig.router.inFlight === 0);
    const withoutBody = proxy.open();
    withoutBody.head({ subset, modes: [NONE, NONE] });
    assert.equal(metadataOf(await withoutBody.next()), "10.0.0.2:8000,[fd00::3]:8000");
    withoutBody.cancel();
    await until("over", () => proxy.rig.router.inFlight === 0);
  }
});

test("an empty subset, or one that nobody of is eligible, is answered with 503", async (t) => {
  const proxy = await ProxyRig.start(t);
  for (const subset of [[], ["10.9.9.9:8000"]]) {
    const exchange = proxy.open();
    exchange.head({ subset });
    exchange.body(chat());
    const { immediateResponse } = await exchange.next();
    assert.equal(immediateResponse?.status.code, 503);
    assert.match(immediateResponse.body.toString(), /"code":503/);
  }
});

test("no ready endpoint is 503; a guard that refuses all is 429; both as OpenAI's errors with a reason", async (t) => {
  const none = await ProxyRig.start(t, {}, {}, []);
  const nobody = none.open();
  nobody.head();
  nobody.body(chat());
  const refused = await nobody.next();
  assert.equal(refused.immediateResponse?.status.code, 503);
  assert.equal(headerOf(refused, "x-gnomon-reason"), "no-endpoint");

  const full = await ProxyRig.start(t);
  full.rig.intake.accept({
    kind: "profile-changed",
    at: nowMicros(),
    name: "default",
    profile: {
      filters: [{ plugin: "concurrency-saturation", parameters: { requestsMax: 1 } }],
      scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
      picker: { plugin: "max-score", parameters: {} },
    },
  });
  for (let i = 0; i < 3; i++) {
    const exchange = full.open();
    exchange.head();
    exchange.body(chat());
    await exchange.next();
  }
  const dropped = full.open();
  dropped.head();
  dropped.body(chat());
  const reply = await dropped.next();
  assert.equal(reply.immediateResponse?.status.code, 429);
  assert.equal(headerOf(reply, "retry-after"), "1");
  assert.match(reply.immediateResponse.body.toString(), /"type":"RateLimitError"/);
});

test("what the gateway refuses the picker refuses in the same words", async (t) => {
  const proxy = await ProxyRig.start(t, { limits: { bodyBytesMax: 2_000 } });
  const cases: [body: string, status: number][] = [
    ["{", 400],
    ["[]", 400],
    [chat({ model: "other" }), 404],
    [chat({ messages: [{ role: "user", content: "w".repeat(3_000) }] }), 413],
  ];
  for (const [body, status] of cases) {
    const exchange = proxy.open();
    exchange.head();
    exchange.body(body);
    const { immediateResponse } = await exchange.next();
    assert.equal(immediateResponse?.status.code, status);
    const direct = await fetch(`${proxy.rig.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    assert.equal(direct.status, status);
    if (status !== 413) assert.equal(immediateResponse.body.toString(), await direct.text());
    const [picked, asked] = proxy.rig.summaries.slice(-2);
    assert.deepEqual([picked!.status, picked!.outcome], [status, "refused"]);
    assert.deepEqual([asked!.status, asked!.outcome], [status, "refused"]);
  }
  const declared = proxy.open();
  declared.head({ headers: { "content-length": "5000" } });
  assert.equal((await declared.next()).immediateResponse?.status.code, 413);
  assert.equal(proxy.rig.router.openCharges, 0);
});

test("the router gets the same request as through the gateway", async (t) => {
  const proxy = await ProxyRig.start(t);
  const body = chat({ session_id: "s", max_tokens: 9, n: 2, priority: 3, cache_salt: "x" });
  const headers = { "x-tenant-id": "t", authorization: "Bearer k", "x-request-id": "r" };
  const exchange = proxy.open();
  exchange.head({ headers });
  exchange.body(body);
  await exchange.next();
  const json = { "content-type": "application/json" };
  const init = { method: "POST", headers: { ...headers, ...json }, body };
  await (await fetch(`${proxy.rig.url}/v1/chat/completions`, { ...init, signal: AbortSignal.timeout(5_000) })).text();
  const [picked, direct] = proxy.rig.inputs.flatMap((input) =>
    input.kind === "request-arrived" ? [{ ...input.request, id: "" }] : [],
  );
  // A proxy carries it to one endpoint; the gateway could divide it.
  assert.deepEqual(picked, { ...direct, undivided: true });
});

test("a response that streams: first token, progress, usage and end reach the router, every byte the client", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat({ stream: true, stream_options: { include_usage: true } }));
  await exchange.nexts(2);
  exchange.response(200, "text/event-stream", "10.0.0.1:8000");
  const head = await exchange.next();
  assert.equal(headerOf(head, "x-gnomon-endpoint"), "a");
  const sent = [
    event("a").slice(0, 20),
    event("a").slice(20) + event("b"),
    'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}\n\n',
    "data: [DONE]\n\n",
  ];
  for (const [i, text] of sent.entries()) {
    exchange.answer(text, i === sent.length - 1);
    assert.deepEqual(pieceOf(await exchange.next()), { body: text, endOfStream: i === sent.length - 1 });
  }
  await exchange.end();
  assert.deepEqual(proxy.rig.kinds(), ["request-arrived", "first-token", "request-finished"]);
  const { at: _, requestId: __, ...end } = proxy.rig.inputs.at(-1) as unknown as Record<string, unknown>;
  assert.deepEqual(end, { kind: "request-finished", outcome: "ok", promptTokens: 5, cachedTokens: 4, outputTokens: 2 });
  assert.equal(proxy.rig.summaries[0]!.status, 200);
  assert.ok(proxy.rig.summaries[0]!.ttftMicros !== undefined);
});

test("tokens of answers side by side come as often as those of one", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat({ n: 2, stream: true, stream_options: { include_usage: true } }));
  await exchange.nexts(2);
  exchange.response(200, "text/event-stream", "10.0.0.1:8000");
  await exchange.next();
  exchange.answer(event("a"), false);
  await exchange.next();
  const since = nowMicros();
  while (nowMicros() - since < 40_000) await new Promise((resolve) => setTimeout(resolve, 10));
  exchange.answer('data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\ndata: [DONE]\n\n', true);
  await exchange.next();
  await exchange.end();
  assert.ok(proxy.rig.summaries[0]!.tpotMicros! >= 40_000 / 2);
});

test("a response in one piece counts by its usage; one that is broken off is the client's leaving", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head({ modes: [BUFFERED, STREAMED] });
  await exchange.next();
  exchange.body(chat());
  await exchange.next();
  exchange.response(200);
  await exchange.next();
  exchange.answer(ANSWER, true);
  assert.equal((await exchange.next()).responseBody?.response?.bodyMutation, undefined);
  await exchange.end();
  assert.deepEqual(
    proxy.rig.summaries.map(({ outcome, outputTokens, cachedTokens }) => ({ outcome, outputTokens, cachedTokens })),
    [{ outcome: "ok", outputTokens: 7, cachedTokens: 4 }],
  );
  const left = proxy.open();
  left.head();
  left.body(chat());
  await left.nexts(2);
  left.cancel();
  await until("aborted", () => proxy.rig.summaries.length === 2);
  assert.equal(proxy.rig.summaries[1]!.outcome, "aborted");
});

test("an engine that fails, ends its stream early or reports an error in it counts against it", async (t) => {
  const cases: [status: number, type: string, body: string, fault: string | undefined][] = [
    [503, "application/json", '{"error":{}}', "status"],
    [200, "text/event-stream", event("a"), undefined],
    [200, "text/event-stream", 'data: {"error":{"code":500}}\n\n', "status"],
    [200, "application/json", '{"choices":[{"index":0,"finish_reason":"abort"}]}', "draining"],
  ];
  for (const [status, type, body, fault] of cases) {
    const proxy = await ProxyRig.start(t);
    const exchange = proxy.open();
    exchange.head();
    exchange.body(chat({ stream: true }));
    await exchange.nexts(2);
    exchange.response(status, type);
    await exchange.next();
    exchange.answer(body, true);
    await exchange.next();
    const failed = proxy.rig.inputs.flatMap((input) => (input.kind === "attempt-failed" ? [input.fault] : []));
    assert.deepEqual(failed, fault === undefined ? [] : [fault]);
    assert.equal(proxy.rig.summaries[0]!.outcome, "failed");
  }
});

test("where no bytes of responses come, head and the stream's end are the response, and nothing is known of its tokens", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head({ modes: [DUPLEX, NONE] });
  exchange.body(chat({ stream: true }));
  await exchange.nexts(2);
  exchange.response(200, "text/event-stream");
  await exchange.next();
  assert.equal(proxy.rig.router.openCharges, 1);
  await exchange.end();
  assert.deepEqual(proxy.rig.kinds(), ["request-arrived", "request-finished"]);
  assert.equal(proxy.rig.summaries[0]!.outcome, "ok");
});

test("an endpoint that the proxy served from instead gets charge and blocks, and the chosen one a failure", async (t) => {
  const proxy = await ProxyRig.start(t, {}, { fallbacksMax: 1 });
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  assert.equal(metadataOf(await exchange.next()), "10.0.0.1:8000,10.0.0.2:8000");
  await exchange.next();
  exchange.response(200, "application/json", "10.0.0.2:8000");
  assert.equal(headerOf(await exchange.next(), "x-gnomon-endpoint"), "b");
  assert.deepEqual(proxy.rig.kinds(), ["request-arrived", "attempt-failed", "request-moved"]);
  const inFlight = proxy.rig.router.endpointRows(1e12).map(({ requestsInFlight }) => requestsInFlight);
  assert.deepEqual(inFlight, [0, 1, 0]);
  exchange.answer(ANSWER, true);
  await exchange.next();
  assert.equal(proxy.rig.gateway.counters.pickerMoved, 1);
  assert.deepEqual([proxy.rig.summaries[0]!.endpoint, proxy.rig.summaries[0]!.attempts], ["b", 2]);
});

test("a picker that shuts down lets what is under way end, and places what was opened before its notice was read", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  await exchange.nexts(2);
  const late = proxy.open();
  await until("open", () => proxy.rig.gateway.counters.pickerStreams === 2);
  proxy.rig.gateway.shared.phase = "draining";
  late.head();
  late.body(chat());
  const [head] = await late.nexts(2);
  assert.equal(head!.immediateResponse, undefined);
  exchange.response(200);
  await exchange.next();
  exchange.answer(ANSWER, true);
  await exchange.next();
  assert.equal(proxy.rig.summaries.at(-1)!.outcome, "ok");
  proxy.rig.gateway.shared.phase = "serving";
});

for (const [name, tls] of [
  ["plain text", undefined],
  ["TLS", TLS],
] as const) {
  const limit = { timeout: 60_000 };
  test(`${name}: a picker that ends refuses no stream that was opened before its notice was read`, limit, async (t) => {
    const proxy = await ProxyRig.start(t, {}, { tls });
    const session = await connected(t, proxy.picker.port, tls !== undefined);
    const ended = proxy.picker.stop(60_000);
    // In the turn in which the picker has sent its notice, before this side has read it.
    const streams = Array.from({ length: 50 }, () => session.request(PROCESS));
    const codes = await Promise.all(
      streams.map(async (stream) => {
        stream.on("error", () => {});
        stream.resume().end();
        await new Promise((resolve) => stream.on("close", resolve));
        return stream.rstCode;
      }),
    );
    assert.deepEqual(new Set(codes), new Set([constants.NGHTTP2_NO_ERROR]));
    session.destroy();
    await ended;
  });

  test(`${name}: a notice while the picker has more to write than a socket takes cuts nothing`, limit, async (t) => {
    const proxy = await ProxyRig.start(t, { limits: { bodyBytesMax: 2 * LARGE } }, { tls });
    const session = await connected(t, proxy.picker.port, tls !== undefined);
    const stream = session.request(PROCESS);
    const headers = [header(":path", "/v1/chat/completions"), header("content-type", "application/json")];
    stream.write(framed({ requestHeaders: { headers: { headers } } }));
    stream.write(framed({ requestBody: { body: Buffer.from(chat({ user: "u".repeat(LARGE) })), endOfStream: true } }));
    await until("the decision", () => proxy.rig.decisions.length === 1);
    const ended = proxy.picker.stop(60_000);
    let got = 0;
    for await (const piece of stream) {
      got += (piece as Buffer).length;
      if (got > LARGE && !stream.writableEnded) stream.end();
    }
    assert.ok(got > LARGE);
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
    session.destroy();
    await ended;
  });
}

const LARGE = 4_000_000;
const PROCESS = {
  ":method": "POST",
  ":path": `/${EXTERNAL_PROCESSOR}/Process`,
  "content-type": "application/grpc",
  te: "trailers",
};
const WINDOW = 2 ** 31 - 1;

async function connected(t: TestContext, port: number, isSecure: boolean): Promise<ClientHttp2Session> {
  const options = { rejectUnauthorized: false, settings: { initialWindowSize: WINDOW } };
  const session = connect(`${isSecure ? "https" : "http"}://127.0.0.1:${port}`, options).on("error", () => {});
  t.after(() => session.destroy());
  await once(session, "connect");
  session.setLocalWindowSize(WINDOW);
  await new Promise<void>((resolve) => session.ping(() => resolve()));
  // As Envoy does: streams that are open go on after a notice, and it is not answered by one.
  session.close = () => {};
  return session;
}

const header = (key: string, value: string) => ({ key, rawValue: Buffer.from(value) });

function framed(message: ProcessingRequest): Buffer {
  const bytes = serviceOf("external_processor.proto", EXTERNAL_PROCESSOR)["Process"]!.requestSerialize(message);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

test("a proxy that resets every stream, as Envoy ends them, keeps its connection and what is open on it", async (t) => {
  const proxy = await ProxyRig.start(t);
  const waits = proxy.open();
  waits.head();
  const session = await connected(t, proxy.picker.port, false);
  const open = () => session.request(PROCESS).on("error", () => {});
  const first = open();
  for (let i = 0; i < RESETS; i++) open().close(constants.NGHTTP2_CANCEL);
  await new Promise<void>((resolve, reject) => {
    session.ping((error) => (error === null ? resolve() : reject(error)));
  });
  assert.ok(!first.closed);
  waits.body(chat());
  assert.equal(headerOf(await waits.next(), DESTINATION), "10.0.0.1:8000");
});

/** More than Node's HTTP/2 takes at once unless it is given another limit. */
const RESETS = 1_500;

test("a model without a name is the only one, written into the body with its new length", async (t) => {
  const proxy = await ProxyRig.start(t);
  const exchange = proxy.open();
  const nameless = '{"messages":[{"role":"user","content":"hi"}]}';
  exchange.head({ headers: { "content-length": String(nameless.length) } });
  exchange.body(nameless);
  const [head, piece] = await exchange.nexts(2);
  const sent = pieceOf(piece!).body;
  assert.deepEqual(JSON.parse(sent), { messages: [{ role: "user", content: "hi" }], model: "m" });
  assert.equal(headerOf(head!, "content-length"), String(sent.length));
});

const POOL = { name: "p", group: "inference.networking.k8s.io" };
const RENAMED = new ModelRewrites(
  [
    {
      spec: { poolRef: POOL, rules: [{ matches: [{ model: { value: "asked" } }], targets: [{ modelRewrite: "m" }] }] },
    },
  ],
  POOL,
);

for (const [name, modes] of [
  ["full duplex", undefined],
  ["buffered, response streamed", [BUFFERED, STREAMED]],
] as const) {
  test(`${name}: a rewritten model's response names the one that was asked for, wherever its pieces are cut`, async (t) => {
    const proxy = await ProxyRig.start(t, { inForce: { ...AS_ASKED, rewrites: RENAMED } });
    const exchange = proxy.open();
    exchange.head(modes && { modes });
    if (modes !== undefined) await exchange.next();
    exchange.body(chat({ model: "asked", stream: true }));
    const [asked] = modes === undefined ? (await exchange.nexts(2)).slice(1) : [await exchange.next()];
    const sent = asked!.requestBody?.response?.bodyMutation;
    const body = sent?.streamedResponse?.body ?? sent?.body;
    assert.equal((JSON.parse(String(body)) as { model: string }).model, "m");
    exchange.response(200, "text/event-stream");
    const head = await exchange.next();
    assert.deepEqual(head.responseHeaders?.response?.headerMutation?.removeHeaders, ["content-length"]);
    const one = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}\n\n`;
    const text = `${one}${one}data: [DONE]\n\n`;
    let got = "";
    for (let at = 0; at < text.length; at += 19) {
      exchange.answer(text.slice(at, at + 19), at + 19 >= text.length);
      const mutation = (await exchange.next()).responseBody?.response?.bodyMutation;
      got += String(mutation?.streamedResponse?.body ?? mutation?.body ?? "");
    }
    assert.equal(got, text.replaceAll('"m"', '"asked"'));
  });
}

test("the picker leaves a response alone where no model was rewritten", async (t) => {
  const proxy = await ProxyRig.start(t, { inForce: { ...AS_ASKED, rewrites: RENAMED } });
  const exchange = proxy.open();
  exchange.head();
  exchange.body(chat());
  await exchange.nexts(2);
  exchange.response(200);
  assert.equal((await exchange.next()).responseHeaders?.response?.headerMutation?.removeHeaders?.length ?? 0, 0);
});

test("buffered: a body in one message that is too large is 413, and one that there is no room for 429", async (t) => {
  const MESSAGE_BYTES = 256 * 1024;
  const limits = { bodyBytesMax: 100_000, bodyBytesInFlightMax: 300_000 };
  const proxy = await ProxyRig.start(t, { limits });
  const answered = async (bytes: number): Promise<number | undefined> => {
    const exchange = proxy.open();
    exchange.head({ modes: [BUFFERED, NONE] });
    await exchange.next();
    exchange.body("x".repeat(bytes));
    const reply = await exchange.next();
    exchange.cancel();
    return reply.immediateResponse?.status.code;
  };
  assert.equal(await answered(100_001), 413);
  assert.equal(await answered(100_000 + MESSAGE_BYTES), 413);
  assert.equal(await answered(340_000), 429);
  const { counters, shared } = proxy.rig.gateway;
  await until("given back", () => shared.bodies.bytes === 0);
  assert.deepEqual(counters.pickerFailures, { "message-too-large": 1, "no-room": 1 });
});

test("full duplex: a body that its proxy does not read back counts as held until it does, or leaves", async (t) => {
  const proxy = await ProxyRig.start(t);
  const { bodies } = proxy.rig.gateway.shared;
  const session = connect(`http://127.0.0.1:${proxy.picker.port}`, { settings: { initialWindowSize: 0 } });
  t.after(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": `/${EXTERNAL_PROCESSOR}/Process`,
    "content-type": "application/grpc",
  });
  stream.on("error", () => {});
  const { requestSerialize } = serviceOf("external_processor.proto", EXTERNAL_PROCESSOR)["Process"]!;
  const write = (message: ProcessingRequest): void => {
    const bytes = requestSerialize(message);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(bytes.length, 1);
    stream.write(Buffer.concat([head, bytes]));
  };
  const given = { ":method": "POST", ":path": "/v1/chat/completions", "content-type": "application/json" };
  const headers = Object.entries(given).map(([key, value]) => ({ key, rawValue: Buffer.from(value) }));
  write({
    requestHeaders: { headers: { headers }, endOfStream: false },
    protocolConfig: { requestBodyMode: DUPLEX, responseBodyMode: DUPLEX },
  });
  const body = Buffer.from(chat({ messages: [{ role: "user", content: "word ".repeat(8_000) }] }));
  write({ requestBody: { body, endOfStream: true } });
  await once(stream, "response");
  assert.equal(bodies.bytes, body.length);
  stream.close(constants.NGHTTP2_CANCEL);
  await until("given back", () => bodies.bytes === 0);
});
