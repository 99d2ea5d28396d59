import { failureText, placeText, type RedisClient, type RedisPlace, redisClient } from "./redis-connection.ts";
import { StreamReader } from "./stream-reader.ts";
import type { ShareLink, ShareListener } from "./share-link.ts";

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

/** Reports on their way at once, and their bytes. */
const UNDER_WAY_MAX = 256;
const UNDER_WAY_BYTES_MAX = 4 * 1024 * 1024;
/** Between two attempts to write, while the link is away. */
const PROBE_MILLIS = 250;
const PROBE_SECONDS_KEPT = 10;

/**
 * Replicas share one capped stream: whoever is there reads it as it grows, who comes reads what is left of the past. Two
 * connections, one of which waits for reports.
 */
export class RedisLink implements ShareLink {
  readonly name: string;
  readonly #options: RedisLinkOptions;
  readonly #writer: RedisClient;
  readonly #reader: StreamReader;
  #listener: ShareListener | undefined;
  #underWay = 0;
  #underWayBytes = 0;
  /** Both directions work. */
  #isWell = false;
  #reads = false;
  #timer: NodeJS.Timeout | undefined;
  #probing = false;
  #stopped = false;

  constructor(options: RedisLinkOptions) {
    const { place } = options;
    this.#options = options;
    this.name = placeText(place);
    this.#writer = redisClient(place, place.timeoutMillis);
    this.#writer.on("error", (error: Error) => this.#lost(error.message));
    this.#reader = new StreamReader(options);
  }

  start(listener: ShareListener): void {
    this.#listener = listener;
    // Where it fails it is tried again all the same; the error came as an event.
    void this.#writer.connect().catch(() => {});
    this.#reader.start({
      received: (report, isPast) => listener.received(report, isPast),
      caughtUp: () => listener.caughtUp(),
      reads: () => {
        this.#reads = true;
        if (!this.#isWell) void this.#probe();
      },
      failed: (why) => {
        this.#reads = false;
        this.#lost(why);
      },
    });
    this.#timer = setInterval(() => {
      if (!this.#isWell) void this.#probe();
    }, PROBE_MILLIS).unref();
  }

  get takes(): boolean {
    return this.#isWell && this.#underWay < UNDER_WAY_MAX && this.#underWayBytes < UNDER_WAY_BYTES_MAX;
  }

  send(report: Buffer): void {
    const { stream, entriesMax } = this.#options;
    this.#underWay++;
    this.#underWayBytes += report.length;
    const over = (): void => {
      this.#underWay--;
      this.#underWayBytes -= report.length;
    };
    this.#writer.xadd(stream, "MAXLEN", "~", entriesMax, "*", "r", report).then(over, (error: unknown) => {
      over();
      this.#lost(failureText(error));
    });
  }

  /** What a key holds; undefined where there is none. Throws where Redis cannot be asked. */
  async read(key: string): Promise<string | undefined> {
    return (await this.#writer.get(key)) ?? undefined;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    this.#reader.stop();
    if (this.#isWell) await this.#writer.quit().catch(() => {});
    this.#writer.disconnect();
  }

  /** A full Redis answers everything but what writes; so something is written. */
  async #probe(): Promise<void> {
    if (this.#probing || this.#stopped || !this.#reads) return;
    this.#probing = true;
    try {
      await this.#writer.set(`${this.#options.stream}:probe`, "1", "EX", PROBE_SECONDS_KEPT);
      this.#isWell = this.#reads;
      if (this.#isWell) this.#listener?.connected();
    } catch (error) {
      this.#lost(failureText(error));
    } finally {
      this.#probing = false;
    }
  }

  #lost(why: string): void {
    this.#isWell = false;
    if (!this.#stopped) this.#listener?.lost(why);
  }
}
