import assert from "node:assert/strict";
import { connect } from "node:net";
import { describe, test } from "node:test";

import fc from "fast-check";

import { framed } from "#live/answer/client-writer.ts";

import { dechunk } from "./captures.ts";
import { CHAT, type Rig, ask, startRig } from "./rig.ts";
import {
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  streamOf,
  tokenChunk,
} from "./stub-engine.ts";

const STREAM = JSON.stringify({ ...CHAT, stream: true });

/** Sends bytes and returns all that came until the connection closed or `enough` of it was there. */
function raw(rig: Rig, bytes: string, enough: (got: string) => boolean): Promise<string> {
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (data) => {
      got += data.toString("latin1");
      if (enough(got)) socket.destroy();
    });
    socket.on("close", () => resolve(got));
  });
}

function post(body: string, version = "1.1", headers = ""): string {
  return `POST /v1/chat/completions HTTP/${version}\r\nhost: x\r\n${headers}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

describe("framing", () => {
  test("one chunk around any piece", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 70_000, size: "max" }), (bytes) => {
        const piece = Buffer.from(bytes);
        const chunk = framed(piece);
        assert.ok(dechunk(Buffer.concat([chunk, Buffer.from("0\r\n\r\n")])).equals(piece));
        assert.match(chunk.toString("latin1", 0, 12), /^[0-9a-f]{1,8}\r\n/);
      }),
      { numRuns: 60, examples: [1, 15, 16, 255, 256, 4_095, 4_096, 65_535, 65_536].map((n) => [new Uint8Array(n)]) },
    );
  });

  test("a client of HTTP/1.0 gets a stream without chunks, ended by the connection", async () => {
    const rig = await startRig([(_r, socket) => socket.write(streamOf(3))]);
    const got = await raw(rig, post(STREAM, "1.0"), () => false);
    assert.ok(!/transfer-encoding/i.test(got));
    assert.match(got, /\r\n\r\ndata: \{.*data: \[DONE\]\n\n$/s);
    assert.ok(!/\r\n[0-9a-f]+\r\ndata/.test(got));
    await rig.close();
  });

  test("pipelined requests are answered in order, streams and answers mixed", async () => {
    let first = true;
    const rig = await startRig([
      (request, socket) => {
        const stream = request.body.includes('"stream":true');
        const send = (): void => void socket.write(stream ? streamOf(3) : jsonReply(200, chatAnswer("whole")));
        setTimeout(send, first ? 30 : 0);
        first = false;
      },
    ]);
    const requests = post(STREAM) + post(JSON.stringify(CHAT)) + post(STREAM);
    const got = await raw(rig, requests, (text) => text.split("[DONE]").length === 3 && text.endsWith(STREAM_END));
    const answers = got.split("HTTP/1.1 200 ").slice(1);
    assert.equal(answers.length, 3);
    for (const i of [0, 2]) {
      const body = dechunk(Buffer.from(answers[i]!.slice(answers[i]!.indexOf("\r\n\r\n") + 4))).toString();
      assert.ok(body.endsWith("data: [DONE]\n\n"));
    }
    assert.match(answers[1]!, /"whole"/);
    await rig.close();
  });

  test("events arrive one by one as they are sent, the first with the head", async () => {
    let send = (_text: string): void => {};
    const rig = await startRig([
      (_r, socket) => {
        socket.write(STREAM_HEAD + roleChunk() + tokenChunk("t0"));
        send = (text) => void socket.write(text);
      },
    ]);
    const reads: string[] = [];
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1", () => socket.write(post(STREAM)));
    const read = (): Promise<string> =>
      new Promise((resolve) => socket.once("data", (data) => resolve(data.toString("latin1"))));
    reads.push(await read());
    assert.match(reads[0]!, /^HTTP\/1\.1 200 .*assistant.*t0/s);
    for (let i = 1; i < 4; i++) {
      const next = read();
      send(tokenChunk(`t${i}`));
      assert.match(await next, new RegExp(`^[0-9a-f]+\r\ndata: .*"t${i}"`));
    }
    const last = read();
    send(event("[DONE]") + STREAM_END);
    assert.match(await last, /\[DONE\]/);
    socket.destroy();
    await rig.close();
  });

  test("an event split over many reads reaches the client whole", async () => {
    const stream = streamOf(4);
    const rig = await startRig([
      (_r, socket) => {
        let at = 0;
        const timer = setInterval(() => {
          socket.write(stream.slice(at, (at += 37)));
          if (at >= stream.length) clearInterval(timer);
        }, 1);
        socket.on("close", () => clearInterval(timer));
      },
    ]);
    const got = await ask(rig.url, STREAM);
    assert.equal(got.body, dechunk(Buffer.from(stream.slice(STREAM_HEAD.length))).toString());
    await rig.close();
  });
});
