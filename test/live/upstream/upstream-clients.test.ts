import assert from "node:assert/strict";
import { type Server, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { UpstreamClients, type UpstreamConnection } from "#live/upstream/connection/upstream-pools.ts";

let server: Server;
let url = "";
/** Connections that were ever made. */
let connections = 0;

before(async () => {
  server = createServer((request, response) => {
    request.resume();
    setTimeout(() => response.end("done"), 5);
  });
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.close();
  server.closeAllConnections();
});

function ask({ client }: UpstreamConnection): Promise<number> {
  return client.request({ path: "/", method: "POST", body: "{}" }).then(async ({ statusCode, body }) => {
    await body.dump();
    return statusCode;
  });
}

test("a client belongs to one request until it is given back", () => {
  const clients = new UpstreamClients(url, DEFAULT_LIMITS);
  const first = clients.take();
  const second = clients.take();
  assert.notEqual(second, first);
  clients.giveBack(first);
  assert.equal(clients.take(), first);
});

test("the client that became free last is the next one", () => {
  const clients = new UpstreamClients(url, DEFAULT_LIMITS);
  const [first, second] = [clients.take(), clients.take()];
  clients.giveBack(second);
  clients.giveBack(first);
  assert.deepEqual([clients.take(), clients.take()], [first, second]);
});

test("requests one after the other share a connection, those at once do not", async () => {
  const clients = new UpstreamClients(url, DEFAULT_LIMITS);
  const before = connections;
  for (let i = 0; i < 4; i++) {
    const client = clients.take();
    assert.equal(await ask(client), 200);
    clients.giveBack(client);
  }
  assert.equal(connections, before + 1);
  await Promise.all(Array.from({ length: 3 }, () => ask(clients.take())));
  assert.equal(connections, before + 3);
  await clients.close();
});

test("closing waits for what is in flight, destroying does not", async () => {
  const closing = new UpstreamClients(url, DEFAULT_LIMITS);
  const kept = ask(closing.take());
  await closing.close();
  assert.equal(await kept, 200);
  const destroyed = new UpstreamClients(url, DEFAULT_LIMITS);
  const cut = assert.rejects(ask(destroyed.take()));
  await destroyed.destroy();
  await cut;
});
