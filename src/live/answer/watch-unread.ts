import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";

import { nowMicros } from "../clock.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** Looks at all connections of a server every so many milliseconds; until it is closed. */
export function watchUnread(server: Server, unread: UnreadAnswers, everyMillis: number): void {
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
  const timer = setInterval(look, everyMillis).unref();
  server.once("close", () => clearInterval(timer));
}
