import { constants, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** How long a connection may live, and how it is asked whether its client still does. */
export interface ConnectionRules {
  /** From a connection to the first frame of its client. */
  readonly firstFrameMillisMax: number;
  /** Age at which its client is asked to make another one, give or take a tenth; 0: none. */
  readonly connectionAgeMillisMax: number;
  /** For the calls that are open at that age; then they are cut. */
  readonly connectionGraceMillis: number;
  /** Silence after which the client is asked; 0: never. */
  readonly pingMillis: number;
  /** For its answer. */
  readonly pingAnswerMillisMax: number;
}

/** Why the server cut a connection. */
export type ConnectionFailure = "silent" | "no-pong" | "age-cut";

export interface ConnectionEvents {
  /** It was cut, with the calls that were open on it. */
  readonly failed: (why: ConnectionFailure) => void;
  /** It came of age. */
  readonly connectionRenewed: () => void;
}

/** A GOAWAY frame without an error: the connection will end, and no stream that a client has opened is refused. */
const NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
const NOTICE_READ_MILLIS_MAX = 1_000;
/** So that connections which were made at once do not end at once. */
const AGE_SPREAD = 0.1;

/** One client's connection, until its end: by age, by silence, or as the server leaves. */
export class ClientConnection {
  readonly #session: ServerHttp2Session;
  /** Below HTTP/2. */
  readonly #socket: Socket;
  readonly #rules: ConnectionRules;
  readonly #events: ConnectionEvents;
  readonly #timers = new Set<NodeJS.Timeout>();
  #isInformed = false;
  /** As far as was seen when it was looked last. */
  #bytesRead = -1;
  #isAsked = false;

  constructor(session: ServerHttp2Session, socket: Socket, rules: ConnectionRules, events: ConnectionEvents) {
    this.#session = session;
    this.#socket = socket;
    this.#rules = rules;
    this.#events = events;
    const first = this.#after(rules.firstFrameMillisMax, () => this.#cut("silent"));
    session.once("remoteSettings", () => this.#clear(first));
    session.once("close", () => {
      for (const timer of this.#timers) clearTimeout(timer);
    });
    const { connectionAgeMillisMax, pingMillis } = rules;
    if (connectionAgeMillisMax > 0) {
      const spread = 1 + AGE_SPREAD * (2 * Math.random() - 1);
      this.#after(connectionAgeMillisMax * spread, () => void this.#renew());
    }
    if (pingMillis > 0) this.#timers.add(setInterval(() => this.#look(), pingMillis).unref());
  }

  /**
   * Informs the client that the connection will end before it does (RFC 9113, 6.8), and resolves once it has read that: what was
   * opened until then has arrived, and is served. Node's HTTP/2 takes no stream once it has sent a GOAWAY itself: those that cross it
   * are refused, and a proxy that asks for an endpoint answers its client with 500 then. So the frame is written beside it, between
   * two of its writes, which end with whole frames.
   */
  async inform(): Promise<void> {
    if (!this.#isInformed && this.#socket.writable) this.#socket.write(NOTICE);
    this.#isInformed = true;
    const read = Promise.withResolvers<void>();
    const timer = this.#after(NOTICE_READ_MILLIS_MAX, read.resolve);
    // A ping's answer comes behind all that was sent before the ping was read.
    this.#ping(read.resolve);
    this.#session.once("close", read.resolve);
    await read.promise;
    this.#session.off("close", read.resolve);
    this.#clear(timer);
  }

  /** Takes no new calls, and ends with the last one that is open. */
  close(): void {
    this.#session.close();
  }

  /** Ends with those that are open. */
  destroy(): void {
    this.#session.destroy(undefined, constants.NGHTTP2_CANCEL);
  }

  async #renew(): Promise<void> {
    this.#events.connectionRenewed();
    await this.inform();
    if (this.#session.destroyed) return;
    this.close();
    this.#after(this.#rules.connectionGraceMillis, () => this.#cut("age-cut"));
  }

  /** Whoever sent something since is there. */
  #look(): void {
    const { bytesRead } = this.#socket;
    const isSilent = bytesRead === this.#bytesRead;
    this.#bytesRead = bytesRead;
    if (!isSilent || this.#isAsked) return;
    this.#isAsked = true;
    const timer = this.#after(this.#rules.pingAnswerMillisMax, () => {
      // What came while this process itself stood still is read first.
      setImmediate(() => {
        this.#isAsked = false;
        if (this.#socket.bytesRead === bytesRead) this.#cut("no-pong");
      });
    });
    this.#ping(() => {
      this.#isAsked = false;
      this.#clear(timer);
    });
  }

  /** Calls back with the answer, or at once where none can come. */
  #ping(answered: () => void): void {
    const session = this.#session;
    if (session.closed || session.destroyed || !session.ping(answered)) answered();
  }

  #cut(why: ConnectionFailure): void {
    if (this.#session.destroyed) return;
    this.#events.failed(why);
    this.destroy();
  }

  #after(millis: number, then: () => void): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      then();
    }, millis).unref();
    this.#timers.add(timer);
    return timer;
  }

  #clear(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}
