import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import { nowMicros } from "#live/base/clock.ts";
import { clientTimeout } from "#live/inference/inference-door.ts";
import { RequestHeaders } from "#live/http/headers.ts";
import { type ModelAnswer, eventsOf } from "../continuation/model-engine.ts";
import { holdClock } from "./held-clock.ts";
import { CHAT, LOWEST_ID_FIRST, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, chatAnswer, jsonReply, roleChunk, tokenChunk } from "./stub-engine.ts";

const timeoutHeaders = ["x-gnomon-timeout-ms", "x-envoy-upstream-rq-timeout-ms", "grpc-timeout"];
const silent: Reply = () => {};
const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("ok")));
const begun: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
const STREAM = { ...CHAT, stream: true };

const timeoutOf = (headers: Record<string, string>) =>
  clientTimeout(new RequestHeaders(Object.entries(headers).flat()), timeoutHeaders);

test("a client's timeout is read as its header's peers write it, the first that is there", () => {
  assert.equal(timeoutOf({}), undefined);
  assert.equal(timeoutOf({ "X-Gnomon-Timeout-Ms": "1500" }), 1_500_000);
  assert.equal(timeoutOf({ "x-envoy-upstream-rq-timeout-ms": " 20 " }), 20_000);
  assert.equal(timeoutOf({ "grpc-timeout": "1M", "x-gnomon-timeout-ms": "7" }), 7_000);
  assert.equal(timeoutOf({ "x-gnomon-timeout-ms": "0" }), undefined);
  const grpc = { "2H": 7.2e9, "10S": 1e7, "5m": 5_000, "9u": 9, "1n": 1, "0S": undefined };
  for (const [text, micros] of Object.entries(grpc)) assert.equal(timeoutOf({ "grpc-timeout": text }), micros, text);
});

test("whatever else is in the header is refused with its name and what is expected, and never throws", () => {
  for (const text of ["-1", "1.5", "1e3", "5s", "Infinity", "1234567890123", "ten"]) {
    assert.match(
      String(timeoutOf({ "x-gnomon-timeout-ms": text })),
      /^x-gnomon-timeout-ms: expected milliseconds/,
      text,
    );
  }
  for (const text of ["10", "123456789S", "10s", "S"]) assert.match(String(timeoutOf({ "grpc-timeout": text })), /10S/);
  fc.assert(
    fc.property(fc.string(), fc.constantFrom(...timeoutHeaders), (text, name) => {
      const timeout = timeoutOf({ [name]: text });
      assert.ok(timeout === undefined || typeof timeout === "string" || (Number.isSafeInteger(timeout) && timeout > 0));
    }),
  );
});

test("a deadline that passes closes the engine's connection and answers 504 in the API's own form, counted", async (t) => {
  const clock = holdClock(t);
  for (const body of [CHAT, STREAM]) {
    const rig = await startRig([silent, ok], { timeoutHeaders });
    const closed = ask(rig.url, body, { headers: { "x-gnomon-timeout-ms": "300" } });
    await rig.engines[0]!.asked(1);
    clock.advance(301);
    const got = await closed;
    assert.deepEqual([got.status, errorOf(got).type], [504, "GatewayTimeoutError"]);
    while (rig.engines[0]!.sockets.size > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(rig.engines[1]!.requests.length, 0, "it is not tried elsewhere");
    assert.deepEqual(rig.gateway.counters.deadlines, { sent: 1 });
    assert.equal(rig.summaries[0]!.outcome, "timeout");
    const arrived = rig.inputs.find((input) => input.kind === "request-arrived")!;
    assert.equal(arrived.request.timeoutMicros, 300_000);
    await rig.close();
  }
});

test("a stream that began ends with an error event, and never looks whole", async (t) => {
  const clock = holdClock(t);
  const rig = await startRig([begun], { timeoutHeaders });
  t.after(() => rig.close());
  const headers = { "content-type": "application/json", "grpc-timeout": "1M" };
  const answer = await fetch(`${rig.url}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify(STREAM),
  });
  let body = "";
  for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
    body += piece;
    // The client has read it, so the stream has begun: only now is its minute over.
    if (body.includes("one")) clock.advance(60_001);
  }
  assert.match(body, /one.*"error"/s);
  assert.doesNotMatch(body, /\[DONE\]/);
  assert.deepEqual(rig.gateway.counters.deadlines, { sent: 1 });
});

test("time in the queue counts: the request leaves the queue with 504, and the next in it is served", async (t) => {
  let answer = (): void => {};
  const held: Reply = (request, s) => {
    if (request.index > 0) return void s.write(jsonReply(200, chatAnswer("next")));
    answer = () => void s.write(jsonReply(200, chatAnswer("first")));
  };
  const rig = await startRig([held], { timeoutHeaders });
  t.after(() => rig.close());
  const queue = {
    requestsMax: 8,
    promptTokensMax: 1_000_000,
    ttlMicros: 60_000_000,
    waitAt: 1,
    fairness: "least-served",
    inputWeight: 1,
    outputWeight: 2,
    shares: {},
    emptyPool: { requestsMax: 8, ttlMicros: 60_000_000, models: [] },
  } as const;
  const admission = { ...ADMIT_ALL, saturation: { ...ADMIT_ALL.saturation, requestsMax: 1 }, queue };
  const policy = { profiles: { default: LOWEST_ID_FIRST }, defaultProfile: "default", admission };
  rig.intake.accept({ kind: "policy-changed", at: nowMicros(), version: 2, source: "admin", ...policy });
  const clock = holdClock(t);
  const first = ask(rig.url, CHAT);
  await rig.engines[0]!.asked(1);
  const impatient = ask(rig.url, CHAT, { headers: { "x-gnomon-timeout-ms": "40" } });
  const next = ask(rig.url, CHAT);
  while (rig.router.admission.waiting < 2) await clock.swept();
  clock.advance(41);
  const got = await impatient;
  assert.deepEqual([got.status, errorOf(got).code], [504, 504]);
  assert.deepEqual(rig.gateway.counters.deadlines, { deciding: 1 });
  answer();
  assert.match((await first).body, /first/);
  assert.match((await next).body, /next/);
  assert.equal(rig.router.admission.waiting, 0);
});

test("a client may not wait longer than the gateway's own limit, and one that states nothing waits for that", async (t) => {
  const clock = holdClock(t);
  const rig = await startRig([silent], { timeoutHeaders, limits: { totalMillisMax: 5_000 } });
  const asked = [ask(rig.url, CHAT, { headers: { "x-gnomon-timeout-ms": "3600000" } }), ask(rig.url, CHAT)];
  await rig.engines[0]!.asked(2);
  clock.advance(5_001);
  const got = await Promise.all(asked);
  assert.deepEqual(
    got.map(({ status }) => status),
    [504, 504],
  );
  assert.deepEqual(rig.gateway.counters.deadlines, {});
  await rig.close();
});

test("a header that cannot be read is a bad request, and reaches no engine; where none is configured it is no header of ours", async () => {
  const rig = await startRig([ok], { timeoutHeaders });
  const got = await ask(rig.url, CHAT, { headers: { "x-gnomon-timeout-ms": "soon" } });
  assert.equal(got.status, 400);
  assert.match(errorOf(got).message, /^x-gnomon-timeout-ms: expected milliseconds/);
  assert.equal(rig.engines[0]!.requests.length, 0);
  await rig.close();
  const without = await startRig([ok]);
  assert.equal((await ask(without.url, CHAT, { headers: { "x-gnomon-timeout-ms": "soon" } })).status, 200);
  await without.close();
});

test("a deadline that passes between two attempts ends the stream, whatever its next one waits for", async (t) => {
  const clock = holdClock(t);
  // Of two tokens in one event it has to be asked whether all their text went out.
  const tokens = ["one", " two", " three", " four", ""].map((text) => Buffer.from(text));
  const answer: ModelAnswer = { promptTokens: 3, tokens };
  const half: Reply = (request, s) => {
    const events = eventsOf(answer, request, [2]).map((data) => `data: ${data}\n\n`);
    const chunks = events.slice(0, 2).map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
    s.end(STREAM_HEAD + chunks.join(""));
  };
  // It is asked for the text of tokens, and does not answer.
  const rig = await startRig([half, silent], { timeoutHeaders, stages: { clients: { continueStreams: true } } });
  t.after(() => rig.close());
  const asked = ask(rig.url, { ...STREAM, max_tokens: 40 }, { headers: { "x-gnomon-timeout-ms": "300" } });
  await rig.engines[1]!.asked(1);
  clock.advance(301);
  const got = await asked;
  assert.match(got.body, /"content":"one two"[^]*GatewayTimeoutError/);
  assert.deepEqual(
    rig.engines[1]!.requests.map(({ path }) => path),
    ["/detokenize"],
  );
  assert.deepEqual(rig.gateway.counters.deadlines, { sent: 1 });
  assert.equal(rig.summaries[0]!.outcome, "timeout");
});
