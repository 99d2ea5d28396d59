import assert from "node:assert/strict";
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { after, before, describe, test } from "node:test";

import { type Rig, startRig } from "./rig.ts";
import { chatAnswer, jsonReply } from "./stub-engine.ts";

const MIB = 1_048_576;
const KEY = "key-of-a-client";
const HEAD = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
const WITH_KEY = `${HEAD}authorization: Bearer ${KEY}\r\n`;

/** Has its whole request on the way before it reads, as clients with one thread do; all that it got then. */
async function writesThenReads(url: string, head: string, pieces: readonly Buffer[]): Promise<string> {
  const socket = halfOpen(url);
  socket.pause();
  socket.write(head);
  for (const piece of pieces.slice(0, -1)) socket.write(piece);
  const failed = await new Promise<Error | null | undefined>((resolve) => socket.write(pieces.at(-1)!, resolve));
  assert.equal(failed?.message, undefined, "the client was cut as it wrote");
  let got = "";
  socket.setEncoding("latin1").on("data", (text: string) => (got += text));
  socket.resume();
  await new Promise((resolve) => socket.once("end", resolve));
  socket.destroy();
  return got;
}

/** Goes on writing when the other side has ended. */
function halfOpen(url: string): Socket {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
  return socket.on("error", () => {});
}

function pieces(bytes: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes / 65_536) }, () => Buffer.alloc(65_536, 0x20));
}

function chunked(bytes: number): Buffer[] {
  const piece = pieces(1)[0]!;
  return [
    ...pieces(bytes).flatMap(() => [Buffer.from("10000\r\n"), piece, Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n"),
  ];
}

describe("law: a client that is refused while it writes its body gets the answer, whole, and its connection ends", () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig([(_request, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
      limits: { bodyBytesMax: MIB },
      clientKeys: [KEY],
    });
  });
  after(() => rig.close());

  const length = `content-length: ${32 * MIB}\r\n\r\n`;
  const inChunks = "transfer-encoding: chunked\r\n\r\n";
  const cases: readonly [name: string, head: string, body: () => Buffer[], status: number, message: RegExp][] = [
    ["a wrong key", `${HEAD}${length}`, () => pieces(32 * MIB), 401, /one of this gateway's keys/],
    [
      "a declared length above the limit",
      `${WITH_KEY}${length}`,
      () => pieces(32 * MIB),
      413,
      /larger than 1048576 bytes/,
    ],
    ["chunks above the limit", `${WITH_KEY}${inChunks}`, () => chunked(32 * MIB), 413, /larger than 1048576 bytes/],
    ["a compressed body", `${WITH_KEY}content-encoding: br\r\n${length}`, () => pieces(32 * MIB), 415, /compressed/],
  ];
  for (const [name, head, body, status, message] of cases) {
    test(name, async () => {
      const got = await writesThenReads(rig.url, head, body());
      assert.match(got, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(got, /\r\nconnection: close\r\n/);
      assert.match(got, message);
      assert.match(got, /\}$/);
      assert.equal(rig.gateway.inFlight(), 0);
    });
  }

  test("one who never ends is cut after some seconds, and holds no place of those in flight", async () => {
    const socket = halfOpen(rig.url);
    socket.write(`${HEAD}content-length: ${MIB}\r\n\r\n `);
    const [answer] = (await once(socket, "data")) as [Buffer];
    assert.match(String(answer), /^HTTP\/1\.1 401 /);
    assert.equal(rig.gateway.inFlight(), 0);
    const writing = setInterval(() => socket.write(" "), 50);
    const began = performance.now();
    await new Promise((resolve) => socket.once("close", resolve));
    clearInterval(writing);
    assert.ok(performance.now() - began < 10_000);
  });
});
