import type { Server } from "node:http";
import { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";

/**
 * A client's first bytes are parsed as one piece of work, whatever they are: 64 KiB in chunks of a byte take 10 ms. So that
 * many clients that come at once do not hold the event loop together, each pass of it begins to read from a few of them; the
 * others wait for a pass of their own. Who comes alone does not wait.
 *
 * Connections that are kept are not paced: Node's parser reads them past JavaScript, so that to hold one back it would have to
 * be paused before anything came; each request would cost more for it. What they send in small pieces has a bound for all
 * of them together (request-body.ts).
 */
export class FirstReads {
  #waiting: Socket[] = [];
  #first = 0;
  /** Begun with since the last pass, and read in the next one. */
  #begun = 0;
  /** One is to come. */
  #passes = false;

  /** Paces the clients of a server. */
  follow(server: Server): void {
    server.on(server instanceof SecureServer ? "secureConnection" : "connection", (socket: Socket) => {
      if (!this.#passes) setImmediate(this.#pass);
      this.#passes = true;
      if (this.#begun < AT_ONCE && this.#waiting.length === 0) {
        this.#begun++;
        return;
      }
      socket.pause();
      this.#waiting.push(socket);
    });
  }

  readonly #pass = (): void => {
    for (; this.#begun < AT_ONCE && this.#first < this.#waiting.length; this.#first++) {
      const socket = this.#waiting[this.#first]!;
      if (socket.destroyed) continue;
      socket.resume();
      this.#begun++;
    }
    this.#passes = this.#begun > 0;
    this.#begun = 0;
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    if (this.#passes) setImmediate(this.#pass);
  };
}

const AT_ONCE = 3;
