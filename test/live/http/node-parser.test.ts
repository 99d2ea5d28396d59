import assert from "node:assert/strict";
import { once } from "node:events";
import { type Server, createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, test } from "node:test";

import { passOverBody, passOverRequests } from "#live/http/node-parser.ts";

const CHUNKED = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
const GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

async function served(server: Server, bytes: string): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  socket.end(bytes);
  socket.resume();
  await once(socket, "close");
}

describe("what a read brought", () => {
  test("of requests is parsed up to the one at hand", async () => {
    let seen = 0;
    const server = createServer(({ socket }) => {
      if (++seen < 3) return;
      passOverRequests(socket);
      socket.destroy();
    });
    await served(server, GET.repeat(100));
    server.close();
    assert.equal(seen, 3);
  });

  test("of a body has no buffers for the rest, and the next connection has its body", async () => {
    let pieces = 0;
    let passesOver = true;
    const server = createServer((incoming, answer) => {
      incoming.on("data", () => {
        pieces++;
        if (passesOver) passOverBody(incoming.socket);
      });
      incoming.on("end", () => answer.end());
    });
    const bytes = `${CHUNKED}${"1\r\n \r\n".repeat(1_000)}0\r\n\r\n`;
    await served(server, bytes);
    assert.ok(pieces < 5, `${pieces} pieces`);
    server.close();
    passesOver = false;
    pieces = 0;
    await served(server, bytes);
    server.close();
    assert.equal(pieces, 1_000);
  });
});
