/**
 * Child process: sends chat requests over kept connections, as fast as they are answered, for as long as it is asked to, and
 * reports to its parent how many were answered. Every request's last message is new; what precedes it is one of a few
 * conversations.
 */
import { type Socket, connect } from "node:net";
import { ResponseReader } from "./response-reader.ts";

/** What the parent asks for. */
export interface LoadOrder {
  readonly port: number;
  /** Bytes of a request body. */
  readonly bodyBytes: number;
  readonly stream: boolean;
  readonly connections: number;
  /** Of the last message; what is left of the body by default, between some 300 and 1,200. */
  readonly lastBytes?: number;
  /** Of each message before it; some 400 by default. */
  readonly messageBytes?: number;
  /** Ends after this time, or for streams after one stream per connection. */
  readonly millis: number;
}

export interface LoadReport {
  readonly answers: number;
  readonly events: number;
  readonly failures: number;
  /** Failures by status, or by what became of the connection. */
  readonly statuses: Record<string, number>;
}

const CONVERSATIONS = 32;
const OK = 200;
/** JSON around a message's text, and around all messages. */
const MESSAGE_JSON_BYTES = 35;
const OUTER_BYTES = 120;
const WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or".split(" ");
let seed = 7;

function random(n: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
}

function words(bytes: number): string {
  let text = "";
  while (text.length < bytes) text += `${WORDS[random(WORDS.length)]} `;
  return text.slice(0, bytes);
}

let sent = 0;

function requests({ bodyBytes, stream, lastBytes, messageBytes = 415 }: LoadOrder): () => Buffer {
  const around = 2 * (messageBytes + MESSAGE_JSON_BYTES);
  const historyBytes = bodyBytes - (lastBytes ?? around) - OUTER_BYTES;
  const prefixes = Array.from({ length: CONVERSATIONS }, () => {
    const messages = [{ role: "system", content: words(Math.max(20, Math.min(400, historyBytes))) }];
    for (let size = 400 + MESSAGE_JSON_BYTES; size + around < historyBytes; size += around) {
      messages.push(
        { role: "user", content: words(messageBytes) },
        { role: "assistant", content: words(messageBytes) },
      );
    }
    return JSON.stringify(messages).slice(0, -1);
  });
  return () => {
    const prefix = prefixes[random(CONVERSATIONS)]!;
    const last = `${sent++} ${words(lastBytes ?? Math.max(50, bodyBytes - prefix.length - OUTER_BYTES))}`;
    const body = `{"model":"tiny","messages":${prefix},{"role":"user","content":"${last}"}],"max_tokens":10${stream ? ',"stream":true' : ""}}`;
    return Buffer.from(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  };
}

function run(order: LoadOrder): Promise<LoadReport> {
  const next = requests(order);
  const total: Total = { answers: 0, events: 0, failures: 0, statuses: {} };
  const until = performance.now() + order.millis;
  return new Promise((resolve) => {
    let open = order.connections;
    const ended = (): void => {
      if (--open === 0) resolve(total);
    };
    for (let i = 0; i < order.connections; i++) {
      if (order.stream) streamOnce(order.port, next, total, ended);
      else repeat(order.port, next, total, until, ended);
    }
  });
}

type Total = { -readonly [K in keyof LoadReport]: LoadReport[K] };

function repeat(port: number, next: () => Buffer, total: Total, until: number, closed: () => void): void {
  const asking = new Asking(port, next, total, closed);
  asking.ended = () => {
    if (performance.now() < until) asking.ask();
    else asking.socket.end();
  };
}

function streamOnce(port: number, next: () => Buffer, total: Total, closed: () => void): void {
  const asking = new Asking(port, next, total, closed);
  asking.ended = ({ events }) => {
    // The mark at the end is none.
    total.events += Math.max(0, events - 1);
    asking.socket.end();
  };
}

/** One connection that asks at once. An answer that is cut, or a connection that fails, is a failure by its name. */
class Asking {
  readonly socket: Socket;
  readonly #next: () => Buffer;
  #waits = false;
  ended: (reader: ResponseReader) => void = () => {};

  constructor(port: number, next: () => Buffer, total: Total, closed: () => void) {
    this.#next = next;
    const failed = (what: string | number): void => {
      total.failures++;
      total.statuses[what] = (total.statuses[what] ?? 0) + 1;
    };
    const reader = new ResponseReader();
    this.socket = connect(port, "127.0.0.1", () => this.ask());
    this.socket.setNoDelay(true);
    this.socket.on("data", (data: Buffer) => {
      reader.push(data, (status) => {
        this.#waits = false;
        if (status === OK) total.answers++;
        else failed(status);
        this.ended(reader);
      });
    });
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#waits = false;
      failed(error.code ?? error.message);
    });
    this.socket.on("close", () => {
      if (this.#waits) failed("closed");
      closed();
    });
  }

  ask(): void {
    this.#waits = true;
    this.socket.write(this.#next());
  }
}

process.on("message", (order: LoadOrder) => {
  void run(order).then((report) => process.send!(report));
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });
