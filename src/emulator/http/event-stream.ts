import type { FaultyEnding } from "../fault/fault.ts";
import { ENGINE_DEAD } from "./api-error.ts";
import { isOpen, type ServedRequest } from "./exchange.ts";
import { beginStream, GARBAGE } from "./reply.ts";

const LAST_CHUNK = "0\r\n\r\n";

/**
 * A server-sent event stream with its own chunk framing: one chunk per event, as uvicorn sends it, and everything that
 * became ready together in one write.
 */
export class EventStream {
  readonly exchange: ServedRequest;
  readonly #ending: FaultyEnding | undefined;
  readonly #slow: SlowWriter | undefined;
  #pending = "";
  #ascii = true;
  #events = 0;
  /** Set once a fault has taken the stream over: nothing of the real answer follows. */
  #lost = false;

  constructor(exchange: ServedRequest) {
    this.exchange = exchange;
    const { ending, slowMs } = exchange.faults;
    this.#ending = ending;
    this.#slow = slowMs > 0 ? new SlowWriter(exchange, slowMs) : undefined;
    beginStream(exchange);
  }

  /** Adds an event: its complete text, from the field name to the empty line. */
  event(text: string): void {
    if (this.#lost) return;
    if (this.#ending !== undefined && this.#events >= this.#ending.events) {
      this.#lose(this.#ending);
      return;
    }
    this.#events++;
    this.#append(text);
    if (this.#slow !== undefined) this.flush();
  }

  data(json: string): void {
    this.event(`data: ${json}\n\n`);
  }

  /** True while the client does not take what was written: its next tokens are better merged into one event. */
  get congested(): boolean {
    return this.exchange.response.writableNeedDrain;
  }

  onDrain(then: () => void): void {
    this.exchange.response.once("drain", then);
  }

  flush(): void {
    if (this.#pending === "" || !isOpen(this.exchange)) return;
    if (this.#slow === undefined) this.exchange.response.write(this.#pending, this.#ascii ? "latin1" : "utf8");
    else this.#slow.write(this.#pending);
    this.#pending = "";
    this.#ascii = true;
  }

  /** The last chunk. Nothing may be written after it. */
  end(): void {
    if (this.#lost) return;
    this.#finish(LAST_CHUNK, () => this.exchange.response.end());
  }

  #append(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (bytes !== text.length) this.#ascii = false;
    this.#pending += `${bytes.toString(16)}\r\n${text}\r\n`;
  }

  #lose(ending: FaultyEnding): void {
    this.#lost = true;
    const { response } = this.exchange;
    switch (ending.kind) {
      case "cut":
        this.#finish("", () => response.socket?.destroySoon());
        break;
      case "stall":
        this.flush();
        break;
      case "truncate":
        this.#finish(LAST_CHUNK, () => response.end());
        break;
      case "error":
        this.#append(`data: ${ENGINE_DEAD.event}\n\n`);
        this.#append("data: [DONE]\n\n");
        this.#finish(LAST_CHUNK, () => response.end());
        break;
      case "garbage":
        this.#append(GARBAGE.toString("latin1"));
        this.#finish(LAST_CHUNK, () => response.end());
        break;
    }
  }

  #finish(text: string, then: () => void): void {
    this.#pending += text;
    this.flush();
    if (this.#slow !== undefined) this.#slow.end(then);
    else if (isOpen(this.exchange)) then();
  }
}

/** Writes one text every so many milliseconds. */
class SlowWriter {
  readonly #exchange: ServedRequest;
  readonly #intervalMs: number;
  readonly #queue: (string | (() => void))[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(exchange: ServedRequest, intervalMs: number) {
    this.#exchange = exchange;
    this.#intervalMs = intervalMs;
    exchange.response.once("close", () => clearInterval(this.#timer));
  }

  write(text: string): void {
    this.#queue.push(text);
    this.#timer ??= setInterval(() => this.#next(), this.#intervalMs);
  }

  end(then: () => void): void {
    this.#queue.push(then);
    this.#timer ??= setInterval(() => this.#next(), this.#intervalMs);
  }

  #next(): void {
    if (!isOpen(this.#exchange)) return;
    const next = this.#queue.shift();
    if (typeof next === "string") this.#exchange.response.write(next, "utf8");
    // The end follows the last text at once.
    if (typeof this.#queue[0] === "function") (this.#queue.shift() as () => void)();
    else if (typeof next === "function") next();
  }
}
