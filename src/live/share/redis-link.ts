import { type RedisLinkOptions, StreamReader } from "./stream-reader.ts";
import { failureText, placeText, type RedisClient, redisClient } from "./redis-connection.ts";
import { WIRE_VERSION } from "./report.ts";
import { SilenceWatch } from "./silence-watch.ts";
import type { ShareLink, ShareListener } from "./share-link.ts";

/** Reports on their way at once, and their bytes. */
const UNDER_WAY_MAX = 256;
const UNDER_WAY_BYTES_MAX = 4 * 1024 * 1024;
/** Between two attempts to write, while the link is away. */
const PROBE_MILLIS = 250;
const PROBE_SECONDS_KEPT = 10;

/** Compares and replaces in one step. */
const REPLACE = `
local revision = redis.call("HGET", KEYS[1], "revision") or "0"
if revision ~= ARGV[1] then return 0 end
redis.call("HSET", KEYS[1], "revision", tostring(tonumber(ARGV[1]) + 1), "text", ARGV[2])
return 1`;

/**
 * Replicas share one capped stream: whoever is there reads it as it grows, who comes reads what is left of the past. Two
 * connections, one of which waits for reports.
 */
export class RedisLink implements ShareLink {
  readonly name: string;
  readonly #options: RedisLinkOptions;
  readonly #writer: RedisClient;
  readonly #silence: SilenceWatch;
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
    this.#silence = new SilenceWatch(this.#writer, place.timeoutMillis);
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
    const sent = (): void => {
      over();
      this.#silence.answered();
    };
    this.#writer.xadd(stream, "MAXLEN", "~", entriesMax, "*", "r", report).then(sent, (error: unknown) => {
      over();
      this.#silence.failed(error);
      this.#lost(failureText(error));
    });
  }

  renew(why: string): void {
    this.#reads = false;
    this.#lost(why);
    this.#reader.reconnect();
  }

  /** What a key holds; undefined where there is none. Throws where Redis cannot be asked. */
  async read(key: string): Promise<string | undefined> {
    return (await this.#writer.get(key)) ?? undefined;
  }

  /** A value that `replace` wrote, with how often; undefined where there is none. Throws where Redis cannot be asked. */
  async readShared(key: string): Promise<{ readonly revision: number; readonly text: string } | undefined> {
    const [revision, text] = await this.#asked(this.#writer.hmget(key, "revision", "text"));
    if (typeof revision !== "string" || typeof text !== "string") return undefined;
    return { revision: Number(revision), text };
  }

  /**
   * Replaces it where its revision is still that one (0: there is none) and returns the new one; undefined where it is
   * not.
   */
  async replaceShared(key: string, revision: number, text: string): Promise<number | undefined> {
    const next = await this.#asked(this.#writer.eval(REPLACE, 1, key, revision, text));
    return next === 0 ? undefined : revision + 1;
  }

  async appendShared(key: string, text: string, textsMax: number): Promise<void> {
    await this.#asked(this.#writer.xadd(key, "MAXLEN", "~", textsMax, "*", "t", text));
  }

  /** Of the last text; undefined where there is none. */
  async lastShared(key: string): Promise<string | undefined> {
    const [last] = await this.#asked(this.#writer.xrevrange(key, "+", "-", "COUNT", 1));
    return last?.[0];
  }

  async readSharedLog(key: string, after: string, textsMax: number): Promise<{ id: string; text: string }[]> {
    const found = await this.#asked(this.#writer.xrange(key, `(${after}`, "+", "COUNT", textsMax));
    return found.map(([id, [, text = ""]]) => ({ id, text }));
  }

  /** What limits had counted, of neighbouring versions too: they write beside each other while one replaces the other. */
  async readLimits(key: string): Promise<{ readonly text: string; readonly leftMillis: number }[]> {
    const keys = [WIRE_VERSION - 1, WIRE_VERSION, WIRE_VERSION + 1].map((version) => `${key}:${version}`);
    const found = await this.#asked(
      Promise.all(keys.map(async (one) => [await this.#writer.get(one), await this.#writer.pttl(one)] as const)),
    );
    return found.flatMap(([text, leftMillis]) => (text === null || leftMillis < 0 ? [] : [{ text, leftMillis }]));
  }

  async writeLimits(key: string, text: string, keptMillis: number): Promise<void> {
    await this.#asked(this.#writer.set(`${key}:${WIRE_VERSION}`, text, "PX", keptMillis));
  }

  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw new Error(`${this.name}: ${failureText(error)}`, { cause: error });
    }
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
      this.#silence.answered();
      this.#isWell = this.#reads;
      if (this.#isWell) this.#listener?.connected();
    } catch (error) {
      this.#silence.failed(error);
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
