import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import { CHAT, startRig } from "./rig.ts";

const PIECE = "y".repeat(4096);
const PIECES = 2_000;

test("an answer that a client reads late comes whole, and the wait for the client is one", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  // Too long to be held: it is let through in one go, piece by piece, once the bound is passed.
  const body = `{"text":"${PIECE.repeat(PIECES)}"}`;
  const rig = await startRig(
    [
      (_request, socket) => {
        const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
        socket.write(head + body);
      },
    ],
    { limits: { answerBytesInspected: 4 << 20 } },
  );
  const asked = JSON.stringify(CHAT);
  const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
  socket.pause();
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n`;
  socket.write(`${head}content-length: ${asked.length}\r\n\r\n${asked}`);
  while (rig.gateway.counters.uninspected === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  let got = "";
  socket.on("data", (data) => (got += String(data)));
  socket.resume();
  await new Promise((resolve) => socket.on("close", resolve));
  assert.equal(got.slice(got.indexOf("\r\n\r\n") + 4), body);
  process.off("warning", onWarning);
  assert.deepEqual(warnings, []);
  await rig.close();
});
