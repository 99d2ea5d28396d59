import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";

import { CHAT, ask, startRig } from "./rig.ts";
import { chatAnswer, jsonReply } from "./stub-engine.ts";

const MIB = 1 << 20;

test("answers that nobody reads take no more than their room, and who reads gets his", async () => {
  const answer = jsonReply(200, chatAnswer("x".repeat(7 * MIB)));
  const rig = await startRig([(_r, socket) => socket.write(answer)], {
    limits: { answerBytesUnreadMax: 16 * MIB, upstreamConnectionsMax: 64 },
  });
  const { unread } = rig.gateway.parts;
  const body = JSON.stringify(CHAT);
  const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const clients: Socket[] = [];
  let most = 0;
  const looks = setInterval(() => (most = Math.max(most, unread.bytes)), 1);
  for (let i = 0; i < 12; i++) {
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1").pause();
    socket.on("error", () => {});
    socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
    clients.push(socket);
  }
  while (!unread.isFull) await new Promise((resolve) => setTimeout(resolve, 1));
  for (let i = 0; i < 3; i++) {
    const got = await ask(rig.url, CHAT);
    assert.equal(got.status, 200);
    assert.ok(got.body.length > 7 * MIB);
  }
  assert.ok(rig.gateway.counters.unreadCut > 0);
  // Without a bound it would be 84 MiB. How many answers had come before the room was spent is up to the machine.
  assert.ok(most <= 64 * MIB, `${most / MIB} MiB unread at most`);
  clearInterval(looks);
  for (const socket of clients) socket.destroy();
  while (rig.gateway.inFlight() > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  while (unread.bytes > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  await rig.close();
});
