import assert from "node:assert/strict";
import { request } from "node:http";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import * as fc from "fast-check";

import { EngineConnections } from "#live/tls/connections.ts";

import { Certificates } from "../tls/made-certificates.ts";
import { CHAT, type RigOptions, ask, startRig } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply, streamOf } from "./stub-engine.ts";

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

/** The bytes of an answer are read alike behind TLS, whose reads are other ones. */
const RUNS = { http: 25, https: 10 };

for (const scheme of ["http", "https"] as const) {
  test(`interim answers that nobody asked for are passed over, however they come: ${scheme}`, async (t) => {
    const options = scheme === "https" ? securely(t) : {};
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...INTERIM), { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat(200), { maxLength: 3 }),
        async (interim, places) => {
          const reply: Reply = (request, socket) => {
            const stream = request.body.includes('"stream":true');
            const answer = stream ? streamOf(3) : jsonReply(200, chatAnswer("whole"));
            void inParts(socket, cutAt(interim.join("") + answer, places));
          };
          const rig = await startRig([reply], options);
          // The second goes over the connection of the first.
          try {
            for (const asked of [CHAT, CHAT, STREAM, CHAT, STREAM]) {
              const got = await ask(rig.url, asked);
              assert.equal(got.status, 200, got.body);
              assert.ok(got.body.includes(asked === STREAM ? "[DONE]" : '"whole"'));
            }
            assert.deepEqual(rig.gateway.counters.faults, {});
          } finally {
            await rig.close();
          }
        },
      ),
      { numRuns: RUNS[scheme] },
    );
  });
}

/** Engines that speak TLS, and a gateway that trusts them. */
function securely(t: TestContext): RigOptions {
  const made = new Certificates(t);
  const root = made.root("root");
  const { cert, key } = made.signed(root, "engine");
  return { engineTls: { cert, key }, connections: new EngineConnections({ ca: root.cert }) };
}

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

test("a long stream over TLS reaches a client whole that reads it in pauses", async (t) => {
  const TOKENS = 60_000;
  const rig = await startRig([(_r, socket) => void socket.write(streamOf(TOKENS))], securely(t));
  try {
    const text = await new Promise<string>((resolve, reject) => {
      const path = "/v1/chat/completions";
      const headers = { "content-type": "application/json" };
      const sent = request(rig.url + path, { method: "POST", headers }, (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => {
          pieces.push(piece);
          if (pieces.length % 50 !== 1) return;
          answer.pause();
          setTimeout(() => answer.resume(), 2);
        });
        answer.on("end", () => resolve(Buffer.concat(pieces).toString()));
      });
      sent.on("error", reject).end(JSON.stringify(STREAM));
    });
    assert.equal(text.split("\n\n").length, TOKENS + 3);
    assert.ok(text.includes(` t${TOKENS - 1}"`) && text.endsWith("data: [DONE]\n\n"));
  } finally {
    await rig.close();
  }
});
