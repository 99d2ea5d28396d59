import assert from "node:assert/strict";
import { type Socket, connect } from "node:net";
import { describe, test } from "node:test";

import { CHAT, type Rig, type RigOptions, WORD_TOKENIZER, encodeWords, startRig } from "./rig.ts";
import { type Reply, STREAM_HEAD, roleChunk, tokenChunk } from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };

/** Sends a request and keeps the socket. */
function send(rig: Rig, body: object): Socket {
  const text = JSON.stringify(body);
  const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
  return socket;
}

async function until(condition: () => boolean): Promise<void> {
  const start = Date.now();
  while (!condition()) {
    assert.ok(Date.now() - start < 60_000, `still waiting for ${condition.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function aborts(
  reply: Reply,
  leave: (socket: Socket) => void,
  ready: (rig: Rig, client: Socket) => boolean,
  options: RigOptions = {},
  body: object = STREAM,
): Promise<Rig> {
  let closed = 0;
  const rig = await startRig(
    [
      (request, socket) => {
        socket.on("close", () => closed++);
        reply(request, socket);
      },
    ],
    options,
  );
  const client = send(rig, body);
  await until(() => ready(rig, client));
  leave(client);
  await until(() => rig.summaries.length === 1);
  assert.equal(rig.summaries[0]!.outcome, "aborted");
  assert.equal(rig.gateway.counters.clientAborts, 1);
  if (rig.engines[0]!.requests.length > 0) await until(() => closed === 1);
  assert.equal(rig.router.openCharges, 0);
  client.destroy();
  await rig.close();
  return rig;
}

const reached = (rig: Rig): boolean => rig.engines[0]!.requests.length === 1;
const streaming = (_rig: Rig, client: Socket): boolean => client.bytesRead > 0;
const destroy = (socket: Socket): void => void socket.destroy();

describe("a client that leaves ends the engine's work", () => {
  test("before the answer's head", async () => void (await aborts(() => {}, destroy, reached)));
  test("before the answer's head, without a stream", async () =>
    void (await aborts(() => {}, destroy, reached, {}, CHAT)));
  test("between the head and the first token", async () =>
    void (await aborts((_r, s) => void s.write(STREAM_HEAD + roleChunk()), destroy, reached)));
  test("in the middle of the stream", async () =>
    void (await aborts((_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("x")), destroy, streaming)));
  test("by a reset", async () =>
    void (await aborts(
      (_r, s) => void s.write(STREAM_HEAD + tokenChunk("x")),
      (s) => s.resetAndDestroy(),
      streaming,
    )));
  test("by closing its half of the connection", async () =>
    void (await aborts(
      (_r, s) => void s.write(STREAM_HEAD + tokenChunk("x")),
      (s) => void s.end(),
      streaming,
    )));
  test("in the middle of an answer's body", async () =>
    void (await aborts(
      (_r, s) => void s.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"),
      destroy,
      reached,
      {},
      CHAT,
    )));

  test("while the tokenizer works: the router is never notified", async () => {
    let encoding = false;
    let finish = (): void => {};
    const tokenizer = {
      ...WORD_TOKENIZER,
      encode: (prompt: Parameters<typeof encodeWords>[0]) => {
        encoding = true;
        return new Promise<ReturnType<typeof encodeWords>>((resolve) => {
          finish = () => resolve(encodeWords(prompt));
        });
      },
    };
    const rig = await aborts(
      () => {},
      destroy,
      () => encoding,
      { tokenizer: () => tokenizer },
    );
    finish();
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(rig.kinds(), []);
    assert.equal(rig.engines[0]!.requests.length, 0);
  });

  test("while its body is still coming", async () => {
    const rig = await startRig([() => {}]);
    const client = connect(Number(new URL(rig.url).port), "127.0.0.1");
    client.write("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
    await until(() => rig.gateway.inFlight() === 1);
    client.destroy();
    await until(() => rig.summaries.length === 1);
    assert.equal(rig.summaries[0]!.outcome, "aborted");
    await rig.close();
  });

  test("while a connection to the engine is being opened", async () => {
    // 192.0.2.0/24 is for documents: nothing answers there, or the network says so at once.
    const rig = await startRig([() => {}], { entry: { url: "http://192.0.2.1:9" }, limits: { connectMillisMax: 300 } });
    const client = send(rig, STREAM);
    await until(() => rig.decisions.length >= 1);
    client.destroy();
    await until(() => rig.summaries.length === 1);
    await rig.close();
  });
});

describe("closing the gateway", () => {
  test("requests in flight finish, new connections are turned away, then all is quiet", async () => {
    let finish = (): void => {};
    const rig = await startRig([
      (_r, s) => {
        s.write(STREAM_HEAD + tokenChunk("x"));
        finish = () => void s.write("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
      },
    ]);
    const client = send(rig, STREAM);
    let got = "";
    client.on("data", (data) => (got += String(data)));
    await until(() => got.includes('"x"'));
    const kept = connect(Number(new URL(rig.url).port), "127.0.0.1");
    kept.on("error", () => {});
    const closing = rig.gateway.close(60_000);
    kept.destroy();
    const late = connect(Number(new URL(rig.url).port), "127.0.0.1");
    late.write("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    let refused = "";
    late.on("data", (data) => (refused += String(data)));
    await until(() => refused !== "");
    assert.ok(refused.startsWith("HTTP/1.1 503"));
    finish();
    await closing;
    assert.ok(got.includes("[DONE]"));
    assert.equal(rig.summaries.find(({ stream }) => stream)!.outcome, "ok");
    await assert.rejects(
      new Promise((resolve, reject) => {
        connect(Number(new URL(rig.url).port), "127.0.0.1")
          .once("connect", resolve)
          .once("error", reject);
      }),
    );
    for (const engine of rig.engines) await engine.kill();
  });

  test("after the grace, what is left is cut", async () => {
    const rig = await startRig([(_r, s) => void s.write(STREAM_HEAD + tokenChunk("x"))]);
    const client = send(rig, STREAM);
    await until(() => client.bytesRead > 0);
    await rig.gateway.close(30);
    assert.equal(rig.gateway.inFlight(), 0);
    assert.equal(rig.summaries[0]!.outcome, "failed");
    for (const engine of rig.engines) await engine.kill();
  });
});
