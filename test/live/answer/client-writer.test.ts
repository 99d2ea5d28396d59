import assert from "node:assert/strict";
import { once } from "node:events";
import { type Server, type ServerResponse, createServer } from "node:http";
import { type AddressInfo, type Socket, connect } from "node:net";
import { afterEach, test } from "node:test";
import { ClientWriter } from "#live/answer/client-writer.ts";

const HEADERS = ["content-type", "text/event-stream"];
/** A byte that nothing else in an answer has. */
const MARK = 0xff;
const GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

const open: (Server | Socket)[] = [];
afterEach(() => {
  for (const one of open.splice(0)) {
    if ("closeAllConnections" in one) one.close().closeAllConnections();
    else one.destroy();
  }
});

/** A server whose answers are written by hand, and a client that sends it a text. */
async function answering(requests: string, count: number): Promise<{ answers: ServerResponse[]; client: Socket }> {
  const answers: ServerResponse[] = [];
  const server = createServer((_incoming, response) => void answers.push(response)).listen(0, "127.0.0.1");
  open.push(server);
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  open.push(client);
  client.write(requests);
  while (answers.length < count) await once(server, "request");
  return { answers, client };
}

async function textOf(client: Socket, until: string): Promise<string> {
  let text = "";
  for await (const piece of client.iterator({ destroyOnReturn: false })) {
    text += String(piece);
    if (text.endsWith(until)) break;
  }
  return text;
}

function body(text: string): string {
  return text.slice(text.indexOf("\r\n\r\n") + 4);
}

test("pieces arrive in order, each a chunk, with the mark of the end behind them", async () => {
  const { answers, client } = await answering(GET, 1);
  const writer = new ClientWriter(answers[0]!);
  writer.headAndFirst(200, HEADERS, Buffer.from("one"));
  writer.write(Buffer.from("two"));
  writer.write(Buffer.alloc(0));
  writer.write(Buffer.from("three"));
  writer.end();
  assert.equal(body(await textOf(client, "0\r\n\r\n")), "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
});

test("an answer waits for the one before it on the same connection, and goes on once that is done", async () => {
  const { answers, client } = await answering(GET + GET, 2);
  const [first, second] = answers.map((answer) => new ClientWriter(answer));
  second!.headAndFirst(200, HEADERS, Buffer.from("early"));
  second!.write(Buffer.from("early too"));
  first!.headAndFirst(200, HEADERS, Buffer.from("late"));
  first!.end();
  await once(answers[0]!, "finish");
  second!.write(Buffer.from("then"));
  second!.end();
  const text = await textOf(client, "then\r\n0\r\n\r\n");
  assert.equal(text.match(/200 OK/g)?.length, 2);
  assert.ok(text.indexOf("late\r\n0\r\n\r\n") < text.indexOf("early\r\n9\r\nearly too\r\n4\r\nthen"));
});

test("one that does not read makes writing stop, and it goes on once it reads", async () => {
  const { answers, client } = await answering(GET, 1);
  const writer = new ClientWriter(answers[0]!);
  writer.headAndFirst(200, HEADERS, Buffer.from("x"));
  const piece = Buffer.alloc(65_536, MARK);
  let written = 0;
  while (writer.write(piece)) written += piece.length;
  written += piece.length;
  assert.equal(writer.blocked, true);
  const drained = new Promise<void>((resolve) => {
    writer.onDrain(() => assert.fail("asked again, only the last one is called"));
    writer.onDrain(resolve);
  });
  let received = 0;
  const allCame = new Promise<void>((resolve) => {
    client.on("data", (data: Buffer) => {
      received += data.filter((byte) => byte === MARK).length;
      if (received === written) resolve();
    });
  });
  await drained;
  assert.equal(writer.blocked, false);
  writer.end();
  await once(answers[0]!, "finish");
  await allCame;
});

test("writing to a client that left harms nothing", async () => {
  const { answers, client } = await answering(GET, 1);
  const writer = new ClientWriter(answers[0]!);
  writer.headAndFirst(200, HEADERS, Buffer.from("x"));
  writer.write(Buffer.from("y"));
  client.destroy();
  await once(answers[0]!, "close");
  writer.write(Buffer.from("z"));
  writer.end();
  await new Promise((resolve) => setImmediate(resolve));
});

test("a client of HTTP/1.0 gets no chunks", async () => {
  const { answers, client } = await answering("GET / HTTP/1.0\r\n\r\n", 1);
  const writer = new ClientWriter(answers[0]!);
  writer.headAndFirst(200, HEADERS, Buffer.from("one"));
  writer.write(Buffer.from("two"));
  writer.end();
  assert.equal(body(await textOf(client, "two")), "onetwo");
});

test("the memory of a whole answer is given back once all of it went out, where nobody else reads it", async () => {
  for (const done of [true, false]) {
    const { answers, client } = await answering(GET, 1);
    const answer = Buffer.allocUnsafeSlow(3_000_000).fill(MARK);
    new ClientWriter(answers[0]!).whole(200, ["content-length", String(answer.length)], answer, done);
    let got = 0;
    for await (const piece of client.iterator({ destroyOnReturn: false })) {
      for (const byte of piece as Buffer) if (byte === MARK) got++;
      if (got === 3_000_000) break;
    }
    assert.ok(answers[0]!.writableFinished);
    assert.equal(answer.length, done ? 0 : 3_000_000);
  }
});
