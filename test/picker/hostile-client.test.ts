import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { type ClientDuplexStream, credentials, makeGenericClientConstructor, type StatusObject } from "@grpc/grpc-js";
import fc from "fast-check";
import type { CallReceiver, GrpcCall } from "#picker/grpc/call.ts";
import { GrpcServer, type GrpcServerOptions } from "#picker/grpc/grpc-server.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import { TLS } from "./proxy.ts";
import {
  CALL,
  callHeaders,
  END_HEADERS,
  END_STREAM,
  fieldsOf,
  frame,
  FRAME,
  LIMITS,
  messageOf,
  number32,
  RawClient,
  settings,
} from "./raw-http2.ts";

const MAX = 100_000;
const TIMES_LONGER = 4;

/** A server whose calls answer each message with a longer one, and what is held for them. */
class Served {
  calls = 0;
  open = 0;
  held = 0;
  readonly failures: string[] = [];
  readonly defects: unknown[] = [];
  port = 0;
  readonly server: GrpcServer;

  constructor(options: Partial<GrpcServerOptions> = {}) {
    this.server = new GrpcServer({
      ...LIMITS,
      methods: new Map([["/s/Echo", (call: GrpcCall) => this.#echo(call)]]),
      messageBytesMax: MAX,
      room: { take: (bytes) => ((this.held += bytes), true), give: (bytes) => void (this.held -= bytes) },
      failed: (why, error) => {
        this.failures.push(why);
        if (why === "defect") this.defects.push(error);
      },
      ...options,
    });
  }

  static async start(t: TestContext, options: Partial<GrpcServerOptions> = {}): Promise<Served> {
    const served = new Served(options);
    served.port = await served.server.listen("127.0.0.1", 0);
    t.after(() => served.server.stop(0));
    return served;
  }

  #echo(call: GrpcCall): CallReceiver {
    this.calls++;
    this.open++;
    return {
      message: (bytes) => {
        if (bytes.toString() === "defect") throw new TypeError("a defect");
        call.send(messageOf(Buffer.concat(Array.from({ length: TIMES_LONGER }, () => bytes))));
      },
      clientEnded: () => call.end(),
      closed: () => void this.open--,
    };
  }
}

function data(stream: number, bytes: Buffer, flags = 0): Buffer {
  return frame(FRAME.data, flags, stream, bytes);
}

/** A call on a connection of its own is answered. */
async function answers(port: number, isTls: boolean): Promise<void> {
  const client = await RawClient.connect(port, isTls);
  client.send(callHeaders(1), data(1, messageOf(Buffer.from("x")), END_STREAM));
  await client.until(() => client.count(FRAME.headers) === 2);
  assert.equal(client.count(FRAME.headers), 2, "head and trailers");
  client.socket.destroy();
}

const stream = fc.constantFrom(1, 3, 5, 7);
const message = fc.constantFrom("", "x", "defect", "y".repeat(4_000)).map((text) => messageOf(Buffer.from(text)));
const header = fc.constantFrom(
  {},
  { ":path": "/not/there" },
  { "content-type": "text/plain" },
  { ":method": "HEAD" },
  { "grpc-timeout": "0n" },
  { "grpc-timeout": "2m" },
  { "grpc-timeout": "soon" },
);
const sent = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(stream, header, fc.constantFrom(0, END_STREAM)).map((all) => callHeaders(...all)) },
  { weight: 4, arbitrary: fc.tuple(stream, message, fc.constantFrom(0, END_STREAM)).map((all) => data(...all)) },
  fc.tuple(stream, message, fc.nat(9)).map(([id, bytes, end]) => data(id, bytes.subarray(0, end))),
  fc.constantFrom(0, 1, 255).chain((flag) => stream.map((id) => data(id, Buffer.from([flag, 255, 255, 255, 255])))),
  { weight: 3, arbitrary: fc.tuple(stream, fc.nat(13)).map(([id, code]) => frame(FRAME.reset, 0, id, number32(code))) },
  fc.nat(70_000).map((window) => settings([[4, window]])),
  stream.map((id) => frame(FRAME.window, 0, id, number32(1_000))),
  fc.constant(frame(FRAME.ping, 0, 0, Buffer.alloc(8))),
  fc.constant(frame(FRAME.goaway, 0, 0, Buffer.alloc(8))),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);

for (const isTls of [false, true]) {
  const carried = isTls ? "TLS" : "plain text";

  test(`${carried}: whatever frames come, wherever they are cut, others are served and nothing is held`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined });
    const property = fc.asyncProperty(fc.array(fc.array(sent, { maxLength: 8 }), { maxLength: 4 }), async (reads) => {
      const client = await RawClient.connect(served.port, isTls);
      for (const frames of reads) {
        client.send(...frames);
        await new Promise(setImmediate);
      }
      client.socket.end();
      client.socket.resume();
      if (!client.socket.destroyed) await Promise.race([once(client.socket, "close"), answers(served.port, isTls)]);
      client.socket.destroy();
      await answers(served.port, isTls);
      await until("all is given back", () => served.open === 0 && served.held === 0);
      assert.ok(served.defects.every((error) => (error as Error).message === "a defect"));
    });
    await fc.assert(property, { numRuns: isTls ? 60 : 150 });
  });

  test(`${carried}: a reset in the read that brought the call, with any code, ends that call alone`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined });
    const client = await RawClient.connect(served.port, isTls);
    await client.until(() => client.count(FRAME.settings) > 0);
    let id = 1;
    for (const code of [0, 2, 5, 7, 8]) {
      for (const more of [{}, { ":path": "/no" }, { "content-type": "text/html" }, { "grpc-timeout": "now" }]) {
        for (const between of [[], [data(id, messageOf(Buffer.from("x")))], [data(id, Buffer.alloc(5, 255))]]) {
          const frames = between.map((one) => Buffer.from(one));
          for (const one of frames) one.writeUInt32BE(id, 5);
          client.send(callHeaders(id, more), ...frames, frame(FRAME.reset, 0, id, number32(code)));
          id += 2;
        }
      }
    }
    client.send(callHeaders(id), data(id, messageOf(Buffer.from("x")), END_STREAM));
    await client.until(() => client.count(FRAME.headers, id) === 2);
    assert.equal(client.count(FRAME.headers, id), 2);
    assert.equal(served.open, 0);
  });

  test(`${carried}: a call whose client reads nothing and then resets it without an error is over`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined });
    const client = await RawClient.connect(served.port, isTls, settings([[4, 0]]));
    client.send(callHeaders(1));
    for (let i = 0; i < 15; i++) client.send(data(1, messageOf(Buffer.alloc(4_000))));
    await client.until(() => client.count(FRAME.headers) > 0);
    client.send(frame(FRAME.reset, 0, 1, number32(0)));
    await until("over", () => served.open === 0);
  });

  test(`${carried}: a call whose replies are not read is reset after a time, and counted`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined, writeStallMillisMax: 50 });
    const client = await RawClient.connect(served.port, isTls, settings([[4, 0]]));
    client.send(callHeaders(1));
    for (let i = 0; i < 10; i++) client.send(data(1, messageOf(Buffer.alloc(4_000))));
    await client.until(() => client.count(FRAME.reset, 1) > 0);
    await until("over", () => served.open === 0);
    assert.deepEqual(served.failures, ["unread"]);
  });

  test(`${carried}: time runs out for a call that nobody reads, too`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined });
    const client = await RawClient.connect(served.port, isTls, settings([[4, 0]]));
    client.send(callHeaders(1, { "grpc-timeout": "100m" }));
    for (let i = 0; i < 10; i++) client.send(data(1, messageOf(Buffer.alloc(4_000))));
    await client.until(() => client.count(FRAME.reset, 1) > 0);
    await until("over", () => served.open === 0);
    assert.deepEqual(served.failures, ["time-over"]);
  });

  test(`${carried}: a connection that sends nothing does not keep the server from its end`, async (t) => {
    const served = new Served({ tls: isTls ? TLS : undefined });
    const port = await served.server.listen("127.0.0.1", 0);
    const socket = connect(port, "127.0.0.1");
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "connect");
    await answers(port, isTls);
    await served.server.stop(50);
  });

  test(`${carried}: what is no HTTP/2 is closed, and others are served`, async (t) => {
    const served = await Served.start(t, { tls: isTls ? TLS : undefined });
    for (const text of [
      "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
      `\u0016\u0003\u0001${"x".repeat(500)}`,
      "\0".repeat(100),
    ]) {
      const socket = connect(served.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.resume();
      socket.write(text);
      await once(socket, "close");
    }
    await answers(served.port, isTls);
  });
}

test("a client that ends no side of a call that has its status is reset after a time", async (t) => {
  const served = await Served.start(t, { writeStallMillisMax: 50 });
  const client = await RawClient.connect(served.port, false);
  client.send(callHeaders(1, { ":path": "/not/there" }), callHeaders(3, { "content-type": "text/plain" }));
  await client.until(() => client.count(FRAME.reset) === 2);
  assert.deepEqual(
    client.frames.filter(({ type }) => type === FRAME.headers).map(({ flags }) => flags & END_STREAM),
    [END_STREAM, END_STREAM],
    "the status came before",
  );
});

test("a connection of which no frame comes is ended", async (t) => {
  const served = await Served.start(t, { firstFrameMillisMax: 30 });
  const socket = connect(served.port, "127.0.0.1");
  socket.resume();
  await once(socket, "close");
  assert.deepEqual(served.failures, ["silent"]);
});

test("connections beyond the limit are closed and counted, and so are calls, with a status", async (t) => {
  let dropped = 0;
  const served = await Served.start(t, { connectionsMax: 2, callsMax: 3, connectionDropped: () => dropped++ });
  const clients = [await RawClient.connect(served.port, false), await RawClient.connect(served.port, false)];
  const third = await RawClient.connect(served.port, false);
  await third.until(() => third.socket.destroyed);
  assert.equal(dropped, 1);
  for (const client of clients) {
    for (const id of [1, 3]) client.send(callHeaders(id), data(id, messageOf(Buffer.from("x"))));
    await client.until(() => client.count(FRAME.headers) === 2);
  }
  assert.deepEqual(served.failures, ["calls"]);
  assert.equal(served.open, 3);
});

test("messages in pieces are held within the room there is, and given back in whatever way their calls end", async (t) => {
  const ROOM = 100_000;
  let held = 0;
  let most = 0;
  const take = (bytes: number): boolean => {
    if (held + bytes > ROOM) return false;
    held += bytes;
    most = Math.max(most, held);
    return true;
  };
  const served = await Served.start(t, { room: { take, give: (bytes) => void (held -= bytes) } });
  const clients: RawClient[] = [];
  for (let i = 0; i < 6; i++) {
    const client = await RawClient.connect(served.port, false);
    clients.push(client);
    client.send(callHeaders(1), data(1, Buffer.concat([Buffer.from([0]), number32(MAX), Buffer.alloc(10_000)])));
  }
  await until("refused", () => served.failures.length === 3);
  assert.deepEqual(served.failures, ["no-room", "no-room", "no-room"]);
  assert.equal(most, 3 * 32 * 1024);
  clients[0]!.socket.destroy();
  for (const client of clients.slice(1)) client.send(frame(FRAME.reset, 0, 1, number32(8)));
  await until("given back", () => held === 0 && served.open === 0);
});

test("a defect in a method is that call's own", async (t) => {
  const served = await Served.start(t);
  const client = await RawClient.connect(served.port, false);
  client.send(callHeaders(1), data(1, messageOf(Buffer.from("defect"))));
  await client.until(() => client.count(FRAME.headers, 1) > 0);
  assert.deepEqual(served.failures, ["defect"]);
  await answers(served.port, false);
});

for (const [what, begin] of [
  ["continuations without an end", frame(FRAME.headers, 0, 1, fieldsOf(CALL))],
  ["a list of headers without an end", frame(FRAME.headers, END_HEADERS, 1, fieldsOf(CALL))],
] as const) {
  test(`${what} end the connection or the call, and hold nothing`, async (t) => {
    const served = await Served.start(t);
    const client = await RawClient.connect(served.port, false);
    client.send(begin);
    for (let i = 0; i < 2_000; i++) client.send(frame(FRAME.continuation, 0, 1, fieldsOf({ a: "b".repeat(100) })));
    await client.until(() => client.count(FRAME.goaway) > 0);
    await answers(served.port, false);
    await until("over", () => served.open === 0);
  });
}

test("a client of the gRPC library: deadlines and cancellations end its calls on both sides, and the connection stays", async (t) => {
  const served = await Served.start(t);
  const raw = { requestStream: true, responseStream: true, requestSerialize: same, requestDeserialize: same } as const;
  const definition = { Echo: { ...raw, path: "/s/Echo", responseSerialize: same, responseDeserialize: same } };
  const Client = makeGenericClientConstructor(definition, "s");
  const client = new Client(`127.0.0.1:${served.port}`, credentials.createInsecure());
  t.after(() => client.close());
  const open = client["Echo"]!.bind(client) as (options?: object) => ClientDuplexStream<Buffer, Buffer>;
  for (let i = 0; i < 20; i++) {
    const late = open({ deadline: Date.now() + 5 * i });
    late.on("data", () => {});
    late.on("error", () => {});
    late.write(Buffer.from("x"));
    assert.equal(await codeOf(late), 4);
    const left = open();
    left.on("error", () => {});
    left.write(Buffer.from("x"));
    await once(left, "data");
    left.cancel();
    assert.equal(await codeOf(left), 1);
    const whole = open();
    whole.write(Buffer.from("x"));
    assert.deepEqual(await once(whole, "data"), [Buffer.from("xxxx")]);
    whole.end();
    assert.equal(await codeOf(whole), 0);
  }
  await until("over", () => served.open === 0);
  assert.deepEqual(served.defects, []);
});

/** `once` would reject with the error that comes before it. */
function codeOf(call: ClientDuplexStream<Buffer, Buffer>): Promise<number> {
  return new Promise((resolve) => call.on("status", ({ code }: StatusObject) => resolve(code)));
}

function same(bytes: Buffer): Buffer {
  return bytes;
}
