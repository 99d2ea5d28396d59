import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { DnsLookup } from "#live/discovery/dns-lookup.ts";
import type { Shape } from "./shapes.ts";

/** Of a message, less the question. */
export const DNS_BYTES_MAX = 65_408;

const HEAD_BYTES = 12;
const TRUNCATED = 0x8380;
const ANSWERED = 0x8180;
const [A, CNAME, TXT] = [1, 5, 16];
/** The name of the question. */
const ASKED = Buffer.from([0xc0, HEAD_BYTES]);

function record(name: Buffer, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt32BE(5, 4);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([name, fixed, data]);
}

/** Their number, and the records. */
function records(one: (i: number) => Buffer): Shape {
  return (bytes) => {
    const all: Buffer[] = [Buffer.alloc(2)];
    for (let size = 2, i = 0; ; i++) {
      const next = one(i);
      size += next.length;
      if (size > bytes) break;
      all.push(next);
    }
    all[0]!.writeUInt16BE(all.length - 1);
    return Buffer.concat(all);
  };
}

function address(i: number): Buffer {
  return Buffer.from([10, (i >> 16) & 255, (i >> 8) & 255, i & 255]);
}

/** What is behind the question of an answer. */
export const DNS_SHAPES: Readonly<Record<string, Shape>> = {
  addresses: records((i) => record(ASKED, A, address(i))),
  "equal addresses": records(() => record(ASKED, A, address(1))),
  "broken addresses": records(() => record(ASKED, A, Buffer.alloc(3))),
  "names of names": records(() => record(ASKED, CNAME, ASKED)),
  "names that point at themselves": records((i) =>
    record(Buffer.from([0xc0 | ((i >> 8) & 0x3f), i & 255]), A, address(i)),
  ),
  "long names": records((i) =>
    record(
      Buffer.concat([...Array.from({ length: 100 }, () => Buffer.from([1, 0x61])), Buffer.alloc(1)]),
      A,
      address(i),
    ),
  ),
  texts: records(() => record(ASKED, TXT, Buffer.alloc(1))),
  zeros: (bytes) => Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(bytes)]),
  "no records": (bytes) => Buffer.alloc(bytes),
};

/** From a name server that answers over UDP that its answer is too long, and then over TCP. */
export async function readDnsAnswer(section: Buffer): Promise<void> {
  const answer = (asked: Buffer, flags: number, behind: Buffer): Buffer => {
    const question = asked.subarray(HEAD_BYTES, asked.indexOf(0, HEAD_BYTES) + 5);
    const head = Buffer.alloc(HEAD_BYTES);
    asked.copy(head, 0, 0, 2);
    head.writeUInt16BE(flags, 2);
    head.writeUInt16BE(1, 4);
    behind.copy(head, 6, 0, 2);
    return Buffer.concat([head, question, behind.subarray(2)]);
  };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (asked: Buffer) => {
      const message = answer(asked.subarray(2), ANSWERED, section);
      const length = Buffer.alloc(2);
      length.writeUInt16BE(message.length);
      socket.write(Buffer.concat([length, message]));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const udp = createSocket("udp4", (asked, from) =>
    udp.send(answer(asked, TRUNCATED, Buffer.alloc(2)), from.port, from.address),
  );
  udp.bind(port, "127.0.0.1");
  await once(udp, "listening");
  const lookup = new DnsLookup({ servers: [`127.0.0.1:${port}`], timeoutMillis: 1_000 });
  try {
    await lookup.ask({ name: "engines.example", type: "A", port: 8000 });
  } finally {
    lookup.cancel();
    server.close();
    udp.close();
  }
}
