import { MessageFrames } from "#picker/grpc/message-frames.ts";
import { repeated, type Shape } from "./shapes.ts";

const WITH_LENGTH = 2;

function varint(value: number): string {
  return value < 128
    ? String.fromCharCode(value)
    : String.fromCharCode((value % 128) | 128) + varint(Math.floor(value / 128));
}

/** A field with its length before it, in latin1. */
function field(number: number, bytes: string): string {
  return varint(number * 8 + WITH_LENGTH) + varint(bytes.length) + bytes;
}

/** More than the fields have that pieces are in: what is cut off is refused unread. */
const HEADS_BYTES = 512;

/** Pieces in a field, in fields: the innermost is given last. */
function within(numbers: readonly number[], piece: (i: number) => string): Shape {
  return (bytes) => {
    let message = repeated(piece)(bytes - HEADS_BYTES).toString("latin1");
    for (const number of numbers.toReversed()) message = field(number, message);
    return Buffer.from(message, "latin1");
  };
}

const [REQUEST_HEADERS, REQUEST_BODY, METADATA, MODES] = [2, 4, 8, 11];
const header = (i: number): string => field(1, field(1, `h${i}`) + field(3, "v"));
const SUBSET = field(1, "envoy.lb.subset_hint");
const NAME = field(1, "x-gateway-destination-endpoint-subset");

/** Of Envoy's external processing. */
export const PROXY_SHAPES: Readonly<Record<string, Shape>> = {
  headers: within([REQUEST_HEADERS, 1], header),
  "empty headers": within([REQUEST_HEADERS, 1], () => field(1, "")),
  "lists of headers": within([REQUEST_HEADERS], () => field(1, "")),
  "names of one header": within([REQUEST_HEADERS, 1, 1], (i) => field(1, `n${i}`)),
  "one long header": within([REQUEST_HEADERS, 1, 1, 3], () => "x"),
  "one long name": within([REQUEST_HEADERS, 1, 1, 1], () => "\u00c3\u00a9"),
  "a long body": within([REQUEST_BODY, 1], () => "x"),
  "bodies of one body": within([REQUEST_BODY], () => field(1, "x")),
  "phases of one message": repeated(() => field(REQUEST_BODY, "")),
  namespaces: within([METADATA], (i) => field(1, field(1, `n${i}`) + field(2, ""))),
  "one namespace again and again": within([METADATA], () => field(1, SUBSET + field(2, field(1, NAME)))),
  "values of one namespace": (bytes) =>
    within([METADATA], () =>
      field(1, SUBSET + field(2, repeated(() => field(1, NAME))(bytes - HEADS_BYTES).toString("latin1"))),
    )(HEADS_BYTES + 1),
  addresses: (bytes) => {
    const list = repeated(() => field(1, field(3, "10.0.0.1:8000")))(bytes - HEADS_BYTES).toString("latin1");
    const value = field(2, field(6, list));
    return within([METADATA], () => field(1, SUBSET + field(2, field(1, NAME + value))))(HEADS_BYTES + 1);
  },
  "modes again and again": repeated(() => field(MODES, "\u0008\u0004")),
  "unknown numbers": repeated(() => "\u0078\u0001"),
  "unknown texts": repeated(() => field(15, "")),
  "numbers of ten bytes": repeated(() => "\u0078" + "\u00ff".repeat(9) + "\u0001"),
  "numbers without an end": repeated(() => "\u00ff"),
  "groups in groups": repeated(() => "\u007b"),
  "messages in messages": (bytes) => {
    let message = "";
    while (message.length < Math.min(bytes, 4_096)) message = field(METADATA, message);
    return repeated(() => message)(bytes);
  },
  zeros: (bytes) => Buffer.alloc(bytes),
};

const framed = (bytes: string): string => {
  const length = Buffer.alloc(5);
  length.writeUInt32BE(bytes.length, 1);
  return length.toString("latin1") + bytes;
};

/** Of gRPC, before they are read. */
export const FRAME_SHAPES: Readonly<Record<string, Shape>> = {
  "one long message": (bytes) => Buffer.from(framed("x".repeat(bytes)), "latin1"),
  "one long message, cut off": (bytes) => Buffer.from(framed("x".repeat(2 * bytes)).slice(0, bytes), "latin1"),
  "empty messages": repeated(() => framed("")),
  "messages of a byte": repeated(() => framed("x")),
  "messages of 1,000 bytes": repeated(() => framed("x".repeat(1_000))),
  "messages of 50,000 bytes": repeated(() => framed("x".repeat(50_000))),
};

/** As reads bring them. */
export async function readFrames(bytes: Buffer, pieceBytes: number, bytesMax: number): Promise<void> {
  const frames = new MessageFrames(bytesMax);
  for (let at = 0, pieces = 1; at < bytes.length; at += pieceBytes, pieces++) {
    frames.push(Buffer.from(bytes.subarray(at, at + pieceBytes)), () => {});
    if (pieces % PIECES_AT_ONCE === 0) await new Promise(setImmediate);
  }
}

const PIECES_AT_ONCE = 64;
