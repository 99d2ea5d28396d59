/** Values within one another: an event has five at most. */
const DEPTH_MAX = 16;
/** Values after which whatever else the event loop has to do gets its turn. */
const VALUES_PER_SLICE = 16_384;

/** Bytes of what MessagePack writes are no value, or one of a kind that nothing here has. */
export class ValueError extends Error {
  override readonly name = "ValueError";
}

/** A list's or a map's head: how many values follow, and where the first of them begins. */
export interface ListHead {
  readonly count: number;
  readonly from: number;
}

/**
 * Where the MessagePack value ends that begins at `from`; it is passed over and not read, and its head alone shows its
 * length, so that a long one costs little. Pauses after each slice. Throws ValueError.
 */
export function* valueEnd(bytes: Uint8Array, from: number): Generator<void, number> {
  /** Values that are left at each depth. */
  const left: number[] = [1];
  let at = from;
  for (let values = 1; left.length > 0; values++) {
    if (values % VALUES_PER_SLICE === 0) yield;
    const depth = left.length - 1;
    if (left[depth] === 0) {
      left.pop();
      continue;
    }
    left[depth]!--;
    const { size, inner } = headAt(bytes, at);
    at += size;
    if (at > bytes.length) throw new ValueError("it ends too early");
    if (inner === 0) continue;
    if (left.length >= DEPTH_MAX) throw new ValueError(`expected at most ${DEPTH_MAX} values within one another`);
    left.push(inner);
  }
  return at;
}

/** Of a list; undefined where another value begins at `from`. */
export function listHead(bytes: Uint8Array, from: number): ListHead | undefined {
  const tag = bytes[from] ?? -1;
  if (!((tag & 0xf0) === 0x90 || tag === 0xdc || tag === 0xdd)) return undefined;
  const { size, inner } = headAt(bytes, from);
  return { count: inner, from: from + size };
}

const HEAD = { size: 0, inner: 0 };

/** Bytes of a value without those within it, and how many those are. The object is always the same one. */
function headAt(bytes: Uint8Array, at: number): typeof HEAD {
  const tag = bytes[at];
  if (tag === undefined) throw new ValueError("it ends too early");
  HEAD.inner = 0;
  HEAD.size = 1;
  if (tag < 0x80 || tag >= 0xe0 || tag === 0xc0 || tag === 0xc2 || tag === 0xc3) return HEAD;
  if (tag < 0x90) HEAD.inner = 2 * (tag & 0x0f);
  else if (tag < 0xa0) HEAD.inner = tag & 0x0f;
  else if (tag < 0xc0) HEAD.size = 1 + (tag & 0x1f);
  else if (tag in FIXED) HEAD.size = FIXED[tag]!;
  else {
    const bytesOfLength = LENGTHS[tag];
    if (bytesOfLength === undefined) throw new ValueError(`the byte ${tag} begins no value that an event has`);
    let length = 0;
    for (let i = 1; i <= bytesOfLength; i++) length = 256 * length + (bytes[at + i] ?? 0);
    HEAD.size = 1 + bytesOfLength;
    if (tag < 0xdc) HEAD.size += length;
    else HEAD.inner = tag < 0xde ? length : 2 * length;
  }
  return HEAD;
}

/** Whole numbers and fractions. */
const FIXED: Readonly<Record<number, number>> = {
  0xca: 5,
  0xcb: 9,
  0xcc: 2,
  0xcd: 3,
  0xce: 5,
  0xcf: 9,
  0xd0: 2,
  0xd1: 3,
  0xd2: 5,
  0xd3: 9,
};
/** Bytes that the length takes, of bytes, texts, lists and maps. */
const LENGTHS: Readonly<Record<number, number>> = {
  0xc4: 1,
  0xc5: 2,
  0xc6: 4,
  0xd9: 1,
  0xda: 2,
  0xdb: 4,
  0xdc: 2,
  0xdd: 4,
  0xde: 2,
  0xdf: 4,
};
