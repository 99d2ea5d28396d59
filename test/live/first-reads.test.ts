import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, Socket, connect } from "node:net";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { connect as connectSecurely } from "node:tls";

import { FirstReads } from "#live/first-reads.ts";
import { Certificates } from "./tls/made-certificates.ts";

const CLIENTS = 60;
const AT_ONCE = 3;

/** A connection as the server announces it, and in which pass of the event loop it was begun with. */
class Client extends Socket {
  begunIn = 0;
  readonly #pass: () => number;

  constructor(pass: () => number) {
    super();
    this.#pass = pass;
  }

  override pause(): this {
    this.begunIn = Infinity;
    return this;
  }

  override resume(): this {
    this.begunIn = this.#pass();
    return this;
  }
}

describe("clients that come at once", () => {
  test("are begun with a few in each pass of the event loop, all of them, the first first", async () => {
    const server = createServer();
    // Only what is announced counts here.
    server.removeAllListeners("connection");
    new FirstReads().follow(server);
    let pass = 0;
    const clients = Array.from({ length: CLIENTS }, () => new Client(() => pass));
    for (const client of clients) server.emit("connection", client);
    for (; pass < CLIENTS; pass++) await setImmediate();
    const begunIn = clients.map((client) => client.begunIn);
    assert.deepEqual(
      begunIn,
      begunIn.toSorted((a, b) => a - b),
    );
    for (const at of new Set(begunIn)) {
      const together = begunIn.filter((one) => one === at).length;
      assert.ok(at < CLIENTS && together <= AT_ONCE, `${together} in pass ${at}`);
    }
  });

  test("do not wait where they come alone", async () => {
    const server = createServer();
    server.removeAllListeners("connection");
    new FirstReads().follow(server);
    for (let i = 0; i < 5; i++) {
      const client = new Client(() => i);
      server.emit("connection", client);
      assert.equal(client.begunIn, 0);
      await setImmediate();
    }
  });

  test("are served over TLS", async (t) => {
    const { cert, key } = new Certificates(t).root("gateway");
    const server = createSecureServer({ cert, key }, (_, answer) => void answer.end());
    new FirstReads().follow(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const closed = Array.from({ length: CLIENTS }, () => {
      const socket = connectSecurely({ port, host: "127.0.0.1", rejectUnauthorized: false });
      socket.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
      let got = "";
      socket.on("data", (data) => (got += String(data)));
      return once(socket, "close").then(() => got);
    });
    for (const got of await Promise.all(closed)) assert.match(got, /^HTTP\/1.1 200 /);
    server.close();
  });
});

test("a client that leaves while it waits takes nobody's place", async () => {
  const server = createServer((_, answer) => void answer.end());
  new FirstReads().follow(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (let i = 0; i < CLIENTS; i++) {
    const leaves = connect(port, "127.0.0.1", () => leaves.destroy());
    leaves.on("error", () => {});
  }
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  assert.equal(answer.status, 200);
  server.close();
  server.closeAllConnections();
});
