import { setTimeout as pause } from "node:timers/promises";
import { failureText, type RedisClient, redisClient, type RedisPlace } from "./redis-connection.ts";
import { SilenceWatch } from "./silence-watch.ts";

export interface RedisLinkOptions {
  readonly place: RedisPlace;
  /** Name of the stream. */
  readonly stream: string;
  /** Reports that the stream keeps, about. */
  readonly entriesMax: number;
  /** Age up to which past reports are read at the start. */
  readonly warmMillis: number;
  /** Where the link was away for longer, what was sent meanwhile is past. */
  readonly leaseMillis: number;
}

export interface StreamListener {
  received(report: Buffer, isPast: boolean): void;
  caughtUp(): void;
  /** A read was answered. */
  reads(): void;
  /** Nothing can be read; why, in a few words. */
  failed(why: string): void;
}

const BLOCK_MILLIS = 1_000;
/** Reports read at once: a turn of the event loop each. */
const COUNT = 64;
const RETRY_MILLIS = 100;

/** Reads one stream to its end and then as it grows, on a connection of its own, through whatever happens to it. */
export class StreamReader {
  readonly #options: RedisLinkOptions;
  readonly #client: RedisClient;
  readonly #silence: SilenceWatch;
  #listener: StreamListener | undefined;
  #stopped = false;
  /** The last report that was read. */
  #id = "";
  /** Reports up to this time, of Redis, are past. */
  #pastMillis = -1;
  #isCaughtUp = true;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    const { place } = options;
    this.#client = redisClient(place, BLOCK_MILLIS + place.timeoutMillis);
    this.#silence = new SilenceWatch(this.#client, place.timeoutMillis);
    this.#client.on("error", (error: Error) => {
      if (!this.#stopped) this.#listener?.failed(error.message);
    });
  }

  start(listener: StreamListener): void {
    this.#listener = listener;
    void this.#run(listener);
  }

  /** By another connection, which may lead elsewhere. */
  reconnect(): void {
    this.#client.disconnect(true);
  }

  stop(): void {
    this.#stopped = true;
    this.#client.disconnect();
  }

  async #run(listener: StreamListener): Promise<void> {
    let found = false;
    // Where it fails it is tried again all the same; the error came as an event.
    await this.#client.connect().catch(() => {});
    while (!this.#stopped) {
      try {
        if (!found) await this.#findPlace();
        found = true;
        await this.#read(listener);
        this.#silence.answered();
        if (!this.#stopped) listener.reads();
      } catch (error) {
        if (this.#stopped) return;
        found = false;
        this.#silence.failed(error);
        listener.failed(failureText(error));
        await pause(RETRY_MILLIS, undefined, { ref: false });
      }
    }
  }

  /** Where to read on: at the start, as far back as is wanted; later, behind what was read last. */
  async #findPlace(): Promise<void> {
    const { stream, warmMillis, leaseMillis } = this.#options;
    const last = await this.#client.xrevrange(stream, "+", "-", "COUNT", 1);
    const endMillis = millisOf(last[0]?.[0] ?? "0-0");
    if (this.#id === "") {
      this.#id = `${Math.max(0, endMillis - warmMillis)}-0`;
      this.#pastMillis = endMillis;
    } else if (endMillis < millisOf(this.#id)) {
      // Another stream than the one that was read: Redis was emptied, or its clock went back.
      this.#id = "0-0";
      this.#pastMillis = -1;
    } else this.#pastMillis = endMillis - leaseMillis;
    this.#isCaughtUp = false;
    this.#catchUp(millisOf(this.#id));
  }

  async #read(listener: StreamListener): Promise<void> {
    const { stream } = this.#options;
    const answer = (await (this.#isCaughtUp
      ? this.#client.xreadBuffer("COUNT", COUNT, "BLOCK", BLOCK_MILLIS, "STREAMS", stream, this.#id)
      : this.#client.xreadBuffer("COUNT", COUNT, "STREAMS", stream, this.#id))) as StreamAnswer;
    if (answer === null) return this.#catchUp(Infinity);
    for (const [, entries] of answer) {
      for (const [id, fields] of entries) {
        this.#id = id.toString("latin1");
        const millis = millisOf(this.#id);
        if (millis > this.#pastMillis) this.#catchUp(millis);
        const report = fields?.[1];
        if (report !== undefined && !this.#stopped) listener.received(report, millis <= this.#pastMillis);
      }
    }
  }

  /** Notifies once as soon as what was read last is no past. */
  #catchUp(millis: number): void {
    if (this.#isCaughtUp || millis <= this.#pastMillis) return;
    this.#isCaughtUp = true;
    this.#listener?.caughtUp();
  }
}

/** Per stream, its entries: an id and the names and values of its fields; null where nothing came in time. */
type StreamAnswer = readonly (readonly [Buffer, readonly (readonly [Buffer, readonly Buffer[] | null])[]])[] | null;

/** An id is the time of Redis in milliseconds, and a number. */
function millisOf(id: string): number {
  return Number(id.split("-", 1)[0]);
}
