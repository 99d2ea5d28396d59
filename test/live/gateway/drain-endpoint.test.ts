import assert from "node:assert/strict";
import { test } from "node:test";

import { nowMicros } from "#live/base/clock.ts";
import { type ModelAnswer, detokenized, eventsOf } from "../continuation/model-engine.ts";
import { CHAT, type Rig, ask, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

const silent: Reply = () => {};
const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("ok")));

/** As the admin does once a drain's grace is over. */
function evict(rig: Rig, id: string): void {
  rig.intake.accept({ kind: "endpoint-cordoned", at: nowMicros(), endpoint: id });
  rig.directory.get(id)!.evicts = true;
}

test("a request without a byte goes to another endpoint, once its endpoint is drained", async () => {
  const rig = await startRig([silent, ok]);
  const asked = ask(rig.url, CHAT);
  await rig.engines[0]!.asked(1);
  evict(rig, "a");
  const got = await asked;
  assert.deepEqual([got.status, got.headers["x-gnomon-endpoint"]], [200, "b"]);
  assert.deepEqual([rig.retried, rig.gateway.counters.moved], [["draining"], { evicted: 1 }]);
  await rig.close();
});

test("a stream whose tokens are kept goes on elsewhere, whole; one that cannot ends where it is", async () => {
  const answer: ModelAnswer = {
    promptTokens: 3,
    tokens: ["one", " two", " three", ""].map((text) => Buffer.from(text)),
  };
  const chunk = (data: string): string => {
    const text = `data: ${data}\n\n`;
    return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  };
  const half: Reply = (request, s) => {
    if (request.path === "/detokenize") return void s.write(jsonReply(200, detokenized(answer, request)));
    const events = eventsOf(answer, request, [1]);
    s.write(STREAM_HEAD + events.slice(0, 2).map(chunk).join(""));
  };
  const whole: Reply = (request, s) => {
    if (request.path === "/detokenize") return void s.write(jsonReply(200, detokenized(answer, request)));
    s.write(STREAM_HEAD + eventsOf(answer, request, [1]).map(chunk).join("") + STREAM_END);
  };
  const rig = await startRig([half, whole], { stages: { clients: { continueStreams: true } } });
  const asked = ask(rig.url, { ...CHAT, stream: true, max_tokens: 40 });
  while (!rig.kinds().includes("first-token")) await new Promise((resolve) => setTimeout(resolve, 1));
  evict(rig, "a");
  const got = await asked;
  const text = [...got.body.matchAll(/"content":"([^"]*)"/g)].map(([, part]) => part).join("");
  assert.equal(text, "one two three");
  assert.match(got.body, /\[DONE\]\n\n$/);
  assert.equal(rig.inputs.filter(({ kind }) => kind === "request-continued").length, 1);
  await rig.close();
});

test("where no other endpoint may serve, and where a stream cannot go on, nothing is moved and nothing cut", async () => {
  let finish = (): void => {};
  const slow: Reply = (_request, s) => {
    s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
    finish = () => void s.write(tokenChunk(" two") + event("[DONE]") + STREAM_END);
  };
  const rig = await startRig([slow, ok]);
  const asked = ask(rig.url, { ...CHAT, stream: true });
  while (!rig.kinds().includes("first-token")) await new Promise((resolve) => setTimeout(resolve, 1));
  evict(rig, "a");
  await new Promise((resolve) => setTimeout(resolve, 40));
  finish();
  const got = await asked;
  assert.match(got.body, /one.* two.*\[DONE\]/s);
  assert.deepEqual([rig.gateway.counters.cuts, rig.gateway.counters.moved], [0, {}]);
  await rig.close();
});
