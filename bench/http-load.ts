/**
 * Child process: sends chat requests over kept connections, as fast as they are answered, for as long as it is asked to, and
 * reports to its parent how many were answered. Every request's last message is new; what precedes it is one of a few
 * conversations.
 */
import { type Socket, connect } from "node:net";
import { type ChatSizes, chatRequests } from "./chat-requests.ts";
import { ResponseReader } from "./response-reader.ts";

/** What the parent asks for. */
export interface LoadOrder extends ChatSizes {
  readonly port: number;
  readonly connections: number;
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

const OK = 200;

function run(order: LoadOrder): Promise<LoadReport> {
  const next = chatRequests(order);
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
