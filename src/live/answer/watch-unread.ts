import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";

import { MICROS_PER_MILLI } from "#core/units.ts";
import { nowMicros } from "../clock.ts";
import { UNREAD_MICROS_MIN, type UnreadAnswers } from "./unread-answers.ts";

/** A quarter of the time for which a client is let be. */
const LOOK_MILLIS = UNREAD_MICROS_MIN / MICROS_PER_MILLI / 4;

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
