import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { Duplex } from "node:stream";
import { describe, test } from "node:test";

import * as fc from "fast-check";
import { type buildConnector, Client } from "undici";

import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { Attempt } from "#live/upstream/connection/attempt.ts";
import { READ_SLAB } from "#live/upstream/connection/read-slab.ts";
import { UpstreamClients } from "#live/upstream/connection/upstream-clients.ts";
import { UpstreamConnection } from "#live/upstream/connection/upstream-connection.ts";
import type { Upstream } from "#live/upstream/connection/upstream-pools.ts";

/** A socket by whose side a test plays an engine: what arrives is a read into the shared buffer. */
class PlayedSocket extends Duplex {
  sent = "";
  isRef = true;
  readonly #connection: UpstreamConnection;

  constructor(connection: UpstreamConnection) {
    super({ highWaterMark: 65_536 });
    this.#connection = connection;
  }
  ref(): void {
    this.isRef = true;
  }
  unref(): void {
    this.isRef = false;
  }
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent += chunk.toString("latin1");
    done();
  }
  arrives(bytes: Buffer): void {
    if (this.destroyed || this.readableEnded) return;
    bytes.copy(READ_SLAB.read);
    const { onread } = this.#connection.reads;
    (onread.callback as (this: Duplex, bytes: number) => boolean).call(this, bytes.length);
    READ_SLAB.read.fill(0xee, 0, bytes.length);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}

/** A connection to an engine that a test plays, and what is seen of it on both sides. */
class Played {
  readonly sockets: PlayedSocket[] = [];
  readonly connection: UpstreamConnection;
  readonly upstream: Upstream;
  readonly bodies: Buffer[] = [];
  readonly log: unknown[] = [];
  /** Answers of which undici did not see the end. */
  past = 0;
  over = true;

  constructor(bytesMax: number) {
    const connect = (_options: object, done: (error: null, socket: PlayedSocket) => void): PlayedSocket => {
      const socket = new PlayedSocket(this.connection);
      this.sockets.push(socket);
      setImmediate(() => done(null, socket));
      return socket;
    };
    const options = { pipelining: 2, allowH2: false, headersTimeout: 0, bodyTimeout: 0 };
    const makeClient = (): Client => {
      const client = new Client("http://played", {
        ...options,
        connect: connect as unknown as buildConnector.connector,
      });
      const dispatch = client.dispatch.bind(client);
      client.dispatch = (given, handler) => {
        this.bodies.push(given.body as Buffer);
        return dispatch(given, handler);
      };
      return client;
    };
    this.connection = new UpstreamConnection(makeClient, { host: "played", bytesMax });
    const clients = { take: () => this.connection, giveBack: () => {} };
    this.upstream = { inFlight: 0, clients } as unknown as Upstream;
  }

  send(request: {
    readonly path?: string;
    readonly headers?: string[];
    readonly body?: Buffer;
    readonly whole?: boolean;
  }): Attempt {
    this.over = false;
    const seen = { statuses: [] as unknown[], body: "", end: "" };
    this.log.push(seen);
    const ends = (how: string): void => {
      this.over = true;
      seen.end += how;
    };
    const attempt = new Attempt(
      this.upstream,
      { path: "/v1", headers: ["x-a", "b"], body: Buffer.from('{"a":1}'), whole: true, ...request },
      {
        answerStarted: (status, headers) => void seen.statuses.push([status, { ...headers }]),
        answerData: (chunk) => void (seen.body += chunk.toString("latin1")),
        answerEnded: () => {
          if (this.connection.isHeld) this.past++;
          ends("ended");
        },
        attemptReconnects: () => void (seen.end += "reconnects "),
        attemptBroke: (error) => ends(`${error.name} ${error.message}`),
      },
    );
    attempt.send();
    return attempt;
  }

  /** What was sent over all connections, and what came of it. */
  get seen(): unknown {
    return { log: this.log, sent: this.sockets.map(({ sent }) => sent), inFlight: this.upstream.inFlight };
  }
}

interface Exchange {
  readonly headers: string[];
  readonly path: string;
  readonly body: string;
  readonly whole: boolean;
  readonly reads: readonly Buffer[];
  /** Bytes that nobody asked for: before the request, or between the request and its turn. */
  readonly stray: { readonly text: string; readonly late: boolean } | undefined;
  readonly closes: boolean;
}

async function played(exchanges: readonly Exchange[], bytesMax: number): Promise<{ seen: unknown; past: number }> {
  const all = new Played(bytesMax);
  for (const { stray, reads, closes, ...request } of exchanges) {
    if (stray !== undefined && !stray.late) {
      all.sockets.at(-1)?.arrives(Buffer.from(stray.text));
      await turns(2);
    }
    const attempt = all.send({ ...request, body: Buffer.from(request.body) });
    if (stray?.late === true) all.sockets.at(-1)?.arrives(Buffer.from(stray.text));
    await turns(6);
    for (const read of reads) {
      all.sockets.at(-1)!.arrives(read);
      await turn();
    }
    if (closes) {
      all.sockets.at(-1)!.push(null);
      await turns(6);
    }
    await turns(2);
    if (!all.over) attempt.abort();
    await turns(3);
  }
  const seen = structuredClone(all.seen);
  void all.connection.client.destroy();
  await turn();
  return { seen, past: all.past };
}

const JSON_HEAD =
  "HTTP/1.1 200 OK\r\ndate: today\r\nserver: uvicorn\r\ncontent-length: 12\r\ncontent-type: application/json\r\n\r\n";
const BODY = '{"id":"abc"}';
const head = fc.oneof(
  { weight: 5, arbitrary: fc.constant(JSON_HEAD) },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      ...[
        ["200 OK", "404 Not Found"],
        ["200 OK", "200 Fine"],
        ["200 OK", "204 No Content"],
        ["200 OK", "304 Not Modified"],
        ["HTTP/1.1", "HTTP/1.0"],
        ["HTTP/1.1", "\r\nHTTP/1.1"],
        ["HTTP/1.1", "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1"],
        ["HTTP/1.1", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1"],
        ["date: today", "Connection: close"],
        ["date: today", "connection: keep-alive"],
        ["date: today", "Connection: Keep-Alive"],
        ["date: today", "keep-alive: timeout=1"],
        ["date: today", "keep-alive: timeout=75"],
        ["date: today", "Date: today"],
        ["date: today", "date:today"],
        ["date: today", "date:  today "],
        ["date: today", "date: to\u00e9day"],
        ["date: today", "date: a\r\n folded"],
        ["date: today", "date: a\nb: c"],
        ["date: today", "da te: a"],
        ["date: today", "date : a"],
        ["date: today", "date:"],
        ["date: today", "__proto__: a"],
        ["date: today", "constructor: a"],
        ["date: today", "set-cookie: a\r\nset-cookie: b"],
        ["date: today", "content-length: 12"],
        ["date: today", "transfer-encoding: chunked"],
        ["date: today", "trailer: x"],
        ["date: today", "upgrade: x\r\nconnection: upgrade"],
        ["date: today", "date: \u0000"],
        ["content-length: 12", "content-length: 0"],
        ["content-length: 12", "content-length: 11"],
        ["content-length: 12", "content-length: 13"],
        ["content-length: 12", "content-length: 012"],
        ["content-length: 12", "content-length: +12"],
        ["content-length: 12", "content-length: 12, 12"],
        ["content-length: 12", "Content-Length: 12"],
        ["content-length: 12", "transfer-encoding: chunked"],
        ["content-length: 12\r\n", ""],
        ["content-length: 12", "content-length: 12\r\nx-long: " + "l".repeat(5_000)],
        ["content-length: 12", "content-length: 12\r\nx-longer: " + "l".repeat(17_000)],
      ].map(([from, to]) => JSON_HEAD.replace(from!, to!)),
    ),
  },
);
const behind = fc.oneof(
  { weight: 6, arbitrary: fc.constant("") },
  { weight: 1, arbitrary: fc.constantFrom("\r\n", "x", "0\r\n\r\n", `${JSON_HEAD}${BODY}`) },
);
const body = fc.oneof(
  { weight: 6, arbitrary: fc.constant(BODY) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("", 'c\r\n{"id":"abc"}\r\n0\r\n\r\n', 'c\r\n{"id":"abc"}\r\n0\r\nx: y\r\n\r\n', "{"),
  },
);
const exchangeOf = fc
  .record({
    parts: fc.tuple(head, body, behind),
    path: fc.oneof({ weight: 9, arbitrary: fc.constant("/v1") }, { weight: 1, arbitrary: fc.constant("/\u00e9") }),
    value: fc.constantFrom("b", "\u00e9\t"),
    body: fc.constantFrom("{}", '{"b":2}', "y".repeat(20_000)),
    whole: fc.boolean(),
    atParts: fc.boolean(),
    cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 2 }),
    stray: fc.option(
      fc.record({ text: fc.constantFrom("x", "HTTP/1.1 ", `${JSON_HEAD}${BODY}`), late: fc.boolean() }),
      { freq: 6, nil: undefined },
    ),
    closes: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  })
  .map(({ parts, value, atParts, cuts, ...rest }): Exchange => {
    const wire = Buffer.from(parts.join(""), "latin1");
    const places = new Set(cuts.map((share) => Math.floor(share * wire.length)));
    if (atParts) places.add(parts[0].length).add(parts[0].length + parts[1].length);
    const sorted = [...places, wire.length].sort((a, b) => a - b);
    const reads = sorted.map((to, i) => wire.subarray(sorted[i - 1] ?? 0, to)).filter(({ length }) => length > 0);
    return { ...rest, headers: ["x-request-id", "a", "X-Value", value], reads };
  });

function plain(reads: readonly Buffer[], more: Partial<Exchange> = {}): Exchange {
  return {
    headers: ["x-a", "b"],
    path: "/v1",
    body: "{}",
    whole: true,
    stray: undefined,
    closes: false,
    reads,
    ...more,
  };
}

describe("a connection whose plain answers do not pass through undici", () => {
  test("is the same as one whose answers do, whatever comes over it", async () => {
    let past = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(exchangeOf, { minLength: 1, maxLength: 4 }), async (exchanges) => {
        const through = await played(exchanges, 0);
        const own = await played(exchanges, 1_000);
        assert.deepEqual(own.seen, through.seen);
        past += own.past;
      }),
      { numRuns: 150 },
    );
    assert.ok(past > 50, `${past} answers went past undici`);
  });

  test("is the same wherever two reads divide an answer, and what follows it", async () => {
    const wire = Buffer.from(JSON_HEAD + BODY);
    for (let at = 1; at < wire.length; at++) {
      const torn = plain([wire.subarray(0, at), wire.subarray(at)]);
      const all = [plain([wire]), torn, plain([wire])];
      assert.deepEqual((await played(all, 1_000)).seen, (await played(all, 0)).seen, `at ${at}`);
    }
  });

  test("is left to undici where the body is longer than the limit", async () => {
    const wire = Buffer.from(JSON_HEAD + BODY);
    assert.equal((await played([plain([wire]), plain([wire])], BODY.length)).past, 2);
    assert.equal((await played([plain([wire]), plain([wire])], BODY.length - 1)).past, 0);
  });

  test("refuses what undici refuses, and in its words", async () => {
    const wire = Buffer.from(JSON_HEAD + BODY);
    const bad = [
      { path: "/a b" },
      { path: "v1" },
      ...["a\nb", "\u0100", "\u0000"].map((value) => ({ headers: ["x-a", value] })),
    ];
    for (const request of bad) {
      const logs = [];
      for (const bytesMax of [0, 1_000]) {
        const all = new Played(bytesMax);
        all.send({});
        await turns(6);
        all.sockets[0]!.arrives(wire);
        all.send(request);
        await turns(6);
        logs.push(all.log);
        void all.connection.client.destroy();
      }
      assert.equal(logs[0]!.length, 2);
      assert.deepEqual(logs[1], logs[0]);
    }
  });

  test("keeps no body of a request that was answered, and no process alive", async () => {
    const all = new Played(1_000);
    all.send({ body: Buffer.alloc(10_000, "x") });
    await turns(6);
    assert.equal(all.bodies[0]!.length, 10_000);
    assert.equal(all.sockets[0]!.isRef, true);
    all.sockets[0]!.arrives(Buffer.from(JSON_HEAD + BODY));
    assert.equal(all.connection.isHeld, true);
    assert.equal(all.bodies[0]!.length, 0);
    assert.equal(all.sockets[0]!.isRef, false);
    all.send({});
    await turn();
    assert.equal(all.sockets[0]!.isRef, true);
    assert.equal(all.bodies.length, 1, "the second request went through undici");
    void all.connection.client.destroy();
  });

  test("a request that nobody wants any more before its turn is not sent", async () => {
    const all = new Played(1_000);
    all.send({});
    await turns(6);
    all.sockets[0]!.arrives(Buffer.from(JSON_HEAD + BODY));
    const { sent } = all.sockets[0]!;
    all.send({ path: "/second" }).abort();
    await turns(3);
    assert.equal(all.sockets[0]!.sent, sent);
    assert.equal(all.upstream.inFlight, 0);
    void all.connection.client.destroy();
  });
});

test("a kept connection that is reset before a request was written over it is made anew for that request", async () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const answer = Buffer.from(JSON_HEAD + BODY);
  for (const bytesMax of [0, 1_000])
    for (const whole of [false, true])
      for (const late of [0, 1]) {
        const all = new Played(bytesMax);
        all.send({ whole });
        await turns(6);
        all.sockets[0]!.arrives(answer);
        await turns(2);
        if (late === 0) all.sockets[0]!.destroy(reset);
        all.send({ whole });
        if (late === 1) all.sockets[0]!.destroy(reset);
        await turns(8);
        all.sockets[1]!.arrives(answer);
        await turns(2);
        const name = `${bytesMax} ${whole} ${late}`;
        assert.match((all.log[1] as { end: string }).end, /^(reconnects )?ended$/, name);
        assert.match(all.sockets[1]!.sent, /^POST /, name);
        assert.deepEqual([all.sockets.length, all.upstream.inFlight], [2, 0], name);
        void all.connection.client.destroy();
      }
});

describe("connections to a real socket", () => {
  /** An engine that answers each request with what it is given. */
  async function engine(
    answer: (socket: Socket, request: number) => void,
  ): Promise<{ url: string; readonly close: () => void; sockets: Set<Socket> }> {
    const sockets = new Set<Socket>();
    let requests = 0;
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => {});
      socket.on("data", () => answer(socket, requests++));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const close = (): void => {
      server.close();
      for (const socket of sockets) socket.destroy();
    };
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close, sockets };
  }

  interface Asked {
    readonly attempt: Attempt;
    readonly seen: { bytes: number; reconnects: number };
    readonly end: Promise<string>;
  }

  function ask(clients: UpstreamClients, onData?: (attempt: Attempt) => void): Asked {
    const seen = { bytes: 0, reconnects: 0 };
    const { promise, resolve } = Promise.withResolvers<string>();
    const attempt: Attempt = new Attempt(
      { inFlight: 0, clients } as unknown as Upstream,
      { path: "/", headers: [], body: Buffer.from("{}"), whole: true },
      {
        answerStarted: () => {},
        answerData: (chunk) => {
          seen.bytes += chunk.length;
          onData?.(attempt);
        },
        answerEnded: () => resolve("ended"),
        attemptReconnects: () => void seen.reconnects++,
        attemptBroke: (error) => resolve(error.message),
      },
    );
    attempt.send();
    return { attempt, seen, end: promise };
  }

  test("a kept connection that the engine closes as it is used again is made anew", async () => {
    const { url, close } = await engine((socket, request) => {
      if (request === 1) socket.resetAndDestroy();
      else socket.write(JSON_HEAD + BODY);
    });
    const clients = new UpstreamClients(url, DEFAULT_LIMITS);
    assert.equal(await ask(clients).end, "ended");
    const second = ask(clients);
    assert.equal(await second.end, "ended");
    assert.deepEqual(second.seen, { bytes: BODY.length, reconnects: 1 });
    await clients.close();
    close();
  });

  test("one that is made for the request is the engine's to end, and so is one over which an answer began", async () => {
    const whole = JSON_HEAD + BODY;
    const resets = async (answers: readonly string[]): Promise<readonly [requests: number, reconnects: number]> => {
      let requests = 0;
      const { url, close } = await engine((socket, request) => {
        requests++;
        const answer = answers[request] ?? "";
        if (answer === "") socket.resetAndDestroy();
        else if (answer === whole) socket.write(answer);
        else socket.end(answer);
      });
      const clients = new UpstreamClients(url, DEFAULT_LIMITS);
      let reconnects = 0;
      for (const _ of answers) {
        const asked = ask(clients);
        await asked.end;
        ({ reconnects } = asked.seen);
      }
      await clients.close();
      close();
      return [requests, reconnects];
    };
    assert.deepEqual(await resets([""]), [1, 0]);
    assert.deepEqual(await resets([whole, JSON_HEAD.slice(0, 40)]), [2, 0]);
    assert.deepEqual(await resets([whole, JSON_HEAD + BODY.slice(0, 4)]), [2, 0]);
    assert.deepEqual(await resets([whole, ""]), [3, 1]);
  });

  test("one that was idle for as long as it may be is closed, and closing waits for none that is held", async () => {
    const { url, close, sockets } = await engine((socket) => socket.write(JSON_HEAD + BODY));
    const idle = new UpstreamClients(url, { ...DEFAULT_LIMITS, upstreamKeepAliveMillis: 20 });
    assert.equal(await ask(idle).end, "ended");
    const [socket] = sockets;
    if (socket?.destroyed === false) await once(socket, "close");
    assert.equal(await ask(idle).end, "ended");
    const kept = new UpstreamClients(url, { ...DEFAULT_LIMITS, upstreamKeepAliveMillis: 3_600_000 });
    assert.equal(await ask(kept).end, "ended");
    await Promise.all([idle.close(), kept.close()]);
    close();
  });

  test("closing waits for an answer that is under way", async () => {
    const { url, close, sockets } = await engine((socket, request) => {
      if (request === 0) socket.write(JSON_HEAD + BODY);
    });
    const clients = new UpstreamClients(url, DEFAULT_LIMITS);
    await ask(clients).end;
    const second = ask(clients);
    await turns(2);
    const closed = clients.close();
    [...sockets][0]!.write(JSON_HEAD + BODY);
    assert.equal(await second.end, "ended");
    await closed;
    close();
  });

  test("a client that does not read holds its engine up, and gets all once it does", async () => {
    const bytes = 32 << 20;
    const { url, close, sockets } = await engine((socket, request) => {
      if (request === 0) return void socket.write(JSON_HEAD + BODY);
      socket.write(JSON_HEAD.replace("12", String(bytes)));
      socket.write(Buffer.alloc(bytes, 7));
    });
    const clients = new UpstreamClients(url, { ...DEFAULT_LIMITS, plainAnswerBytesMax: bytes });
    await ask(clients).end;
    let paused = false;
    const second = ask(clients, (attempt) => {
      if (!paused) attempt.pause();
      paused = true;
    });
    while (second.seen.bytes === 0) await turn();
    await turns(20);
    assert.ok(second.seen.bytes < 1 << 20, `${second.seen.bytes} bytes were read by one that is paused`);
    assert.ok([...sockets][0]!.writableLength > 0);
    second.attempt.resume();
    assert.equal(await second.end, "ended");
    assert.equal(second.seen.bytes, bytes);
    await clients.close();
    close();
  });
});
