import assert from "node:assert/strict";
import { Agent, type IncomingMessage, type ServerResponse, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { GatewayMessage } from "#live/http/request-body.ts";

type Handler = (incoming: GatewayMessage, outgoing: ServerResponse) => void;

/** Sends bodies piece by piece, one request after the other on one connection; answers what came back for each. */
async function echoes(handler: Handler, bodies: readonly (readonly string[])[]): Promise<string[]> {
  let connections = 0;
  const server = createServer({ IncomingMessage: GatewayMessage }, handler);
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const answers: string[] = [];
  for (const pieces of bodies) answers.push(await echo(agent, port, pieces));
  assert.equal(connections, 1);
  agent.destroy();
  await new Promise((resolve) => server.close(resolve));
  return answers;
}

async function echo(agent: Agent, port: number, pieces: readonly string[]): Promise<string> {
  const asked = request({ agent, port, host: "127.0.0.1", method: "POST" });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    asked.once("response", resolve);
    asked.once("error", reject);
  });
  for (const piece of pieces) await new Promise((resolve) => asked.write(piece, resolve));
  asked.end();
  return textOf(await answered);
}

async function textOf(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of message) text += String(piece);
  return text;
}

const BODIES = [["one"], ["a body ", "in ", "pieces"], [], ["x".repeat(100_000), "y".repeat(300_000)], ["last"]];
const WHOLE = BODIES.map((pieces) => pieces.join(""));

test("a taker gets the whole body, request after request on one connection", async () => {
  const handler: Handler = (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    const taken = incoming.takeBody({
      piece: (chunk) => pieces.push(chunk) > 0,
      whole: () => {
        assert.ok(incoming.complete && incoming.readableEnded);
        outgoing.end(Buffer.concat(pieces));
      },
    });
    assert.ok(taken);
    assert.equal(incoming.readableEnded, false);
  };
  assert.deepEqual(await echoes(handler, BODIES), WHOLE);
});

test("without a taker it is a stream as ever", async () => {
  const handler: Handler = (incoming, outgoing) => void textOf(incoming).then((text) => outgoing.end(text));
  assert.deepEqual(await echoes(handler, BODIES), WHOLE);
});

test("a taker that comes after the first piece is turned away, and the stream has it all", async () => {
  const handler: Handler = (incoming, outgoing) => {
    setTimeout(() => {
      assert.equal(incoming.takeBody({ piece: () => assert.fail(), whole: () => assert.fail() }), false);
      void textOf(incoming).then((text) => outgoing.end(text));
    }, 20);
  };
  assert.deepEqual(await echoes(handler, [["one"], ["two"]]), ["one", "two"]);
});
