import type { IncomingMessage } from "node:http";
import { passOverBody } from "./node-parser.ts";

/** A client that reads while it writes has the answer and ends the connection long before. */
const MILLIS_MAX = 2_000;
const BYTES_MAX = 67_108_864;
const LOOK_MILLIS = 50;

/**
 * Lets a client have an answer that ends its connection while it still writes the body, which nobody reads. Where a
 * connection is closed with bytes unread, the system resets it, and a client that is writing learns of that alone, not of
 * what it is answered (RFC 9112, 9.6). So the answer ends first, the rest of the body is passed over, and the connection is
 * closed once that came, or took too long. To be called before the answer is written.
 */
export function passOverUnread(incoming: IncomingMessage): void {
  const { socket } = incoming;
  passOverBody(socket);
  // Node calls this once it has written an answer that ends its connection.
  socket.destroySoon = () => {
    Reflect.deleteProperty(socket, "destroySoon");
    if (incoming.complete || socket.destroyed) return socket.destroySoon();
    socket.end();
    socket.resume();
    const until = performance.now() + MILLIS_MAX;
    const bytesMax = socket.bytesRead + BYTES_MAX;
    const look = setInterval(() => {
      if (incoming.complete || performance.now() > until || socket.bytesRead > bytesMax) socket.destroy();
    }, LOOK_MILLIS);
    socket.once("close", () => clearInterval(look));
  };
}
