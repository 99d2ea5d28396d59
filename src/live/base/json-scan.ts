/** Bounds of a JSON text: what makes reading it dear, whatever its length. */
export interface JsonLimits {
  /** Arrays and objects within one another. */
  readonly jsonDepthMax: number;
  /** Keys of all objects. */
  readonly jsonKeysMax: number;
  /** Keys of the outermost object. */
  readonly jsonFieldsMax: number;
  /** Strings, arrays and objects, without the keys. */
  readonly jsonItemsMax: number;
  /** Values of any kind. */
  readonly jsonValuesMax: number;
}

/** From one byte up to another. */
export interface ByteSpan {
  readonly from: number;
  readonly to: number;
}

/** Fields of a request of which nothing is read here but whether they are there: objects that may have very many keys. */
const UNREAD_FIELDS: ReadonlySet<string> = new Set([
  "response_format",
  "structured_outputs",
  "guided_json",
  "metadata",
]);
/** Fewer cost as little to parse as to pass over. */
const UNREAD_KEYS_MIN = 64;
const FIELD_BYTES_MAX = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;
const LIST_KEY = "messages";
/** Bytes of a string looked at one by one before its end is searched for. */
const LOOKED_AT_BYTES = 16;

/** What a byte outside of strings means. */
const OPEN = 1;
const CLOSE = 2;
const COLON = 3;
const COMMA = 4;
const STRING = 5;
const MEANINGS = new Uint8Array(256);
for (const [bytes, meaning] of [
  ["[{", OPEN],
  ["]}", CLOSE],
  [":", COLON],
  [",", COMMA],
  ['"', STRING],
] as const) {
  for (const byte of Buffer.from(bytes)) MEANINGS[byte] = meaning;
}

/**
 * Looks over the bytes of a JSON text, in slices, and finds before it is read whether it is nested too deeply or holds
 * too much: reading `[[[[` or `{"a":0,"b":0,` takes hundreds of times as long as text of the same length, in one piece.
 * About 1 ns a byte, less in long strings. What is no JSON is left for the reader to refuse.
 */
export class JsonScan {
  readonly #bytes: Buffer;
  readonly #limits: JsonLimits;
  #at = 0;
  #inString = false;
  #depth = 0;
  #deepest = 0;
  #keys = 0;
  #strings = 0;
  #containers = 0;
  #commas = 0;
  #isInList = false;
  #fields = 0;
  /** Where an object begins that need not be read, and the keys before it. */
  #unreadFrom = -1;
  #unreadKeys = 0;
  /** Objects of many keys that a request can be read without, each the value of a field, in their order. */
  readonly unread: ByteSpan[] = [];
  /** Lists under the key "messages" of the outermost object, as JSON has them mostly: one, or none. */
  lists = 0;
  /** Of the last of them: where its key begins, arrays and objects in it, the ends of the last two, and its own end. */
  listKeyAt = -1;
  listItems = 0;
  itemBeforeEnd = -1;
  itemEnd = -1;
  listEnd = -1;

  constructor(bytes: Buffer, limits: JsonLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  /**
   * Where this one stands, for other bytes that are the same up to there: what was looked at counts in it, and is not
   * looked at again.
   */
  goingOn(bytes: Buffer, limits: JsonLimits): JsonScan {
    const scan = new JsonScan(bytes, limits);
    scan.#at = this.#at;
    scan.#inString = this.#inString;
    scan.#depth = this.#depth;
    scan.#deepest = this.#deepest;
    scan.#keys = this.#keys;
    scan.#strings = this.#strings;
    scan.#containers = this.#containers;
    scan.#commas = this.#commas;
    scan.#isInList = this.#isInList;
    scan.#fields = this.#fields;
    scan.#unreadFrom = this.#unreadFrom;
    scan.#unreadKeys = this.#unreadKeys;
    scan.unread.push(...this.unread);
    scan.lists = this.lists;
    scan.listKeyAt = this.listKeyAt;
    scan.listItems = this.listItems;
    scan.itemBeforeEnd = this.itemBeforeEnd;
    scan.itemEnd = this.itemEnd;
    return scan;
  }

  /** Looks at about as many bytes more; true when all are looked at or a bound is crossed. */
  advance(bytes: number): boolean {
    const until = Math.min(this.#bytes.length, this.#at + bytes);
    while (this.#at < until) {
      if (this.#inString) this.#skipString(until);
      else this.#scan(until);
    }
    return this.#at >= this.#bytes.length || this.crossed !== undefined;
  }

  /** The bound that what was looked at crosses. */
  get crossed(): keyof JsonLimits | undefined {
    const limits = this.#limits;
    if (this.#deepest > limits.jsonDepthMax) return "jsonDepthMax";
    if (this.#keys > limits.jsonKeysMax) return "jsonKeysMax";
    if (this.#fields > limits.jsonFieldsMax) return "jsonFieldsMax";
    // The last string may still turn out to be a key.
    const open = this.#at < this.#bytes.length ? 1 : 0;
    if (this.#strings - open - this.#keys + this.#containers > limits.jsonItemsMax) return "jsonItemsMax";
    return this.values > limits.jsonValuesMax ? "jsonValuesMax" : undefined;
  }

  /** Values in what was looked at, or a few more. */
  get values(): number {
    return this.#commas + this.#containers + 1;
  }

  /** Up to the next string, or as far as asked. */
  #scan(until: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (at < until) {
      const meaning = MEANINGS[bytes[at++]!]!;
      if (meaning === 0) continue;
      if (meaning === STRING) {
        this.#strings++;
        this.#inString = true;
        break;
      }
      if (meaning === COMMA) this.#commas++;
      else if (meaning === COLON) {
        this.#keys++;
        if (this.#depth === 1) this.#fields++;
      } else if (meaning === CLOSE) {
        if (--this.#depth <= 2 && (this.#isInList || this.#depth === 1)) this.#closed(at);
      } else {
        this.#containers++;
        if (++this.#depth > this.#deepest) this.#deepest = this.#depth;
        if (this.#depth === 2) this.#opened(at - 1);
      }
    }
    this.#at = at;
  }

  /** An array or object in the outermost object or array begins. */
  #opened(bracket: number): void {
    const keyAt = keyBefore(this.#bytes, bracket);
    if (keyAt < 0) return;
    const key = this.#bytes.toString("latin1", keyAt + 1, this.#bytes.indexOf(QUOTE, keyAt + 1));
    if (this.#bytes[bracket] !== BRACKET) {
      if (!UNREAD_FIELDS.has(key)) return;
      this.#unreadFrom = bracket;
      this.#unreadKeys = this.#keys;
    } else if (key === LIST_KEY) this.#listOpened(keyAt);
  }

  #listOpened(keyAt: number): void {
    this.lists++;
    this.listKeyAt = keyAt;
    this.listItems = 0;
    this.itemBeforeEnd = -1;
    this.itemEnd = -1;
    this.listEnd = -1;
    this.#isInList = true;
  }

  /** Something in the list ended before `at`, or something in the outermost object did. */
  #closed(at: number): void {
    if (this.#depth === 2) {
      this.listItems++;
      this.itemBeforeEnd = this.itemEnd;
      this.itemEnd = at;
    } else if (this.#isInList) {
      this.listEnd = at - 1;
      this.#isInList = false;
    } else if (this.#unreadFrom >= 0) {
      if (this.#keys - this.#unreadKeys > UNREAD_KEYS_MIN) this.unread.push({ from: this.#unreadFrom, to: at });
      this.#unreadFrom = -1;
    }
  }

  /** To behind the string's end, or as far as asked; never between a backslash and what it escapes. */
  #skipString(until: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    let searchAt = at + LOOKED_AT_BYTES;
    while (at < until) {
      if (at >= searchAt) {
        const quote = bytes.indexOf(QUOTE, at);
        const end = quote < 0 ? bytes.length : quote;
        at = isEscaped(bytes, at, end) ? end + 1 : end;
        searchAt = at + LOOKED_AT_BYTES;
        continue;
      }
      const byte = bytes[at++]!;
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.#inString = false;
        break;
      }
    }
    this.#at = at;
  }
}

/**
 * Where the opening quote is of the key before a value of the outermost object; -1 where there is none, where it is too
 * long to be one that is looked for, and where a quote inside of it may be taken for its beginning.
 */
function keyBefore(bytes: Buffer, value: number): number {
  const colon = lastVisible(bytes, value - 1);
  if (bytes[colon] !== 0x3a) return -1;
  const quote = lastVisible(bytes, colon - 1);
  if (bytes[quote] !== QUOTE) return -1;
  const least = Math.max(1, quote - FIELD_BYTES_MAX);
  let keyAt = quote - 1;
  while (keyAt >= least && bytes[keyAt] !== QUOTE) keyAt--;
  if (keyAt < least) return -1;
  const before = bytes[lastVisible(bytes, keyAt - 1)];
  return before === 0x7b || before === 0x2c ? keyAt : -1;
}

/** Where the last byte up to `at` is that is no space. */
function lastVisible(bytes: Buffer, at: number): number {
  let place = at;
  while (place >= 0 && bytes[place]! <= 0x20) place--;
  return place;
}

/** Whether an odd number of backslashes stands before `at`, down to `from`, where none is open. */
function isEscaped(bytes: Buffer, from: number, at: number): boolean {
  let before = at;
  while (before > from && bytes[before - 1] === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}

/** Whether a JSON text, looked over at once, crosses one of the bounds. */
export function isBeyond(bytes: Buffer, limits: JsonLimits): boolean {
  const scan = new JsonScan(bytes, limits);
  scan.advance(bytes.length);
  return scan.crossed !== undefined;
}

/**
 * The text of body[from..to) with `{}` in the place of objects that need not be read. V8 makes a dictionary of an object
 * that has more than some 128 keys, which takes five to ten times as long a key, and grows faster than the body does.
 */
export function readText(body: Buffer, from: number, to: number, unread: readonly ByteSpan[]): string {
  let text = "";
  let at = from;
  for (const span of unread) {
    if (span.from < at || span.to > to) continue;
    text += `${body.toString("utf8", at, span.from)}{}`;
    at = span.to;
  }
  return text === "" ? body.toString("utf8", from, to) : text + body.toString("utf8", at, to);
}
