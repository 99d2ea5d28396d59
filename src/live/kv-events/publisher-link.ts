import { setTimeout as sleep } from "node:timers/promises";
import type { Subscriber } from "zeromq";
import type { KvEventsLostReason } from "#core/endpoint/knowledge.ts";
import type { EventAddress } from "./event-address.ts";
import { LINK_TIMES, type LinkCounts, type LinkListener, type LinkTimes } from "./link-listener.ts";

/** Messages that wait in the socket; with more, the publisher's are dropped, which is seen as a gap. */
const WAITING_MAX = 1_000;
/** Of 200 KB are those of a step that computes 50,000 tokens. A publisher that sends more is disconnected. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
/** In a row. */
const UNDECODABLE_MAX = 8;
/** An engine that connects to us comes when it wants to. */
const BIND_FACTOR = 60;
/** Replays that a new connection begins with, until one is answered. */
const BEGIN_REPLAYS = 3;
/** A replay that was not answered is not asked for again so soon. */
const REPLAY_PAUSE_MILLIS = 10_000;

/**
 * Follows one publisher of KV events: connects, learns what it sent before by its replay socket, keeps the order of its
 * messages, closes gaps, and notices another publisher in its place. Runs until it is stopped.
 */
export class PublisherLink {
  readonly counts: LinkCounts = {
    messages: 0,
    bytes: 0,
    seen: 0,
    gaps: 0,
    closed: 0,
    missed: 0,
    restarts: 0,
    disconnects: 0,
    undecodable: 0,
  };
  readonly #address: EventAddress;
  readonly #listener: LinkListener;
  readonly #times: LinkTimes;
  readonly #failed: () => void;
  readonly #sequence = new Sequence();
  readonly #stop = new AbortController();
  #socket: Subscriber | undefined;
  #isAlive = false;
  #undecodable = 0;
  #replayAfterMillis = 0;

  /** `failed` is called after each attempt to connect that failed. */
  constructor(address: EventAddress, listener: LinkListener, times: LinkTimes = LINK_TIMES, failed = () => {}) {
    this.#failed = failed;
    this.#address = address;
    this.#listener = listener;
    this.#times = times;
  }

  /** Resolves once it was stopped. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.#stopped) {
      if (await this.#connected()) failures = 0;
      else await this.#waitAfter(failures++);
    }
  }

  stop(): void {
    this.#stop.abort();
    this.#socket?.close();
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** One connection, from its beginning to its end; false where there was none. */
  async #connected(): Promise<boolean> {
    const socket = await this.#open().catch(() => undefined);
    if (socket === undefined) return false;
    try {
      if (!(await this.#shaken(socket).catch(() => false))) return false;
      await this.#follow(socket);
    } catch {
      // The socket was closed, by its end or ours.
    } finally {
      socket.close();
    }
    return true;
  }

  /** Loads ZeroMQ as the first one is opened: a gateway without engines that publish needs none of it. */
  async #open(): Promise<Subscriber> {
    const { Subscriber: Socket } = await import("zeromq");
    const { heartbeatMillis } = this.#times;
    const socket = new Socket({
      linger: 0,
      ipv6: true,
      receiveHighWaterMark: WAITING_MAX,
      maxMessageSize: MESSAGE_BYTES_MAX,
      heartbeatInterval: heartbeatMillis,
      heartbeatTimeout: 3 * heartbeatMillis,
      // A broken connection is made anew here, with a socket of its own.
      reconnectInterval: -1,
    });
    this.#socket = socket;
    return socket;
  }

  /** Whether the publisher is there. Gives it up after a while where it was. */
  async #shaken(socket: Subscriber): Promise<boolean> {
    const shaken = new Promise<boolean>((resolve) => {
      socket.events.on("handshake", () => resolve(true));
      for (const ended of ["disconnect", "close", "end", "connect:retry"] as const)
        socket.events.on(ended, () => {
          resolve(false);
          socket.close();
        });
      const waitMillis = this.#times.reconnectMillis * (this.#address.binds ? BIND_FACTOR : 1);
      const timer = setTimeout(resolve, waitMillis, false);
      this.#stop.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    });
    socket.subscribe(this.#address.topic);
    if (this.#address.binds) await socket.bind(this.#address.publisher);
    else socket.connect(this.#address.publisher);
    const isThere = await shaken;
    if (!isThere) this.#lose("disconnected");
    return isThere;
  }

  async #follow(socket: Subscriber): Promise<void> {
    this.#replayAfterMillis = 0;
    if (this.#isAlive) await this.#resume();
    else await this.#begin();
    try {
      for (;;) {
        const frames = await socket.receive();
        const [number, payload] = [frames.at(-2), frames.at(-1)];
        if (frames.length === 3 && number?.length === 8 && payload !== undefined)
          await this.#received(numberOf(number), payload);
        else this.#unread();
      }
    } finally {
      if (!this.#stopped) this.counts.disconnects++;
    }
  }

  /** Everything that the publisher kept, from its first message on if it has it still. */
  async #begin(): Promise<void> {
    this.#sequence.restart();
    // Its replay socket may come up after the other one.
    let { taken, answered } = await this.#replay(0, Infinity);
    for (
      let again = 1;
      !answered && taken === 0 && again < BEGIN_REPLAYS && this.#address.replay !== undefined;
      again++
    ) {
      this.#replayAfterMillis = 0;
      ({ taken, answered } = await this.#replay(0, Infinity));
    }
    if (this.#stopped || taken > 0) return;
    this.#live(answered);
    this.#sequence.begun = answered;
  }

  /** After a short break: what was sent meanwhile, if it is the publisher that it was. */
  async #resume(): Promise<void> {
    if (this.#sequence.expected === 0) return this.#begin();
    const isSame = await this.#isSame();
    if (this.#stopped) return;
    if (isSame === undefined) return this.#miss(1);
    if (!isSame) this.#restarted();
    await this.#replay(this.#sequence.expected, Infinity);
  }

  /** Whether the publisher still has the last message under its number; undefined where it cannot be asked. */
  async #isSame(): Promise<boolean | undefined> {
    const { replay: address } = this.#address;
    const { expected, seconds } = this.#sequence;
    if (address === undefined) return undefined;
    try {
      for await (const { number, payload } of replay(address, expected - 1, this.#times.replayMillis))
        return number === expected - 1 && secondsOf(payload) === seconds;
      return false;
    } catch {
      return undefined;
    }
  }

  async #received(number: number, payload: Uint8Array): Promise<void> {
    const sequence = this.#sequence;
    const seconds = secondsOf(payload);
    if (!sequence.begun) {
      if (number === 0) this.#live(true);
      sequence.expected = number;
    }
    switch (sequence.placeOf(number, seconds)) {
      case "seen":
        this.counts.seen++;
        return;
      case "restarted":
        this.#restarted();
        if (number > 0) await this.#close(number);
        break;
      case "gap":
        await this.#close(number);
        break;
      case "next":
    }
    // A replay may have brought it with those before it.
    if (sequence.expected <= number) await this.#take(number, seconds, payload);
  }

  /** Brings what is missing before message `number`, or gives it up. */
  async #close(number: number): Promise<void> {
    this.counts.gaps++;
    await this.#replay(this.#sequence.expected, number);
    if (this.#sequence.expected >= number) this.counts.closed++;
    else this.#miss(number - this.#sequence.expected);
  }

  /** Takes the kept messages from `from` on that follow in order, up to `to`. */
  async #replay(from: number, to: number): Promise<{ taken: number; answered: boolean }> {
    const { replay: address } = this.#address;
    let taken = 0;
    let first = -1;
    if (address === undefined || performance.now() < this.#replayAfterMillis) return { taken, answered: false };
    try {
      for await (const { number, payload } of replay(address, from, this.#times.replayMillis)) {
        if (this.#stopped) break;
        const seconds = secondsOf(payload);
        if (first < 0) {
          first = number;
          this.#firstReplayed(number);
        }
        if (number !== this.#sequence.expected) continue;
        await this.#take(number, seconds, payload);
        taken++;
        if (number + 1 >= to) break;
      }
      return { taken, answered: true };
    } catch {
      this.#replayAfterMillis = performance.now() + REPLAY_PAUSE_MILLIS;
      return { taken, answered: false };
    }
  }

  /** It may not have kept as much as was asked for. */
  #firstReplayed(number: number): void {
    const sequence = this.#sequence;
    if (!this.#isAlive) this.#live(number === 0);
    else if (number > sequence.expected) this.#miss(number - sequence.expected);
    sequence.expected = Math.max(number, sequence.expected);
  }

  async #take(number: number, seconds: number, payload: Uint8Array): Promise<void> {
    this.counts.messages++;
    this.counts.bytes += payload.length;
    this.#sequence.take(number, seconds);
    try {
      await this.#listener.message(payload);
      this.#undecodable = 0;
    } catch {
      this.#unread();
    }
  }

  #unread(): void {
    this.counts.undecodable++;
    this.#miss(1);
    if (++this.#undecodable === UNDECODABLE_MAX) this.#lose("undecodable");
  }

  #live(isComplete: boolean): void {
    this.#isAlive = true;
    this.#listener.alive(isComplete);
  }

  #restarted(): void {
    this.counts.restarts++;
    this.#sequence.restart();
    this.#sequence.begun = true;
    this.#listener.restarted();
  }

  #miss(messages: number): void {
    this.counts.missed += messages;
    this.#listener.missed(messages);
  }

  #lose(reason: KvEventsLostReason): void {
    if (!this.#isAlive) return;
    this.#isAlive = false;
    this.#listener.lost(reason);
  }

  async #waitAfter(failures: number): Promise<void> {
    if (this.#stopped) return;
    this.#failed();
    const millis = Math.min(this.#times.retryMillis * 2 ** failures, this.#times.retryMillisMax);
    await sleep(millis, undefined, { signal: this.#stop.signal }).catch(() => {});
  }
}

/** What a message's number means: the next one; one that was there before; some between are missing; another publisher. */
type Place = "next" | "seen" | "gap" | "restarted";

/**
 * The order of one publisher's messages: numbers count up from 0 by one, times never go back. A number that was there
 * before with a time that was not is another publisher's, whose engine was started anew.
 */
class Sequence {
  /** Number of the next message; 0 before the first. */
  expected = 0;
  /** Time of the last one, in seconds; -Infinity before the first. */
  seconds = -Infinity;
  /** Whether a first message was taken: before it, every number is the next one or behind a gap. */
  begun = false;

  placeOf(number: number, seconds: number): Place {
    if (number === this.expected) return "next";
    if (number > this.expected) return "gap";
    return seconds > this.seconds ? "restarted" : "seen";
  }

  take(number: number, seconds: number): void {
    this.expected = number + 1;
    this.seconds = seconds;
    this.begun = true;
  }

  restart(): void {
    this.expected = 0;
    this.seconds = -Infinity;
    this.begun = false;
  }
}

const FLOAT64 = 0xcb;
const SECONDS_AT = 2;
const DOUBLE_BYTES = 8;

/** The first element of a batch, an array; -Infinity where that is no double. */
function secondsOf(payload: Uint8Array): number {
  if (payload[1] !== FLOAT64 || payload.length < SECONDS_AT + DOUBLE_BYTES) return -Infinity;
  return new DataView(payload.buffer, payload.byteOffset, payload.length).getFloat64(SECONDS_AT);
}

/** One message of a publisher. */
interface Message {
  readonly number: number;
  readonly payload: Uint8Array;
}

/** A publisher that was asked for what it kept has no more. */
const END = 0xffff_ffff_ffff_ffffn;
const NUMBER_BYTES = 8;
/** More than any publisher keeps by default. */
const MESSAGES_MAX = 100_000;

/**
 * Asks a publisher for the messages that it kept, from number `from` on, and gives them one by one up to the last.
 * Throws where it does not answer in time or not in its protocol: `["", topic?, number, payload]`, the number of the end
 * being -1 (vLLM sends the topic, SGLang and older versions of vLLM do not).
 */
async function* replay(address: string, from: number, timeoutMillis: number): AsyncGenerator<Message> {
  const { Dealer } = await import("zeromq");
  const socket = new Dealer({ linger: 0, receiveTimeout: timeoutMillis, sendTimeout: timeoutMillis, ipv6: true });
  try {
    socket.connect(address);
    await socket.send([Buffer.alloc(0), numberBytes(from)]);
    for (let count = 0; count < MESSAGES_MAX; count++) {
      const frames = await socket.receive();
      const number = frames.at(-2);
      const payload = frames.at(-1);
      if (frames.length < 3 || number?.length !== NUMBER_BYTES || payload === undefined)
        throw new Error("the answer to a replay has other frames");
      if (number.readBigUInt64BE() === END) return;
      yield { number: numberOf(number), payload };
    }
  } finally {
    socket.close();
  }
}

function numberOf(bytes: Buffer): number {
  return Number(bytes.readBigUInt64BE());
}

function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}
