import { randomBytes, randomInt } from "node:crypto";
import { mix32 } from "#core/base/random.ts";
import { type Fields, isFields } from "../base/fields.ts";
import { type JsonLimits, JsonScan, readText } from "../base/json-scan.ts";
import { countUp } from "../base/gateway-counters.ts";

/** Beginnings of fewer bytes cost as much to find as to read; of more, remembering one takes too long in one piece. */
const BYTES_MIN = 4_096;
const BYTES_MAX = 1 << 19;
/** More than that behind one goes in turns with all long work. */
const REST_BYTES_MAX = 1 << 16;
/** One is remembered anew where so many bytes, or messages, more are known. */
const GROWTH_BYTES = 2_048;
const GROWTH_MESSAGES = 4;
/** Ends of messages that are looked at, from the last one on: those of what a turn adds, with its calls of tools. */
const ENDS_MAX = 12;
/** How long what follows the messages was lately (tools, options): where their end is looked for. */
const TAILS_MAX = 8;
const SAMPLE_BYTES = 64;
const SAMPLES = 32;
/** Conversations seen once are known by a number alone. */
const SIGHTINGS = 1 << 14;
/** What one takes beside its bytes, and each of its messages. */
const BODY_BYTES = 1_024;
const MESSAGE_BYTES = 160;

const [CLOSING, COMMA, BRACKET_END] = [0x7d, 0x2c, 0x5d];
const SEPARATORS = [Buffer.from('},{"'), Buffer.from('}, {"')] as const;

/** The beginning of a chat's body, up to the end of one of its messages. */
interface KnownBody {
  readonly key: number;
  readonly bytes: Buffer;
  /** Looked over as far as that. */
  readonly scan: JsonScan;
  /** What stands before the messages that follow: their list, with a mark that no client has as its first item. */
  readonly head: string;
  readonly messages: readonly unknown[];
}

/** A body of which the beginning was known. */
export interface ReadOn {
  readonly scan: JsonScan;
  /** As JSON.parse reads the whole body; undefined where that is no JSON, or more than a chat. */
  readonly fields: Fields | undefined;
  /** The messages that were known, in the same array each time; not looked at. */
  readonly beginning: readonly unknown[];
}

/**
 * Beginnings of chats, so that of a conversation that goes on only the new messages are looked over and read. A body is
 * cut behind one of its last messages; what is before is compared byte by byte, what follows is read as if it stood alone.
 *
 * The first body of a conversation leaves a number, the second one its bytes and messages but for the last: what comes
 * once is not kept. Bounded in bytes; the least recently used goes first. Nothing else of a request depends on it.
 */
export class KnownBodies {
  /** known: read on from. unknown: long enough and not. kept and dropped: beginnings. */
  readonly counts: Record<string, number>;
  readonly #known = new Map<number, KnownBody>();
  readonly #seen = new Int32Array(SIGHTINGS);
  readonly #tails: number[] = [];
  /** Nobody can make bodies that are mistaken for one another by their numbers. */
  readonly #seed = randomInt(2 ** 32);
  readonly #mark = randomBytes(16).toString("hex");
  readonly #bytesMin: number;
  #bytes = 0;

  /** Beginnings of fewer than `bytesMin` bytes, at least 64, are not looked for. */
  constructor(counts: Record<string, number>, bytesMin = BYTES_MIN) {
    this.counts = counts;
    this.#bytesMin = Math.max(SAMPLE_BYTES, bytesMin);
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The longest beginning that is known of those that end with one of the last messages, or whether one was seen. */
  find(body: Buffer, bytesMax: number): KnownBody | "seen" | undefined {
    let seen: "seen" | undefined;
    this.#trim(bytesMax);
    if (bytesMax === 0 || body.length < this.#bytesMin || body.length > 2 * BYTES_MAX) return undefined;
    const separator = SEPARATORS[body[body.indexOf(0x3a) + 1] === 0x20 ? 1 : 0];
    for (const tail of this.#tails) {
      const listEnd = body.length - tail;
      if (body[listEnd] !== BRACKET_END) continue;
      const from = Math.max(0, listEnd - REST_BYTES_MAX);
      const last = body.subarray(from, listEnd);
      for (let i = 0, before = last.length; i < ENDS_MAX && before > 0; i++) {
        const place = last.lastIndexOf(separator, before - 1);
        const at = from + place;
        if (place < 0 || at < this.#bytesMin) break;
        const found = this.#at(body, at + 1);
        if (found === "seen") seen = found;
        else if (found !== undefined) return found;
        before = place;
      }
    }
    countUp(this.counts, "unknown");
    return seen;
  }

  #at(body: Buffer, end: number): KnownBody | "seen" | undefined {
    const key = this.#keyOf(body, end);
    const known = this.#known.get(key);
    if (known === undefined) return this.#seen[key & (SIGHTINGS - 1)] === key ? "seen" : undefined;
    if (known.bytes.length !== end || body.compare(known.bytes, 0, end, 0, end) !== 0) return undefined;
    countUp(this.counts, "known");
    this.#known.delete(key);
    this.#known.set(key, known);
    return known;
  }

  /** Reads what follows; undefined where the whole has to be read after all. */
  readOn(body: Buffer, known: KnownBody, limits: JsonLimits): ReadOn | undefined {
    const comma = firstVisible(body, known.bytes.length);
    const rest = body.length - comma - 1;
    if (body[comma] !== COMMA || rest > restMax(known)) return undefined;
    const scan = known.scan.goingOn(body, limits);
    scan.advance(body.length);
    const { messages: beginning } = known;
    if (scan.crossed !== undefined) return { scan, fields: undefined, beginning };
    let parsed: unknown;
    try {
      parsed = JSON.parse(known.head + readText(body, comma + 1, body.length, scan.unread));
    } catch {
      return undefined;
    }
    const list = isFields(parsed) ? parsed["messages"] : undefined;
    // A second list takes the place of the first one.
    if (!isFields(parsed) || !Array.isArray(list) || list[0] !== this.#mark) return undefined;
    const more = list.slice(1) as unknown[];
    const messages = beginning.concat(more);
    if (more.length === scan.listItems - known.scan.listItems) this.#grow(body, known, scan, messages);
    // In place, so that what reads the fields meets the shape that JSON.parse gives a body that is read whole.
    return { scan, fields: Object.assign(parsed, { messages }), beginning };
  }

  #grow(body: Buffer, known: KnownBody, scan: JsonScan, messages: readonly unknown[]): void {
    const bytes = scan.itemBeforeEnd - known.bytes.length;
    const count = messages.length - 1 - known.messages.length;
    if (count === 0 || (bytes < GROWTH_BYTES && count < GROWTH_MESSAGES)) return;
    const upTo = known.scan.goingOn(body, NO_LIMITS);
    upTo.advance(bytes);
    this.#drop(known);
    this.#keep({
      key: this.#keyOf(body, scan.itemBeforeEnd),
      bytes: Buffer.from(body.subarray(0, scan.itemBeforeEnd)),
      scan: upTo.goingOn(EMPTY, NO_LIMITS),
      head: known.head,
      messages: messages.slice(0, -1),
    });
  }

  /** A chat was read as a whole; `seen` is what `find` found. */
  note(body: Buffer, scan: JsonScan, seen: boolean, bytesMax: number): void {
    const { lists, itemBeforeEnd, listEnd } = scan;
    if (bytesMax === 0 || lists !== 1 || itemBeforeEnd < this.#bytesMin || itemBeforeEnd > BYTES_MAX || listEnd < 0)
      return;
    if (body[itemBeforeEnd - 1] !== CLOSING) return;
    this.#noteTail(body.length - listEnd);
    const key = this.#keyOf(body, itemBeforeEnd);
    const slot = key & (SIGHTINGS - 1);
    const isSeen = seen || this.#seen[slot] === key;
    this.#seen[slot] = key;
    if (isSeen && itemBeforeEnd * 3 < bytesMax) this.#remember(body, scan, key);
    this.#trim(bytesMax);
  }

  #trim(bytesMax: number): void {
    while (this.#bytes > bytesMax) this.#drop(this.#known.values().next().value!);
  }

  #noteTail(tail: number): void {
    if (this.#tails.includes(tail)) return;
    this.#tails.unshift(tail);
    if (this.#tails.length > TAILS_MAX) this.#tails.pop();
  }

  #remember(body: Buffer, { itemBeforeEnd, listKeyAt, listItems }: JsonScan, key: number): void {
    const bytes = Buffer.from(body.subarray(0, itemBeforeEnd));
    const scan = new JsonScan(bytes, NO_LIMITS);
    scan.advance(itemBeforeEnd);
    // What follows in the body may replace its messages: these are those of the beginning alone.
    const head = `${readText(bytes, 0, listKeyAt, scan.unread)}"messages":["${this.#mark}",`;
    const parsed = beginning(bytes);
    if (parsed?.length === listItems - 1 && parsed.length === scan.listItems && bytes[0] === 0x7b)
      this.#keep({ key, bytes, scan: scan.goingOn(EMPTY, NO_LIMITS), head, messages: parsed });
  }

  #keep(known: KnownBody): void {
    const before = this.#known.get(known.key);
    if (before !== undefined) this.#drop(before);
    this.#known.set(known.key, known);
    this.#bytes += sizeOf(known);
    countUp(this.counts, "kept");
  }

  #drop(known: KnownBody): void {
    if (!this.#known.delete(known.key)) return;
    this.#bytes -= sizeOf(known);
    countUp(this.counts, "dropped");
  }

  /** Of the length, the last bytes and some of all others: 32 bits, signed. */
  #keyOf(body: Buffer, end: number): number {
    let key = mix32(this.#seed ^ end) | 0;
    const stride = Math.floor(end / SAMPLES);
    for (let at = 0; at <= end - 4; at += stride) key = mixed(key, body.readInt32LE(at));
    for (let at = end - SAMPLE_BYTES; at < end; at += 4) key = mixed(key, body.readInt32LE(at));
    return key;
  }
}

function mixed(key: number, word: number): number {
  const product = Math.imul(key ^ word, 0x85ebca6b);
  return product ^ (product >>> 15);
}

/** More than was known is better read at once, and remembered whole. */
function restMax({ bytes }: KnownBody): number {
  return Math.min(REST_BYTES_MAX, Math.max(BYTES_MIN, bytes.length));
}

const EMPTY = Buffer.alloc(0);
const NO_LIMITS: JsonLimits = {
  jsonDepthMax: Infinity,
  jsonKeysMax: Infinity,
  jsonFieldsMax: Infinity,
  jsonItemsMax: Infinity,
  jsonValuesMax: Infinity,
};

function beginning(bytes: Buffer): unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(`${bytes.toString("utf8")}]}`);
    const messages = isFields(parsed) ? parsed["messages"] : undefined;
    return Array.isArray(messages) ? (messages as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

/** Text and its values beside the bytes. */
function sizeOf({ bytes, messages, head }: KnownBody): number {
  return BODY_BYTES + 2 * bytes.length + 2 * head.length + MESSAGE_BYTES * messages.length;
}

function firstVisible(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at]! <= 0x20) at++;
  return at;
}
