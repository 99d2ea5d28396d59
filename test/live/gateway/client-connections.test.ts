import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { ClientConnections } from "#live/gateway/client-connections.ts";

const IDLE_MILLIS = 100;

interface Given {
  readonly connections: ClientConnections;
  /** A client connects: whether its connection is open, and an answer on it begins. */
  readonly connect: () => { readonly isOpen: () => boolean; readonly answer: () => void };
  readonly at: (millis: number) => void;
}

/** Connections of a server that does not listen, at a time that is given. */
function given(t: TestContext): Given {
  let nowMillis = 0;
  t.mock.method(performance, "now", () => nowMillis);
  const server = new Server();
  const connections = new ClientConnections();
  connections.follow(server);
  const connect = () => {
    let isOpen = true;
    const socket = Object.assign(new EventEmitter(), {
      bytesRead: 0,
      bytesWritten: 0,
      writableLength: 0,
      destroy: () => {
        isOpen = false;
        socket.emit("close");
      },
    }) as unknown as Socket;
    for (const follow of server.listeners("connection").slice(-1)) follow(socket);
    const req = { socket, httpVersionMinor: 1 };
    const answer = () =>
      connections.answers({ headersSent: false, shouldKeepAlive: false, req } as unknown as ServerResponse);
    return { isOpen: () => isOpen, answer };
  };
  return { connections, connect, at: (millis) => (nowMillis = millis) };
}

test("a connection ends once it was idle for so long, and after a quarter of it where its end was announced", async (t) => {
  const { connections, connect, at } = given(t);
  const [silent, answered] = [connect(), connect()];
  connections.leave();
  answered.answer();
  const open = async (millis: number) => {
    at(millis);
    const left = await connections.endIdle(IDLE_MILLIS);
    return [left, silent.isOpen(), answered.isOpen()];
  };
  assert.deepEqual(await open(24), [2, true, true]);
  assert.deepEqual(await open(25), [1, true, false]);
  assert.deepEqual(await open(200), [1, true, false], "in the notice those alone whose end was announced");
  connections.endNotice();
  assert.deepEqual(await open(201), [0, false, false]);
});

test("a drain waits for connections from before the end of its notice, and for none that came after it", async (t) => {
  const { connections, connect, at } = given(t);
  connections.leave();
  const early = [connect(), connect()];
  connections.endNotice();
  const late = [connect()];
  at(IDLE_MILLIS - 1);
  assert.equal(await connections.endIdle(IDLE_MILLIS), early.length);
  for (const { isOpen } of [...early, ...late]) assert.ok(isOpen());
  at(IDLE_MILLIS);
  assert.equal(await connections.endIdle(IDLE_MILLIS), 0);
  for (const { isOpen } of [...early, ...late]) assert.equal(isOpen(), false);
});
