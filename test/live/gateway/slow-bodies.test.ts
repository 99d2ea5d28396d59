import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";

import { SMALL_PIECES_MAX } from "#live/http/request-body.ts";

import { CHAT, type Rig, ask, startRig } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply } from "./stub-engine.ts";

const KIB = 1024;
const OK: Reply = (_request, socket) => socket.write(jsonReply(200, chatAnswer("ok")));
const head = (more: string): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;

interface Sender {
  /** All that came until the connection ended. */
  readonly got: Promise<string>;
  readonly write: (bytes: string) => void;
  readonly destroy: () => void;
}

/** Linux has all of 127.0.0.0/8, and a client may come from any of it. */
function send(rig: Rig, bytes: string, localAddress = "127.0.0.1"): Sender {
  const socket = connect({ port: Number(new URL(rig.url).port), host: "127.0.0.1", localAddress });
  let got = "";
  socket.on("data", (data) => (got += String(data)));
  socket.on("error", () => {});
  socket.write(bytes);
  return {
    got: new Promise((resolve) => socket.on("close", () => resolve(got))),
    write: (more) => void socket.write(more),
    destroy: () => socket.destroy(),
  };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
}

describe("bodies held short of their end", () => {
  const LIMITS = {
    bodyBytesMax: 100 * KIB,
    bodyBytesInFlightMax: 1_000 * KIB,
    requestReadMillisMax: 5_000,
    bodyBytesPerSecondMin: 0,
  };
  const held = head(`content-length: ${100 * KIB}`) + " ".repeat(100 * KIB - 1);
  const long = { ...CHAT, user: "x".repeat(80 * KIB) };

  test("give way, the oldest first, to a client of the same address, who is served", async () => {
    const rig = await startRig([OK], { limits: LIMITS });
    const { bodies } = rig.gateway.shared;
    const senders: Sender[] = [];
    // The address has no more than half of the room.
    for (let i = 0; i < 4; i++) {
      senders.push(send(rig, held));
      await until(() => bodies.arriving === i + 1 && bodies.bytes === (i + 1) * (100 * KIB - 1));
    }
    // In the first second they came fast.
    await new Promise((resolve) => setTimeout(resolve, 2_200));
    for (let i = 0; i < 6; i++) assert.equal((await ask(rig.url, long)).status, 200);
    const more = Array.from({ length: 3 }, () => send(rig, held));
    assert.match(await senders[0]!.got, /^HTTP\/1\.1 408 .*connection: close.*too slowly/s);
    assert.ok(rig.gateway.counters.bodiesCut["gave-way"]! > 0);
    for (const one of [...senders, ...more]) one.destroy();
    await until(() => rig.gateway.inFlight() === 0);
    assert.deepEqual([bodies.bytes, bodies.arriving], [0, 0]);
    await rig.close();
  });

  test(
    "give way at once to another address, where theirs holds more",
    { skip: process.platform !== "linux" },
    async () => {
      const rig = await startRig([OK], { limits: { ...LIMITS, bodyShareMax: 1 } });
      const { bodies } = rig.gateway.shared;
      const senders = Array.from({ length: 10 }, () => send(rig, held, "127.0.0.2"));
      await until(() => bodies.bytes > 990 * KIB);
      for (let i = 0; i < 5; i++) assert.equal((await ask(rig.url, long)).status, 200);
      assert.deepEqual(rig.gateway.counters.bodiesCut, { "gave-way": 1 });
      for (const one of senders) one.destroy();
      await until(() => rig.gateway.inFlight() === 0);
      await rig.close();
    },
  );

  test("have no more than their address's share", { skip: process.platform !== "linux" }, async () => {
    const rig = await startRig([OK], { limits: LIMITS });
    const { bodies } = rig.gateway.shared;
    const senders = Array.from({ length: 20 }, () => send(rig, held, "127.0.0.2"));
    const statuses = Promise.all(senders.map(({ got }) => got));
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.ok(bodies.bytes <= 500 * KIB, `${bodies.bytes} bytes`);
    assert.equal((await ask(rig.url, long)).status, 200);
    for (const one of senders) one.destroy();
    const refused = (await statuses).filter((got) => got.startsWith("HTTP/1.1 429 ")).length;
    assert.ok(refused >= 10, `${refused} of 20 refused`);
    await until(() => rig.gateway.inFlight() === 0);
    await rig.close();
  });

  test("give way where there is no place for another request", async () => {
    const rig = await startRig([OK], { limits: { ...LIMITS, requestsInFlightMax: 5 } });
    const senders = Array.from({ length: 6 }, () => send(rig, head("content-length: 100")));
    await until(() => rig.gateway.inFlight() === 5);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    for (let i = 0; i < 3; i++) assert.equal((await ask(rig.url, CHAT)).status, 200);
    for (const one of senders) one.destroy();
    await until(() => rig.gateway.inFlight() === 0);
    await rig.close();
  });
});

test("a body in many small pieces is served where they are not tiny", async () => {
  const rig = await startRig([OK]);
  const pieces = `20\r\n${" ".repeat(32)}\r\n`.repeat(3 * SMALL_PIECES_MAX);
  const body = JSON.stringify(CHAT);
  const whole = send(
    rig,
    `${head("transfer-encoding: chunked")}${pieces}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  );
  await until(() => rig.engines[0]!.requests.length === 1);
  assert.equal(rig.engines[0]!.requests[0]!.body.length, 3 * 32 * SMALL_PIECES_MAX + body.length);
  whole.destroy();
  await rig.close();
});

test("a body in chunks of a byte is refused once it is plain that it is one, and others are served meanwhile", async () => {
  const rig = await startRig([OK]);
  const chunks = "1\r\n \r\n".repeat(20_000);
  const senders = Array.from({ length: 3 }, () => send(rig, head("transfer-encoding: chunked") + chunks));
  assert.equal((await ask(rig.url, CHAT)).status, 200);
  for (const { got } of senders) assert.match(await got, /^HTTP\/1\.1 4(?:00|29) .*in larger ones/s);
  const few = send(rig, `${head("transfer-encoding: chunked")}${"1\r\n \r\n".repeat(SMALL_PIECES_MAX - 10)}`);
  const body = JSON.stringify(CHAT);
  few.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
  await until(() => rig.engines[0]!.requests.length === 2);
  assert.equal(rig.engines[0]!.requests[1]!.body.length, SMALL_PIECES_MAX - 10 + body.length);
  few.destroy();
  await until(() => rig.gateway.inFlight() === 0);
  await rig.close();
});
