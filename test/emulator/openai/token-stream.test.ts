import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { newSequence, type EmulatedSequence } from "#emulator/generation/sequence.ts";
import { newExchange } from "#emulator/http/exchange.ts";
import { TokenStream } from "#emulator/openai/token-stream.ts";

/** A client whose reading can be stopped: bytes wait until it reads on. */
class Client extends Duplex {
  received = "";
  reading = true;
  #waiting: (() => void) | undefined;

  constructor() {
    super({ highWaterMark: 64 });
  }

  override _read(): void {
    // Nothing comes from this side.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.received += chunk.toString();
    if (this.reading) done();
    else this.#waiting = done;
  }

  readOn(): void {
    this.reading = true;
    this.#waiting?.();
    this.#waiting = undefined;
  }

  get events(): readonly string[] {
    return [...this.received.matchAll(/data: (.*)\n\n/g)].map((match) => match[1] ?? "");
  }
}

class PlainStream extends TokenStream {
  protected open(): void {
    this.stream.data("open");
  }

  protected tokens(sequence: EmulatedSequence, from: number, to: number, last: boolean): void {
    this.stream.data(`${sequence.choice}:${from}-${to}${last ? "!" : ""}`);
  }

  protected close(): void {
    this.stream.data("close");
  }
}

async function open(
  choices: number,
): Promise<{ client: Client; stream: PlainStream; sequences: readonly EmulatedSequence[] }> {
  const client = new Client();
  const plan = { tokens: new Int32Array(9), texts: [], finish: "length", stopReason: null } as const;
  const sequences = Array.from({ length: choices }, (_, choice) =>
    newSequence({
      id: String(choice),
      choice,
      prompt: new Int32Array(1),
      plan,
      hashes: new Int32Array(0),
      maxTokens: 9,
      group: { n: choices, open: choices, producedMax: 0 },
      adapter: "",
      cacheSalt: "",
      priority: 0,
      cacheRead: true,
      abortAfterTokens: undefined,
      transfer: undefined,
    }),
  );
  const stream = await new Promise<PlainStream>((resolve) => {
    const server = createServer((request, response) => {
      resolve(new PlainStream(newExchange(request, response, ""), sequences));
    });
    server.emit("connection", client);
    client.push("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  });
  await settled();
  return { client, stream, sequences };
}

test("a client that reads gets one event per token, choices in turns", async () => {
  const { client, stream, sequences } = await open(2);
  const [first, second] = sequences as [EmulatedSequence, EmulatedSequence];
  first.produced = 1;
  stream.advance();
  await settled();
  first.produced = 3;
  second.produced = 2;
  stream.advance();
  await settled();
  first.finish = "length";
  second.finish = "abort";
  stream.advance();
  await settled();
  const expected = ["open", "0:0-1", "0:1-2", "1:0-1", "0:2-3", "1:1-2", "0:3-3!", "1:2-2!", "close"];
  assert.deepEqual(client.events, expected);
  assert.ok(client.received.endsWith("0\r\n\r\n"));
});

test("tokens for a client that does not read wait, and come as one event when it reads on", async () => {
  const { client, stream, sequences } = await open(1);
  const [sequence] = sequences as [EmulatedSequence];
  client.reading = false;
  for (let produced = 1; produced <= 9; produced++) {
    sequence.produced = produced;
    if (produced === 9) sequence.finish = "length";
    stream.advance();
    await settled();
  }
  const before = client.events.length;
  assert.ok(before <= 2, `${before} events while it did not read`);
  client.readOn();
  await settled();
  assert.equal(client.events.at(-1), "close");
  const tokens = client.events.filter((event) => event.includes(":"));
  // A few fit into the buffer, the others are one.
  assert.match(tokens.at(-1) ?? "", /^0:[0-4]-9!$/, tokens.join(" "));
  // Every token once, in order.
  let next = 0;
  for (const event of tokens) {
    const [from, to] = event.slice(2).replace("!", "").split("-").map(Number);
    assert.equal(from, next);
    next = to ?? 0;
  }
  assert.equal(next, 9);
});

function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
