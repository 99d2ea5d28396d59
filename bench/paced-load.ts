/**
 * Child process: sends so many chat requests a second, evenly spread and whether or not those before are answered, over kept
 * connections, and reports to its parent how many answers and events came in each part of the time, and how soon.
 */
import { type Socket, connect } from "node:net";
import { type ChatSizes, chatRequests } from "./chat-requests.ts";
import { ResponseReader } from "./response-reader.ts";

/** What the parent asks for. */
export interface PacedOrder extends ChatSizes {
  readonly port: number;
  readonly perSecond: number;
  /** Ends of the parts of the time that are reported, since its begin; the last one ends it. */
  readonly partsMillis: readonly number[];
}

/** Of what ended in a part of the time. */
export interface PartReport {
  readonly answers: number;
  readonly events: number;
  readonly failures: number;
  /** From when a request was due to its answer's last byte, or to a stream's first event. */
  readonly p50Millis: number;
  readonly p99Millis: number;
}

const OK = 200;

class Part {
  answers = 0;
  events = 0;
  failures = 0;
  readonly millis: number[] = [];

  report(): PartReport {
    const sorted = this.millis.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const { answers, events, failures } = this;
    return { answers, events, failures, p50Millis: at(0.5), p99Millis: at(0.99) };
  }
}

/** One connection, which has one request at a time. */
class Asking {
  readonly #socket: Socket;
  readonly #reader = new ResponseReader();
  #dueMillis = 0;
  #events = 0;

  constructor(port: number, stream: boolean, part: () => Part, done: (asking: Asking, isOpen: boolean) => void) {
    this.#socket = connect(port, "127.0.0.1").setNoDelay(true);
    let answers = false;
    this.#socket.on("data", (data: Buffer) => {
      answers = true;
      const { events } = this.#reader;
      this.#reader.push(data, (status) => {
        answers = false;
        part().answers++;
        if (status !== OK) part().failures++;
        else if (!stream) part().millis.push(performance.now() - this.#dueMillis);
        done(this, true);
      });
      if (!stream) return;
      if (this.#events === 0 && this.#reader.events > 0) part().millis.push(performance.now() - this.#dueMillis);
      part().events += this.#reader.events - events;
      // The next answer's first event is waited for anew.
      this.#events = answers ? this.#events + this.#reader.events - events : 0;
    });
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      if (answers) part().failures++;
      done(this, false);
    });
  }

  ask(request: Buffer, dueMillis: number): void {
    this.#dueMillis = dueMillis;
    this.#socket.write(request);
  }

  end(): void {
    this.#socket.removeAllListeners("close").destroy();
  }
}

function run({ port, stream, perSecond, partsMillis, ...sizes }: PacedOrder): Promise<readonly PartReport[]> {
  const next = chatRequests({ stream, ...sizes });
  const began = performance.now();
  const parts = partsMillis.map(() => new Part());
  const part = (): Part => {
    const elapsed = performance.now() - began;
    return parts[partsMillis.findIndex((end) => elapsed < end)] ?? parts.at(-1)!;
  };
  const open = new Set<Asking>();
  const idle: Asking[] = [];
  const done = (asking: Asking, isOpen: boolean): void => {
    if (isOpen) {
      idle.push(asking);
      return;
    }
    open.delete(asking);
    if (idle.includes(asking)) idle.splice(idle.indexOf(asking), 1);
  };
  const connected = (): Asking => {
    const asking = new Asking(port, stream, part, done);
    open.add(asking);
    return asking;
  };
  const millis = partsMillis.at(-1)!;
  let sent = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsed = performance.now() - began;
      for (; sent < (Math.min(elapsed, millis) / 1e3) * perSecond; sent++) {
        const asking = idle.pop() ?? connected();
        asking.ask(next(), began + (sent / perSecond) * 1e3);
      }
      if (elapsed < millis) return;
      clearInterval(timer);
      for (const asking of open) asking.end();
      resolve(parts.map((one) => one.report()));
    }, 1);
  });
}

process.on("message", (order: PacedOrder) => {
  void run(order).then((report) => process.send!(report));
});
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });
