import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import * as fc from "fast-check";
import { type buildConnector, Client } from "undici";
import { Attempt } from "#live/upstream/connection/attempt.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { READ_SLAB, UpstreamReads } from "#live/upstream/connection/upstream-reads.ts";
import { UpstreamClients, UpstreamConnection, type Upstream } from "#live/upstream/connection/upstream-pools.ts";

/** Sends what it is given in turns over all connections at once, and ends them. */
async function exchange(texts: readonly (readonly Buffer[])[]): Promise<Buffer[][]> {
  const server = createServer((socket) => socket.setNoDelay(true)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const pairs: { readonly far: Socket; readonly pieces: Buffer[]; readonly ended: Promise<unknown> }[] = [];
  for (let i = 0; i < texts.length; i++) {
    const accepted = once(server, "connection");
    const near = connect({ port, host: "127.0.0.1", onread: new UpstreamReads().onread });
    const pieces: Buffer[] = [];
    near.on("readable", () => {
      for (let piece = near.read() as Buffer | null; piece !== null; piece = near.read() as Buffer | null)
        pieces.push(piece);
    });
    pairs.push({ far: ((await accepted) as [Socket])[0], pieces, ended: once(near, "end") });
  }
  for (let turn = 0; turn < Math.max(...texts.map(({ length }) => length)); turn++) {
    for (const [i, { far }] of pairs.entries()) if (texts[i]![turn] !== undefined) far.write(texts[i]![turn]!);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const { far } of pairs) far.end();
  await Promise.all(pairs.map(({ ended }) => ended));
  server.close();
  return pairs.map(({ pieces }) => pieces);
}

test("several connections get what was sent to each, and a piece that is kept never changes", async () => {
  const piece = fc.tuple(
    fc.oneof(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1_000, max: 150_000 })),
    fc.nat(255),
  );
  const texts = fc.array(
    fc.array(piece, { minLength: 1, maxLength: 12 }).map((all) => all.map(([bytes, of]) => Buffer.alloc(bytes, of))),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(texts, async (sent) => {
      const received = await exchange(sent);
      for (const [i, pieces] of received.entries()) assert.deepEqual(Buffer.concat(pieces), Buffer.concat(sent[i]!));
    }),
    { numRuns: 25 },
  );
});

test("one that does not read holds its sender up as every socket does", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = connect({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    onread: new UpstreamReads().onread,
  });
  const [far] = (await accepted) as [Socket];
  const bytes = 64 << 20;
  far.end(Buffer.alloc(bytes, 7));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(near.readableLength < 1 << 20, `${near.readableLength} bytes are held`);
  assert.ok(far.writableLength > 0);
  let received = 0;
  for await (const piece of near) received += (piece as Buffer).length;
  assert.equal(received, bytes);
  server.close();
});

/**
 * A socket by whose side a test plays an engine: what it "reads" arrives as a read into the shared buffer, or as Node's
 * own would.
 */
class PlayedSocket extends Duplex {
  readonly sent: Buffer[] = [];
  readonly #reads: UpstreamReads | undefined;

  constructor(reads: UpstreamReads | undefined) {
    super({ highWaterMark: 65_536 });
    this.#reads = reads;
  }
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.sent.push(chunk);
    done();
  }
  arrives(bytes: Buffer): void {
    if (this.destroyed) return;
    if (this.#reads === undefined) return void this.push(bytes);
    bytes.copy(READ_SLAB.read);
    (this.#reads.onread.callback as (this: Duplex, bytes: number) => boolean).call(this, bytes.length);
    READ_SLAB.read.fill(0xee, 0, bytes.length);
  }
}

/** What a request's sender gets of the answer, and what becomes of the connection. */
interface Seen {
  readonly statuses: number[];
  body: string;
  end: string;
  /** Connections that the same client made for this request and another one behind it. */
  connections: number;
}

/** Plays the reads to a request, then asks once more. */
async function played(
  reads: readonly Buffer[],
  closes: boolean,
  direct: boolean,
  sinks: { pieces: number },
): Promise<Seen> {
  const sockets: PlayedSocket[] = [];
  const connect = (_options: object, done: (error: null, socket: PlayedSocket) => void): PlayedSocket => {
    const socket = new PlayedSocket(direct ? own : undefined);
    sockets.push(socket);
    setImmediate(() => done(null, socket));
    return socket;
  };
  const client = new Client("http://played", {
    pipelining: 2,
    connect: connect as unknown as buildConnector.connector,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const connection = new UpstreamConnection(() => client);
  const own = connection.reads;
  const seen: Seen = { statuses: [], body: "", end: "", connections: 0 };
  const upstream = { inFlight: 0, clients: { take: () => connection, giveBack: () => {} } };
  const send = (): Attempt => {
    const attempt = new Attempt(
      upstream as unknown as Upstream,
      { path: "/", headers: [], body: Buffer.from("{}") },
      {
        answerStarted: (status) => void seen.statuses.push(status),
        answerData: (chunk) => void (seen.body += chunk.toString("latin1")),
        answerEnded: () => void (seen.end += "ended "),
        attemptReconnects: () => void (seen.end += "reconnects "),
        attemptBroke: (error) => void (seen.end += `${error.name} `),
      },
    );
    const piece = attempt.piece.bind(attempt);
    attempt.piece = (bytes) => {
      sinks.pieces++;
      piece(bytes);
    };
    attempt.send();
    return attempt;
  };
  send();
  for (let i = 0; i < 5; i++) await turn();
  for (const read of reads) {
    sockets[0]!.arrives(read);
    await turn();
  }
  if (closes) sockets.at(0)!.push(null);
  for (let i = 0; i < 3; i++) await turn();
  const first = { ...seen, statuses: [...seen.statuses] };
  if (upstream.inFlight === 0) {
    send();
    for (let i = 0; i < 5; i++) await turn();
    first.connections = sockets.length;
  }
  void client.destroy();
  await turn();
  return first;
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const EVENT_STREAM_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const heads = fc.constantFrom(
  EVENT_STREAM_HEAD,
  EVENT_STREAM_HEAD,
  `HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n${EVENT_STREAM_HEAD}`,
  EVENT_STREAM_HEAD.replace("content-type", "Connection: close\r\nContent-Type"),
  EVENT_STREAM_HEAD.replace("transfer-encoding: chunked", "content-length: 11"),
  EVENT_STREAM_HEAD.replace("transfer-encoding: chunked\r\n", ""),
  EVENT_STREAM_HEAD.replace("text/event-stream", "application/json"),
  EVENT_STREAM_HEAD.replace("transfer", "content-length: 4\r\ntransfer"),
);
const eventChunk = fc
  .integer({ min: 1, max: 60 })
  .map((length) => `${length.toString(16)}\r\n${"data: {} of some length\n\n".repeat(3).slice(0, length)}\r\n`);
const ends = fc.constantFrom(
  "0\r\n\r\n",
  "0\r\n\r\n",
  "0\r\nx-trailer: a\r\n\r\n",
  "00;last=1\r\n\r\n",
  "",
  "5\r\nhel",
  "5\r\nhelloX",
  "5\r\nhello0\r\n\r\n",
  "5;name=value\r\nhello\r\n0\r\n\r\n",
  "zz\r\n",
  "0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
  "0\r\n\r\nstray",
  "123456789abcdef012\r\n",
);
const answers = fc.record({
  head: heads,
  chunks: fc.array(eventChunk, { maxLength: 5 }),
  end: ends,
  /** Where reads end: behind head and chunks, and at drawn places. */
  whole: fc.boolean(),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 3 }),
  closes: fc.boolean(),
});

function readsOf(parts: readonly string[], whole: boolean, cuts: readonly number[]): Buffer[] {
  const wire = Buffer.from(parts.join(""), "latin1");
  const places = new Set(cuts.map((share) => Math.floor(share * wire.length)));
  let at = 0;
  for (const part of whole ? parts : []) places.add((at += part.length));
  const sorted = [...places, wire.length].sort((a, b) => a - b);
  return sorted.map((to, i) => wire.subarray(sorted[i - 1] ?? 0, to)).filter(({ length }) => length > 0);
}

test("an answer is the same past undici as through it, whatever its head, its chunks, its end and its reads", async () => {
  const sinks = { pieces: 0 };
  await fc.assert(
    fc.asyncProperty(answers, async ({ head, chunks, end, whole, cuts, closes }) => {
      const reads = readsOf([head, ...chunks, end], whole, cuts);
      const through = await played(reads, closes, false, sinks);
      const past = await played(reads, closes, true, sinks);
      assert.deepEqual(past, through);
    }),
    { numRuns: 150 },
  );
  assert.ok(sinks.pieces > 0, "no piece went past undici");
});

test("past undici too, a client that does not read holds its engine up, and gets all once it does", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const clients = new UpstreamClients(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, DEFAULT_LIMITS);
  const seen = { bytes: 0, ended: false };
  let paused = false;
  let attempt!: Attempt;
  const done = new Promise<void>((resolve) => {
    attempt = new Attempt(
      { inFlight: 0, clients } as unknown as Upstream,
      { path: "/", headers: [], body: Buffer.from("{}") },
      {
        answerStarted: () => {},
        answerData: (chunk) => {
          seen.bytes += chunk.length;
          // The second read is the first one past undici.
          if (seen.bytes === 4 || paused) return;
          paused = true;
          attempt.pause();
        },
        answerEnded: () => {
          seen.ended = true;
          resolve();
        },
        attemptReconnects: () => {},
        attemptBroke: () => resolve(),
      },
    );
    attempt.send();
  });
  const [far] = (await accepted) as [Socket];
  await once(far, "data");
  far.write(`${EVENT_STREAM_HEAD}4\r\nhead\r\n`);
  while (seen.bytes === 0) await turn();
  const bytes = 32 << 20;
  far.write(
    Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), Buffer.alloc(bytes, 7), Buffer.from("\r\n0\r\n\r\n")]),
  );
  while (seen.bytes === 4) await turn();
  for (let i = 0; i < 20; i++) await turn();
  assert.ok(seen.bytes < 1 << 20, `${seen.bytes} bytes were read by one that is paused`);
  assert.ok(far.writableLength > 0);
  attempt.resume();
  await done;
  assert.deepEqual(seen, { bytes: 4 + bytes, ended: true });
  await clients.close();
  far.destroy();
  server.close();
});
