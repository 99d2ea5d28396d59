import assert from "node:assert/strict";
import { once } from "node:events";
import { type Server, createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, type Socket, connect } from "node:net";
import { describe, test } from "node:test";
import { connect as connectSecurely } from "node:tls";

import { FirstReads } from "#live/first-reads.ts";
import { Certificates } from "./tls/made-certificates.ts";

const CLIENTS = 60;
const AT_ONCE = 3;

/** Requests that were parsed in each pass of the event loop that had any; all clients came before the first. */
async function parsedInPasses(server: Server, open: (port: number) => Socket): Promise<number[]> {
  const inPass: number[] = [];
  let parsed = 0;
  let ends = false;
  const pass = (): void => {
    if (parsed > 0) inPass.push(parsed);
    parsed = 0;
    if (!ends) setImmediate(pass);
  };
  server.on("request", (_, answer) => {
    parsed++;
    answer.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  setImmediate(pass);
  const clients = Array.from({ length: CLIENTS }, () => {
    const socket = open(port);
    socket.write("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    return socket.resume();
  });
  await Promise.all(clients.map((client) => once(client, "close")));
  ends = true;
  server.close();
  return inPass;
}

describe("clients that come at once", () => {
  test("are begun with a few in each pass of the event loop, all of them", async () => {
    const server = createServer();
    new FirstReads().follow(server);
    const inPass = await parsedInPasses(server, (port) => connect(port, "127.0.0.1"));
    assert.equal(
      inPass.reduce((sum, one) => sum + one, 0),
      CLIENTS,
    );
    assert.ok(Math.max(...inPass) <= AT_ONCE, inPass.join(" "));
  });

  test("are served over TLS", async (t) => {
    const { cert, key } = new Certificates(t).root("gateway");
    const server = createSecureServer({ cert, key });
    new FirstReads().follow(server);
    const inPass = await parsedInPasses(server, (port) =>
      connectSecurely({ port, host: "127.0.0.1", rejectUnauthorized: false }),
    );
    assert.equal(
      inPass.reduce((sum, one) => sum + one, 0),
      CLIENTS,
    );
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
