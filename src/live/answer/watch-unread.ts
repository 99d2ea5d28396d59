import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";

import { nowMicros } from "../base/clock.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** Much less than the time for which a client is let be: what engines send meanwhile is held. */
const LOOK_MILLIS = 50;

/** Looks at all connections of a server now and then; until it is closed. */
export function watchUnread(server: Server, unread: UnreadAnswers): void {
  const sockets = new Set<Socket>();
  // Of a connection with TLS, what is below it has nothing to wait for.
  server.on(server instanceof SecureServer ? "secureConnection" : "connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      unread.leave(socket);
    });
  });
  const look = (): void => {
    const at = nowMicros();
    for (const socket of sockets) unread.look(socket, at);
    unread.settle(at);
  };
  const timer = setInterval(look, LOOK_MILLIS).unref();
  server.once("close", () => clearInterval(timer));
}
