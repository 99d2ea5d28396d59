import { decode } from "@msgpack/msgpack";
import type { BlockStored, EngineHash, KvEvent, KvEventBatch, Medium } from "./kv-event.ts";
import { listHead, valueEnd, ValueError } from "./value-end.ts";

/** A payload that is not a batch of KV events. The message names what was expected where. */
export class KvEventFormatError extends Error {
  override readonly name = "KvEventFormatError";
}

/** Elements of one list: more than a step of an engine computes of one prompt. */
const LIST_MAX = 1_048_576;
const TEXT_BYTES_MAX = 65_536;
const LIMITS = {
  useBigInt64: true,
  maxArrayLength: LIST_MAX,
  maxMapLength: 64,
  maxStrLength: TEXT_BYTES_MAX,
  maxBinLength: TEXT_BYTES_MAX,
  maxExtLength: 0,
} as const;

const HASH_BYTES_MIN = 8;

/** Fields in the order in which engines that send arrays have them, behind the event's name. */
const STORED_FIELDS = [
  "block_hashes",
  "parent_block_hash",
  "token_ids",
  "block_size",
  "lora_id",
  "medium",
  "lora_name",
  "extra_keys",
  "group_idx",
  "kv_cache_spec_kind",
];
const REMOVED_FIELDS = ["block_hashes", "medium", "group_idx"];

/** Kinds of attention of which a prefix hit needs every block. */
const WHOLE_PREFIX_KINDS: ReadonlySet<unknown> = new Set([undefined, null, "full_attention", "mla_attention"]);

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads one message of vLLM's or SGLang's publisher: `[seconds, events, rank]`, where an event is a map with a `type`, or
 * an array that begins with it. Fields that are not known are passed over, and so are events of other types; what is known
 * must be right. Pauses after each slice of a long one. Throws KvEventFormatError.
 */
export function* decodeBatch(payload: Uint8Array): Generator<void, KvEventBatch> {
  if (payload.length > AT_ONCE_BYTES) return yield* decodeInSlices(payload);
  const batch = unpack(payload);
  if (!Array.isArray(batch) || typeof batch[0] !== "number" || !Array.isArray(batch[1]))
    throw new KvEventFormatError(NO_BATCH);
  const list = batch[1] as unknown[];
  const events: KvEvent[] = [];
  for (let i = 0; i < list.length; i++) {
    const event = readEvent(list[i], `events[${i}]`);
    if (event !== undefined) events.push(event);
  }
  return { seconds: batch[0], events, ignored: list.length - events.length };
}

/** Event by event, each of which may be long. */
function* decodeInSlices(payload: Uint8Array): Generator<void, KvEventBatch> {
  try {
    const batch = listHead(payload, 0);
    const secondsEnd = batch && (yield* valueEnd(payload, batch.from));
    const list = secondsEnd === undefined ? undefined : listHead(payload, secondsEnd);
    const seconds = batch && unpack(payload.subarray(batch.from, secondsEnd));
    if (batch === undefined || batch.count < 2 || typeof seconds !== "number" || list === undefined)
      throw new KvEventFormatError(NO_BATCH);
    const events: KvEvent[] = [];
    let at = list.from;
    let pauseAt = at + SLICE_BYTES;
    for (let i = 0; i < list.count; i++) {
      const end = yield* valueEnd(payload, at);
      const event = readEvent(unpack(payload.subarray(at, end)), `events[${i}]`);
      if (event !== undefined) events.push(event);
      at = end;
      if (at < pauseAt) continue;
      pauseAt = at + SLICE_BYTES;
      yield;
    }
    for (let i = 2; i < batch.count; i++) at = yield* valueEnd(payload, at);
    if (at !== payload.length) throw new KvEventFormatError("batch: expected its end, got more");
    return { seconds, events, ignored: list.count - events.length };
  } catch (error) {
    throw error instanceof ValueError ? new KvEventFormatError(`batch: ${error.message}`) : error;
  }
}

const NO_BATCH = "batch: expected [seconds, events, ...]";
/** Shorter messages are read in one piece: a few milliseconds at worst. */
const AT_ONCE_BYTES = 32_768;
/** Bytes after which whatever else the event loop has to do gets its turn. */
const SLICE_BYTES = 32_768;

function unpack(payload: Uint8Array): unknown {
  try {
    return decode(payload, LIMITS);
  } catch (error) {
    throw new KvEventFormatError(`batch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readEvent(event: unknown, path: string): KvEvent | undefined {
  const [type, fields] = named(event, path);
  switch (type) {
    case "AllBlocksCleared":
      return { kind: "cleared" };
    case "BlockStored":
      return isCounted(fields) ? readStored(fields, path) : undefined;
    case "BlockRemoved":
      return isCounted(fields)
        ? { kind: "removed", hashes: readHashes(fields, path), medium: readMedium(fields, path) }
        : undefined;
    default:
      return undefined;
  }
}

function named(event: unknown, path: string): [type: string, fields: Fields] {
  if (Array.isArray(event) && typeof event[0] === "string") {
    const [type, ...values] = event as [string, ...unknown[]];
    const names = type === "BlockStored" ? STORED_FIELDS : REMOVED_FIELDS;
    return [type, Object.fromEntries(names.map((name, i) => [name, values[i]]))];
  }
  if (typeof event === "object" && event !== null && "type" in event && typeof event.type === "string")
    return [event.type, { ...event }];
  throw expected(path, "an event with a type", event);
}

/** Hybrid models report each group of layers; the first one stands for all where every block of it is needed. */
function isCounted(fields: Fields): boolean {
  const group = fields["group_idx"];
  return (group === undefined || group === null || group === 0) && WHOLE_PREFIX_KINDS.has(fields["kv_cache_spec_kind"]);
}

function readStored(fields: Fields, path: string): BlockStored {
  const hashes = readHashes(fields, path);
  const parent = fields["parent_block_hash"];
  const tokens = fields["token_ids"] ?? [];
  const blockTokens = fields["block_size"];
  const blockTokensMin = Array.isArray(tokens) && tokens.length === 0 ? 0 : 1;
  if (typeof blockTokens !== "number" || !Number.isInteger(blockTokens) || blockTokens < blockTokensMin)
    throw expected(`${path}.block_size`, `a whole number from ${blockTokensMin} on`, blockTokens);
  if (!Array.isArray(tokens) || !tokens.every((token) => Number.isInteger(token)))
    throw expected(`${path}.token_ids`, "token ids", tokens);
  if (tokens.length > 0 && tokens.length !== hashes.length * blockTokens)
    throw expected(`${path}.token_ids`, `${hashes.length * blockTokens} of them`, tokens.length);
  return {
    kind: "stored",
    hashes,
    parent: parent === undefined || parent === null ? undefined : readHash(parent, `${path}.parent_block_hash`),
    tokens: tokens as number[],
    blockTokens,
    adapter: readAdapter(fields, path),
    extraKeys: readExtraKeys(fields["extra_keys"], hashes.length, `${path}.extra_keys`),
    medium: readMedium(fields, path),
  };
}

/** Engines before lora_name have a number alone, which names no adapter that a client could. */
function readAdapter(fields: Fields, path: string): string {
  const { lora_name: name, lora_id: id } = fields;
  if (typeof name === "string") return name;
  if (name !== undefined && name !== null) throw expected(`${path}.lora_name`, "a name or null", name);
  return typeof id === "number" ? `adapter ${id}` : "";
}

function readExtraKeys(value: unknown, blocks: number, path: string): BlockStored["extraKeys"] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > blocks) throw expected(path, "a list by block, or null", value);
  return (value as unknown[]).map((keys, i) => {
    if (keys === null || keys === undefined) return undefined;
    if (!Array.isArray(keys)) throw expected(`${path}[${i}]`, "a list or null", keys);
    return keys as unknown[];
  });
}

function readMedium(fields: Fields, path: string): Medium {
  const medium = fields["medium"];
  if (medium === undefined || medium === null) return "device";
  if (typeof medium !== "string") throw expected(`${path}.medium`, "a name or null", medium);
  if (/^(?:gpu|device|hbm)$/i.test(medium)) return "device";
  return /^cpu/i.test(medium) ? "host" : "storage";
}

function readHashes(fields: Fields, path: string): EngineHash[] {
  const hashes = fields["block_hashes"];
  if (!Array.isArray(hashes)) throw expected(`${path}.block_hashes`, "a list", hashes);
  return (hashes as unknown[]).map((hash, i) => readHash(hash, `${path}.block_hashes[${i}]`));
}

const WORD = 2 ** 32;

/** An integer of up to 64 bits, or a digest whose last 64 bits are that integer. */
function readHash(hash: unknown, path: string): EngineHash {
  if (typeof hash === "number" && Number.isInteger(hash)) return { low: hash | 0, high: Math.floor(hash / WORD) | 0 };
  if (typeof hash === "bigint")
    return { low: Number(BigInt.asIntN(32, hash)), high: Number(BigInt.asIntN(32, hash >> 32n)) };
  if (hash instanceof Uint8Array && hash.length >= HASH_BYTES_MIN) {
    const view = new DataView(hash.buffer, hash.byteOffset + hash.length - HASH_BYTES_MIN, HASH_BYTES_MIN);
    return { low: view.getInt32(4), high: view.getInt32(0) };
  }
  throw expected(path, "an integer or a digest", hash);
}

function expected(path: string, what: string, value: unknown): KvEventFormatError {
  const got =
    typeof value === "object" && value !== null ? (Array.isArray(value) ? "a list" : "an object") : String(value);
  return new KvEventFormatError(`${path}: expected ${what}, got ${got.slice(0, 80)}`);
}
