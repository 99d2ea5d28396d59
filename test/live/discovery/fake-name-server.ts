import { createSocket, type Socket } from "node:dgram";

export type FakeRecord =
  | { readonly type: "A"; readonly address: string; readonly ttl: number }
  | { readonly type: "AAAA"; readonly words: readonly number[]; readonly ttl: number }
  | {
      readonly type: "SRV";
      readonly host: string;
      readonly port: number;
      readonly priority: number;
      readonly ttl: number;
    };

const TYPES = { A: 1, AAAA: 28, SRV: 33 } as const;
const NAME_POINTER = Buffer.from([0xc0, 12]);

/** What it does with a question: answer by its records, or one of the ways in which a name server fails. */
export type Mood = "answers" | "silent" | "server-failure" | "no-such-name";

/** A name server on a UDP port of loopback, for one question in each message (RFC 1035). */
export class FakeNameServer {
  /** By "TYPE name". */
  readonly records = new Map<string, readonly FakeRecord[]>();
  /** Questions seen, as "TYPE name". */
  readonly seen: string[] = [];
  /** When each was seen, by `performance.now()`. */
  readonly seenMillis: number[] = [];
  mood: Mood = "answers";
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (message, from) => {
      const answer = this.#answer(message);
      if (answer !== undefined) socket.send(answer, from.port, from.address);
    });
  }

  static async start(): Promise<FakeNameServer> {
    const socket = createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    return new FakeNameServer(socket);
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  stop(): void {
    this.#socket.close();
  }

  #answer(message: Buffer): Buffer | undefined {
    const { name, type, end } = questionOf(message);
    const asked = `${type} ${name}`;
    this.seen.push(asked);
    this.seenMillis.push(performance.now());
    if (this.mood === "silent") return undefined;
    const records = this.mood === "answers" ? (this.records.get(asked) ?? []) : [];
    const known = [...this.records.keys()].some((key) => key.endsWith(` ${name}`));
    const code = this.mood === "server-failure" ? 2 : this.mood === "no-such-name" || !known ? 3 : 0;
    const head = Buffer.alloc(12);
    message.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | code, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    return Buffer.concat([head, message.subarray(12, end), ...records.map(recordBytes)]);
  }
}

function questionOf(message: Buffer): { name: string; type: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const number = message.readUInt16BE(at + 1);
  const type = Object.entries(TYPES).find(([, known]) => known === number)?.[0] ?? String(number);
  return { name: labels.join(".").toLowerCase(), type, end: at + 5 };
}

function recordBytes(record: FakeRecord): Buffer {
  const data = dataOf(record);
  const head = Buffer.alloc(10);
  head.writeUInt16BE(TYPES[record.type], 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt32BE(record.ttl, 4);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([NAME_POINTER, head, data]);
}

function dataOf(record: FakeRecord): Buffer {
  if (record.type === "A") return Buffer.from(record.address.split(".").map(Number));
  if (record.type === "AAAA") return Buffer.from(record.words.flatMap((word) => [word >> 8, word & 0xff]));
  const head = Buffer.alloc(6);
  head.writeUInt16BE(record.priority, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(record.port, 4);
  const labels = record.host.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([head, ...labels, Buffer.from([0])]);
}
