import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { randomFor } from "#core/base/random.ts";
import type { CallReceiver, GrpcCall } from "#picker/grpc/call.ts";
import { GrpcServer, type GrpcServerOptions } from "#picker/grpc/grpc-server.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import { TLS } from "./proxy.ts";
import { CALL, callHeaders, END_STREAM, frame, FRAME, LIMITS, messageOf, RawClient } from "./raw-http2.ts";

const HOUR = 3_600_000;
const X = messageOf(Buffer.from("x"));

class Served {
  renewed = 0;
  readonly failures: string[] = [];
  server!: GrpcServer;
  port = 0;

  isTls = false;

  static async start(t: TestContext, options: Partial<GrpcServerOptions>, idleMillisMax?: number): Promise<Served> {
    const served = new Served();
    served.isTls = options.tls !== undefined;
    const echo = (call: GrpcCall): CallReceiver => ({
      message: (bytes) => call.send(messageOf(bytes)),
      clientEnded: () => call.end(),
      closed: () => {},
      ...(idleMillisMax !== undefined && { idleMillisMax }),
    });
    served.server = new GrpcServer({
      ...LIMITS,
      methods: new Map([["/s/Echo", echo]]),
      failed: (why) => served.failures.push(why),
      connectionRenewed: () => served.renewed++,
      ...options,
    });
    served.port = await served.server.listen("127.0.0.1", 0);
    t.after(() => served.server.stop(0));
    return served;
  }

  connect(t: TestContext): ClientHttp2Session {
    const scheme = this.isTls ? "https" : "http";
    const session = connect(`${scheme}://127.0.0.1:${this.port}`, { rejectUnauthorized: false });
    session.on("error", () => {});
    t.after(() => session.destroy());
    return session;
  }
}

/** Opens a call and has its first message answered. */
async function opened(session: ClientHttp2Session): Promise<ClientHttp2Stream> {
  const call = session.request(CALL);
  call.on("error", () => {});
  call.write(X);
  await once(call, "data");
  return call;
}

async function statusOf(call: ClientHttp2Stream): Promise<unknown> {
  call.resume();
  const [trailers] = (await once(call, "trailers")) as [Record<string, unknown>];
  return trailers["grpc-status"];
}

for (const isTls of [false, true]) {
  const carried = isTls ? "TLS" : "plain text";
  const tls = isTls ? TLS : undefined;

  test(`${carried}: at its age a connection is asked to end, what is open on it goes on, and nothing is refused`, async (t) => {
    const served = await Served.start(t, { tls, connectionAgeMillisMax: 300, connectionGraceMillis: HOUR });
    const session = served.connect(t);
    const call = await opened(session);
    await once(session, "goaway");
    assert.equal(served.renewed, 1);
    call.write(X);
    await once(call, "data");
    call.end();
    assert.equal(await statusOf(call), "0");
    if (!session.destroyed) await once(session, "close");
    const next = await opened(served.connect(t));
    next.end();
    assert.equal(await statusOf(next), "0", "another connection is served");
    assert.deepEqual(served.failures, []);
  });

  test(`${carried}: calls that outlive the grace are cut and counted`, async (t) => {
    const served = await Served.start(t, { tls, connectionAgeMillisMax: 50, connectionGraceMillis: 50 });
    const call = await opened(served.connect(t));
    await once(call, "close");
    assert.deepEqual([served.renewed, served.failures], [1, ["age-cut"]]);
  });

  test(`${carried}: a silent client is asked, and stays as long as it answers`, async (t) => {
    const served = await Served.start(t, { tls, pingMillis: 20, pingAnswerMillisMax: HOUR });
    const session = served.connect(t);
    let pings = 0;
    session.on("ping", () => pings++);
    const call = await opened(session);
    await until("asked again and again", () => pings >= 3);
    call.end();
    assert.equal(await statusOf(call), "0");
    assert.deepEqual(served.failures, []);
  });

  test(`${carried}: a client that does not answer is cut, with its calls`, async (t) => {
    const served = await Served.start(t, { tls, pingMillis: 20, pingAnswerMillisMax: 20 });
    // It answers settings, and no ping.
    const client = await RawClient.connect(served.port, isTls);
    client.send(callHeaders(1), frame(FRAME.data, 0, 1, X));
    await client.until(() => false);
    assert.ok(client.count(FRAME.ping) > 0);
    assert.deepEqual(served.failures, ["no-pong"]);
  });

  test(`${carried}: clients that leave in any way while the server informs and asks them end nothing but themselves`, async (t) => {
    const served = await Served.start(t, { tls, pingMillis: 1, pingAnswerMillisMax: HOUR });
    const random = randomFor(5, 1);
    const informing = setInterval(() => void served.server.notify(), 1);
    t.after(() => clearInterval(informing));
    for (let client = 0; client < 120; client++) {
      const raw = await RawClient.connect(served.port, isTls);
      const isAsking = random.below(4) > 0;
      if (isAsking) raw.send(callHeaders(1), frame(FRAME.data, END_STREAM, 1, messageOf(Buffer.alloc(60_000))));
      await sleep(random.below(4));
      if (random.below(2) === 1) raw.socket.pause();
      if (random.below(3) === 0) raw.socket.destroy();
      else raw.socket.end();
      await sleep(random.below(3));
    }
    clearInterval(informing);
    const call = await opened(served.connect(t));
    call.end();
    assert.equal(await statusOf(call), "0");
  });
}

test("connections made at once do not come of age at once", async (t) => {
  const ages: number[] = [];
  const began = performance.now();
  const served = await Served.start(t, {
    connectionAgeMillisMax: 400,
    connectionRenewed: () => ages.push(performance.now() - began),
  });
  for (let i = 0; i < 20; i++) served.connect(t);
  await until("all of age", () => ages.length === 20);
  assert.ok(ages.at(-1)! - ages[0]! > 20, `${ages.at(-1)! - ages[0]!} ms between the first and the last`);
});

test("a call without a message is ended with a status, and so is one whose client has gone quiet", async (t) => {
  const served = await Served.start(t, { firstMessageMillisMax: 50 }, 200);
  const session = served.connect(t);
  const silent = session.request(CALL);
  const [head] = (await once(silent, "response")) as [Record<string, unknown>];
  assert.equal(head["grpc-status"], "4");
  const quiet = await opened(session);
  for (let i = 0; i < 5; i++) {
    quiet.write(X);
    await once(quiet, "data");
  }
  assert.equal(await statusOf(quiet), "4");
  assert.deepEqual(served.failures, ["no-message", "idle"]);
});

test("a call that may be quiet for ever is, once it has asked", async (t) => {
  const served = await Served.start(t, { firstMessageMillisMax: 30 });
  const client = await RawClient.connect(served.port, false);
  client.send(callHeaders(1), frame(FRAME.data, 0, 1, X), callHeaders(3));
  await client.until(() => client.count(FRAME.headers, 3) > 0);
  assert.deepEqual(served.failures, ["no-message"], "of the one without a message");
  client.send(frame(FRAME.data, END_STREAM, 1, X));
  await client.until(() => client.count(FRAME.data, 1) === 2);
});
