import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { GrpcServerOptions } from "#picker/grpc/grpc-server.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Of a server in plain text without bounds that matter. */
export const LIMITS: Omit<GrpcServerOptions, "methods"> = {
  messageBytesMax: 100_000,
  room: { take: () => true, give: () => {} },
  writeStallMillisMax: 60_000,
  callsMax: 100,
  connectionsMax: 100,
  connectionDropped: () => {},
  connectionRenewed: () => {},
  firstFrameMillisMax: 60_000,
  firstMessageMillisMax: 60_000,
  connectionAgeMillisMax: 0,
  connectionGraceMillis: 60_000,
  pingMillis: 0,
  pingAnswerMillisMax: 60_000,
  failed: () => {},
  tls: undefined,
};

/** Frames of HTTP/2, by their numbers. */
export const FRAME = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;
export const END_STREAM = 1;
const ACK = 1;
export const END_HEADERS = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A list of headers, each literal and without compression. */
export function fieldsOf(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(
    Object.entries(headers).map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])),
  );
}

export const CALL = {
  ":method": "POST",
  ":scheme": "http",
  ":path": "/s/Echo",
  ":authority": "a",
  "content-type": "application/grpc",
  te: "trailers",
};

export function callHeaders(stream: number, more: Readonly<Record<string, string>> = {}, flags = 0): Buffer {
  return frame(FRAME.headers, END_HEADERS | flags, stream, fieldsOf({ ...CALL, ...more }));
}

export function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Settings, each by its number. */
export function settings(values: readonly (readonly [id: number, value: number])[] = []): Buffer {
  const pairs = values.map(([id, value]) => Buffer.concat([Buffer.from([id >> 8, id & 255]), number32(value)]));
  return frame(FRAME.settings, 0, 0, Buffer.concat(pairs));
}

export function messageOf(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0]), number32(bytes.length), bytes]);
}

/** A client of HTTP/2 that sends what it likes. */
export class RawClient {
  readonly socket: Socket;
  /** Types of the frames that came, with their streams and payloads. */
  readonly frames: {
    readonly type: number;
    readonly flags: number;
    readonly stream: number;
    readonly payload: Buffer;
  }[] = [];
  #held: Buffer = Buffer.alloc(0);
  readonly #waiting = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    socket.on("close", () => this.#look());
  }

  static async connect(port: number, isTls: boolean, begin: Buffer = settings()): Promise<RawClient> {
    const options = { host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] };
    const socket = isTls ? connectTls(options) : connect(options);
    const client = new RawClient(socket);
    await once(socket, isTls ? "secureConnect" : "connect");
    client.send(PREFACE, begin);
    return client;
  }

  /** In one piece. */
  send(...frames: readonly Buffer[]): void {
    if (this.socket.writable) this.socket.write(Buffer.concat(frames));
  }

  /** Resolves once it holds, or the connection has ended. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds() && !this.socket.destroyed) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  count(type: number, stream?: number): number {
    return this.frames.filter((one) => one.type === type && (stream === undefined || one.stream === stream)).length;
  }

  #read(bytes: Buffer): void {
    this.#held = Buffer.concat([this.#held, bytes]);
    for (;;) {
      if (this.#held.length < 9) break;
      const end = 9 + this.#held.readUIntBE(0, 3);
      if (this.#held.length < end) break;
      const [type, flags, stream] = [this.#held[3]!, this.#held[4]!, this.#held.readUInt32BE(5) & 0x7fffffff];
      this.frames.push({ type, flags, stream, payload: this.#held.subarray(9, end) });
      this.#held = this.#held.subarray(end);
      if (type === FRAME.settings && flags === 0) this.send(frame(FRAME.settings, ACK, 0));
    }
    this.#look();
  }

  #look(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
