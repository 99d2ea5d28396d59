import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";

import { CHAT, ask, startRig } from "./rig.ts";
import { chatAnswer, jsonReply } from "./stub-engine.ts";

const MIB = 1 << 20;
const SHORT = jsonReply(200, chatAnswer("x".repeat(60_000)));
const LONG = jsonReply(200, chatAnswer("x".repeat(7 * MIB)));

/** Asks for a chat and reads nothing. */
function unreading(url: string, chat: object = CHAT): Socket {
  const body = JSON.stringify(chat);
  const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const socket = connect(Number(new URL(url).port), "127.0.0.1").pause();
  socket.on("error", () => {});
  socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
  return socket;
}

test("answers that nobody reads take no more than their room, and who reads gets his", async () => {
  const rig = await startRig([(_r, socket) => socket.write(LONG)], {
    limits: { answerBytesUnreadMax: 16 * MIB, upstreamConnectionsMax: 64 },
  });
  const { unread } = rig.gateway.shared;
  const clients: Socket[] = [];
  let most = 0;
  const looks = setInterval(() => (most = Math.max(most, unread.bytes)), 1);
  for (let i = 0; i < 12; i++) clients.push(unreading(rig.url));
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

test("a short answer waits for no room, and a long one of a client that reads does", async () => {
  const rig = await startRig([({ body }, socket) => socket.write(body.includes("long") ? LONG : SHORT)], {
    limits: { answerBytesUnreadMax: MIB, upstreamConnectionsMax: 64 },
  });
  const { unread } = rig.gateway.shared;
  const looks = unread.settle.bind(unread);
  // Nobody is cut, so that there is no room until it is called again.
  unread.settle = () => {};
  const clients = Array.from({ length: 4 }, () => unreading(rig.url, { ...CHAT, user: "long" }));
  while (!unread.isFull) await new Promise((resolve) => setTimeout(resolve, 1));
  const long = ask(rig.url, { ...CHAT, user: "long" });
  for (let i = 0; i < 3; i++) assert.equal((await ask(rig.url, CHAT)).status, 200);
  assert.ok(unread.isFull);
  assert.equal(rig.gateway.inFlight() > 0, true);
  unread.settle = looks;
  assert.ok((await long).body.length > 7 * MIB);
  for (const socket of clients) socket.destroy();
  while (rig.gateway.inFlight() > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  await rig.close();
});
