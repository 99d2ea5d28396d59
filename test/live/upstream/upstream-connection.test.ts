import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { Duplex } from "node:stream";
import { describe, test } from "node:test";
import { type buildConnector, Client } from "undici";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { Attempt } from "#live/upstream/connection/attempt.ts";
import { READ_SLAB } from "#live/upstream/connection/upstream-reads.ts";
import { UpstreamClients, UpstreamConnection, type Upstream } from "#live/upstream/connection/upstream-pools.ts";

/** A socket by whose side a test plays an engine: what arrives is a read into the shared buffer. */
class PlayedSocket extends Duplex {
  sent = "";
  readonly #connection: UpstreamConnection;

  constructor(connection: UpstreamConnection) {
    super({ highWaterMark: 65_536 });
    this.#connection = connection;
  }
  ref(): void {}
  unref(): void {}
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
  readonly log: unknown[] = [];

  constructor() {
    const connect = (_options: object, done: (error: null, socket: PlayedSocket) => void): PlayedSocket => {
      const socket = new PlayedSocket(this.connection);
      this.sockets.push(socket);
      setImmediate(() => done(null, socket));
      return socket;
    };
    const options = { pipelining: 2, allowH2: false, headersTimeout: 0, bodyTimeout: 0 };
    this.connection = new UpstreamConnection(
      () => new Client("http://played", { ...options, connect: connect as unknown as buildConnector.connector }),
    );
    const clients = { take: () => this.connection, giveBack: () => {} };
    this.upstream = { inFlight: 0, clients } as unknown as Upstream;
  }

  send(): void {
    const seen = { statuses: [] as unknown[], body: "", end: "" };
    this.log.push(seen);
    const attempt = new Attempt(
      this.upstream,
      { path: "/v1", headers: ["x-a", "b"], body: Buffer.from('{"a":1}') },
      {
        answerStarted: (status, headers) => void seen.statuses.push([status, { ...headers }]),
        answerData: (chunk) => void (seen.body += chunk.toString("latin1")),
        answerEnded: () => void (seen.end += "ended"),
        attemptReconnects: () => void (seen.end += "reconnects "),
        attemptBroke: (error) => void (seen.end += `${error.name} ${error.message}`),
      },
    );
    attempt.send();
  }
}

const JSON_HEAD =
  "HTTP/1.1 200 OK\r\ndate: today\r\nserver: uvicorn\r\ncontent-length: 12\r\ncontent-type: application/json\r\n\r\n";
const BODY = '{"id":"abc"}';

test("a kept connection that is reset before a request was written over it is made anew for that request", async () => {
  const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  const answer = Buffer.from(JSON_HEAD + BODY);
  for (const late of [false, true]) {
    const all = new Played();
    all.send();
    await turns(6);
    all.sockets[0]!.arrives(answer);
    await turns(2);
    if (!late) all.sockets[0]!.destroy(reset);
    all.send();
    if (late) all.sockets[0]!.destroy(reset);
    await turns(8);
    all.sockets[1]!.arrives(answer);
    await turns(2);
    assert.match((all.log[1] as { end: string }).end, /^(reconnects )?ended$/, String(late));
    assert.match(all.sockets[1]!.sent, /^POST /, String(late));
    assert.deepEqual([all.sockets.length, all.upstream.inFlight], [2, 0], String(late));
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
      { path: "/", headers: [], body: Buffer.from("{}") },
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
    const clients = new UpstreamClients(url, DEFAULT_LIMITS);
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
