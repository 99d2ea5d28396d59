import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect, type Socket } from "node:net";
import { test } from "node:test";

import { CHAT, type Rig, startRig } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply } from "./stub-engine.ts";

const GET = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";

function post(content: string): string {
  const body = JSON.stringify({ ...CHAT, messages: [{ role: "user", content }] });
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

interface Talk {
  readonly socket: Socket;
  /** All that came; the connection's end. */
  readonly closed: Promise<void>;
  got(): string;
  count(pattern: RegExp): number;
}

function talk(rig: Rig, bytes: string): Talk {
  const socket = connect(Number(new URL(rig.url).port), "127.0.0.1", () => socket.write(bytes));
  let got = "";
  socket.on("data", (data) => (got += String(data)));
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  return { socket, closed, got: () => got, count: (pattern) => got.match(pattern)?.length ?? 0 };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
}

const OK = /HTTP\/1\.1 200 /g;

const SAID_MAX = 20;

/** Answers with the beginning of what it was asked, once it is let. */
function heldEngine(): { readonly reply: Reply; readonly waiting: (() => void)[]; answersAtOnce: boolean } {
  const held = {
    waiting: [] as (() => void)[],
    answersAtOnce: false,
    reply: ((request, socket) => {
      const said = /"content":"(\w+)"/.exec(String(request.body))![1]!.slice(0, SAID_MAX);
      const answer = (): void => void socket.write(jsonReply(200, chatAnswer(said)));
      if (held.answersAtOnce) answer();
      else held.waiting.push(answer);
    }) satisfies Reply,
  };
  return held;
}

test("requests of one connection are served one after the other, each in its turn", async () => {
  const engine = heldEngine();
  const rig = await startRig([engine.reply]);
  const client = talk(rig, post("one") + GET + post("two") + post("three"));
  await until(() => engine.waiting.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(engine.waiting.length, 1, "the next is not begun before");
  assert.equal(rig.gateway.inFlight(), 1);
  engine.answersAtOnce = true;
  engine.waiting[0]!();
  await until(() => client.count(OK) === 4 && client.got().includes("three"));
  assert.match(client.got(), /one.*"object":"list".*two.*three/s);
  // The connection is read again.
  client.socket.write(post("four"));
  await until(() => client.got().includes("four"));
  client.socket.destroy();
  await rig.close();
});

test("a body that comes while an earlier answer is owed is read in its turn, whole", async () => {
  const engine = heldEngine();
  const rig = await startRig([engine.reply]);
  const long = "x".repeat(500_000);
  const client = talk(rig, post("one") + post(long) + post("three"));
  await until(() => engine.waiting.length === 1);
  engine.answersAtOnce = true;
  engine.waiting[0]!();
  await until(() => client.count(OK) === 3 && client.got().includes("three"));
  assert.equal(rig.engines[0]!.requests.map(({ body }) => body.length > long.length).join(), "false,true,false");
  client.socket.destroy();
  await rig.close();
});

for (const [route, request] of [
  ["a page", GET],
  ["inference", post("hello")],
  ["an expectation", GET.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")],
  ["a wrong path", "GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n"],
] as const) {
  test(`as many as the limit wait on a connection, one more ends it behind their answers: ${route}`, async () => {
    const engine = heldEngine();
    const rig = await startRig([engine.reply], { limits: { pipelinedRequestsMax: 3 } });
    const within = talk(rig, post("first") + request.repeat(3));
    await until(() => engine.waiting.length === 1);
    engine.answersAtOnce = true;
    engine.waiting[0]!();
    await until(() => within.count(/HTTP\/1\.1 [24]/g) === 4);
    assert.equal(rig.gateway.counters.pipelinesCut, 0);
    engine.answersAtOnce = false;
    const beyond = talk(rig, post("second") + request.repeat(400));
    await until(() => engine.waiting.length === 2);
    assert.equal(beyond.got(), "");
    engine.answersAtOnce = true;
    engine.waiting[1]!();
    await beyond.closed;
    assert.equal(beyond.count(/HTTP\/1\.1 [24]/g), 4);
    assert.match(beyond.got(), /^((?!connection: close).)*HTTP\/1\.1 ((?!HTTP\/1\.1).)*connection: close/is);
    assert.equal(beyond.count(/connection: close/gi), 1);
    assert.equal(rig.gateway.counters.pipelinesCut, 1);
    within.socket.destroy();
    await rig.close();
  });
}

test("however much a client sends ahead, little of it is taken in", async () => {
  const engine = heldEngine();
  const rig = await startRig([engine.reply]);
  const client = talk(rig, post("one"));
  await until(() => engine.waiting.length === 1);
  const body = "x".repeat(40_000);
  let sent = 0;
  for (let i = 0; i < 500; i++) client.socket.write(post(body), () => sent++);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(sent < 400, `${sent} of 500 are out`);
  assert.equal(rig.gateway.inFlight(), 1);
  assert.equal(rig.gateway.counters.pipelinesCut, 0);
  engine.answersAtOnce = true;
  engine.waiting[0]!();
  await until(() => client.count(OK) === 501);
  client.socket.destroy();
  await rig.close();
});

test("a client that leaves takes what waits with it", async () => {
  const engine = heldEngine();
  const rig = await startRig([engine.reply], { limits: { pipelinedRequestsMax: 3, requestsInFlightMax: 3 } });
  for (let i = 0; i < 5; i++) {
    const client = talk(rig, post("one") + GET.repeat(3));
    await until(() => engine.waiting.length === i + 1);
    client.socket.destroy();
    // What it sent ahead is not read, so its leaving shows with the answer.
    engine.waiting[i]!();
    await until(() => rig.gateway.inFlight() === 0);
  }
  assert.equal(rig.gateway.counters.pipelinesCut, 0, "no place is lost");
  await rig.close();
});

for (const [what, request] of [
  ["pages", GET],
  ["inference", post("hello")],
] as const) {
  test(`what a cut connection sent ahead is not parsed: ${what}`, async (context) => {
    const engine = heldEngine();
    const rig = await startRig([engine.reply], { limits: { pipelinedRequestsMax: 3 } });
    context.after(() => rig.close());
    let parsed = 0;
    const count = (): void => void parsed++;
    subscribe("http.server.request.start", count);
    const client = talk(rig, post("first") + request.repeat(500));
    await until(() => engine.waiting.length === 1);
    engine.answersAtOnce = true;
    engine.waiting[0]!();
    await client.closed;
    unsubscribe("http.server.request.start", count);
    // The engine's server is not Node's, so all are the gateway's.
    assert.equal(parsed, 5);
    assert.equal(rig.gateway.counters.pipelinesCut, 1);
    assert.equal((await fetch(`${rig.url}/v1/models`)).status, 200, "its parser serves others");
  });
}

const closing = (request: string): string => request.replace("host: x", "host: x\r\nconnection: close");
const old = (request: string): string => request.replace("HTTP/1.1", "HTTP/1.0");

for (const [what, behind] of [
  ["requests of HTTP/1.0", (request: string) => old(request).repeat(400)],
  ["requests, though it closes", (request: string) => closing(request).repeat(400)],
  ["bytes that are no request", (request: string) => `${request}\u0000\u0001 no request\r\n\r\n`],
] as const) {
  test(`the first answer comes, and no other, where behind its request come ${what}`, async () => {
    const engine = heldEngine();
    const rig = await startRig([engine.reply]);
    const page = talk(rig, behind(GET));
    await page.closed;
    assert.deepEqual([page.count(OK), page.count(/HTTP\/1/g)], [1, 1], page.got());
    const chat = talk(rig, behind(post("one")));
    await until(() => engine.waiting.length === 1);
    engine.waiting[0]!();
    await chat.closed;
    assert.deepEqual([chat.count(OK), chat.count(/HTTP\/1/g)], [1, 1], chat.got());
    assert.match(chat.got(), /"content":"one"/);
    await until(() => rig.gateway.inFlight() === 0);
    assert.equal(engine.waiting.length, 1);
    await rig.close();
  });
}
