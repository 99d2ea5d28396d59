import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import { test, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { CallReceiver, GrpcCall } from "#picker/grpc/call.ts";
import { BadMessage } from "#picker/grpc/message-reader.ts";
import { LIMITS } from "./raw-http2.ts";
import { GrpcServer } from "#picker/grpc/grpc-server.ts";
import { MessageWriter } from "#picker/grpc/message-writer.ts";

const MAX = 1_000;

/** Answers each message with itself; "bad" is none. */
function echo(call: GrpcCall): CallReceiver {
  return {
    message: (bytes) => {
      if (bytes.toString() === "bad") throw new BadMessage("bad");
      call.send(framed(bytes));
    },
    clientEnded: () => call.end(),
    closed: () => {},
  };
}

function framed(bytes: Buffer, compressed = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = compressed;
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

async function started(t: TestContext): Promise<ClientHttp2Session> {
  const server = new GrpcServer({ ...LIMITS, methods: new Map([["/s/Echo", echo]]), messageBytesMax: MAX });
  const session = connect(`http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`);
  t.after(async () => {
    session.destroy();
    await server.stop(0);
  });
  return session;
}

const HEAD = { ":method": "POST", ":path": "/s/Echo", "content-type": "application/grpc", te: "trailers" };

/** Status and bytes of a call. */
async function outcome(stream: ClientHttp2Stream): Promise<{ http: unknown; status: unknown; bytes: Buffer }> {
  let head: IncomingHttpHeaders = {};
  let trailers: IncomingHttpHeaders = {};
  stream.on("response", (headers) => (head = headers));
  stream.on("trailers", (headers) => (trailers = headers));
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  await once(stream, "end");
  const status = trailers["grpc-status"] ?? head["grpc-status"];
  return { http: head[":status"], status, bytes: Buffer.concat(pieces) };
}

test("messages come whole and in order, wherever they are cut, an empty one among them", async (t) => {
  const session = await started(t);
  const sent = Buffer.concat(["one", "", "three", "x".repeat(MAX)].map((text) => framed(Buffer.from(text))));
  for (const cut of [1, 2, 7, 400, sent.length]) {
    const stream = session.request(HEAD);
    for (let at = 0; at < sent.length; at += cut) stream.write(sent.subarray(at, at + cut));
    stream.end();
    const { status, bytes } = await outcome(stream);
    assert.deepEqual([status, bytes.equals(sent)], ["0", true], `cut by ${cut}`);
  }
});

for (const [what, head, body, status] of [
  ["a method that is not there is unimplemented", { ":path": "/s/Other" }, framed(Buffer.from("x")), "12"],
  ["a message that is too large is refused", {}, framed(Buffer.alloc(MAX + 1)), "8"],
  ["a compressed message is refused", {}, framed(Buffer.from("x"), 1), "12"],
  ["a message that is none is refused", {}, framed(Buffer.from("bad")), "13"],
  ["a message that is cut off is refused", {}, framed(Buffer.from("whole")).subarray(0, 7), "13"],
  ["a timeout that is no time is refused", { "grpc-timeout": "soon" }, framed(Buffer.from("x")), "13"],
] as const) {
  test(`${what}, and the connection goes on`, async (t) => {
    const session = await started(t);
    const stream = session.request({ ...HEAD, ...head });
    stream.end(body);
    assert.equal((await outcome(stream)).status, status);
    const next = session.request(HEAD);
    next.end(framed(Buffer.from("y")));
    assert.deepEqual((await outcome(next)).bytes, framed(Buffer.from("y")));
  });
}

test("a call whose time is over ends with that status", async (t) => {
  const session = await started(t);
  const stream = session.request({ ...HEAD, "grpc-timeout": "20m" });
  stream.write(framed(Buffer.from("x")));
  assert.equal((await outcome(stream)).status, "4");
});

test("what is no gRPC is refused in HTTP's words", async (t) => {
  const session = await started(t);
  const stream = session.request({ ...HEAD, "content-type": "application/json" });
  stream.end();
  assert.equal((await outcome(stream)).http, 415);
});

test("a writer's messages grow past its first room", () => {
  const writer = new MessageWriter();
  const text = "grown ".repeat(1_000);
  writer.text(1, text);
  writer.text(1, "é");
  assert.ok(writer.written().includes(text));
  assert.ok(
    writer
      .written()
      .subarray(0, 4)
      .equals(Buffer.from([10, 2, 0xc3, 0xa9])),
  );
});

test("a call that is over holds nothing of its request, whoever holds the call", async (t) => {
  const calls: GrpcCall[] = [];
  const receivers: WeakRef<CallReceiver>[] = [];
  const keeping = (call: GrpcCall): CallReceiver => {
    const receiver = echo(call);
    calls.push(call);
    receivers.push(new WeakRef(receiver));
    return receiver;
  };
  const server = new GrpcServer({ ...LIMITS, methods: new Map([["/s/Echo", keeping]]), messageBytesMax: MAX });
  const session = connect(`http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`);
  t.after(async () => {
    session.destroy();
    await server.stop(0);
  });
  for (let i = 0; i < 5; i++) {
    const stream = session.request(HEAD);
    stream.end(framed(Buffer.from("x")));
    await outcome(stream);
  }
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const held = (): number => receivers.filter((one) => one.deref() !== undefined).length;
  while (held() > 0) {
    await new Promise(setImmediate);
    gc();
  }
  assert.equal(calls.length, 5);
});
