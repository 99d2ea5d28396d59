import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { test } from "node:test";
import * as fc from "fast-check";

import { CHAT, ask, startRig } from "./rig.ts";
import { chatAnswer, jsonReply, streamOf } from "./stub-engine.ts";

const INTERIM = [
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 102 Processing\r\ndate: Sat, 21 Nov 2026 00:04:58 GMT\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
  "HTTP/1.0 199 \r\n\r\n",
];
const STREAM = { ...CHAT, stream: true };

/** In reads of their own, as far as the system lets them be. */
async function inParts(socket: Socket, parts: readonly string[]): Promise<void> {
  for (const part of parts) {
    socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 4));
  }
}

function cutAt(text: string, places: readonly number[]): string[] {
  const at = [...new Set(places.map((place) => place % text.length))].toSorted((a, b) => a - b);
  return [0, ...at].map((from, i) => text.slice(from, at[i])).filter((part) => part !== "");
}

test("interim answers that nobody asked for are passed over, however they come", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...INTERIM), { minLength: 1, maxLength: 3 }),
      fc.array(fc.nat(200), { maxLength: 3 }),
      async (interim, places) => {
        const rig = await startRig([
          (request, socket) => {
            const stream = request.body.includes('"stream":true');
            const answer = stream ? streamOf(3) : jsonReply(200, chatAnswer("whole"));
            void inParts(socket, cutAt(interim.join("") + answer, places));
          },
        ]);
        // The second goes over the connection of the first.
        for (const asked of [CHAT, CHAT, STREAM, CHAT, STREAM]) {
          const got = await ask(rig.url, asked);
          assert.equal(got.status, 200, got.body);
          assert.ok(got.body.includes(asked === STREAM ? "[DONE]" : '"whole"'));
        }
        assert.deepEqual(rig.gateway.counters.faults, {});
        await rig.close();
      },
    ),
    { numRuns: 25 },
  );
});

test("what only begins like one is an answer, or none", async () => {
  let reply = "";
  let ends = false;
  const rig = await startRig(
    [(_r, socket) => void inParts(socket, cutAt(reply, [9, 11])).then(() => ends && socket.end())],
    {
      limits: { attemptsMax: 1 },
    },
  );
  reply = jsonReply(200, chatAnswer("ok"));
  assert.equal((await ask(rig.url, CHAT)).status, 200);
  ends = true;
  reply = "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
  assert.equal((await ask(rig.url, CHAT)).status, 502);
  reply = `HTTP/1.1 100 ${"x".repeat(40_000)}`;
  assert.equal((await ask(rig.url, CHAT)).status, 502);
  await rig.close();
});
