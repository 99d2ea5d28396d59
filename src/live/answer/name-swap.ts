const KEY = Buffer.from('"model"');
const COLON = 0x3a;
const SPACE = 0x20;
/** Between key and value; more is taken for no such member. */
const SPACES_MAX = 64;
const EMPTY = Buffer.alloc(0);

/**
 * Gives an answer's `model` the name that its client asked for, where the cluster sent the request to a model of another
 * name. Bytes in, bytes out, whatever the pieces' bounds: what may be the beginning of the member is held until the next
 * piece shows it, and nothing else is.
 *
 * A name between bare quotes with a colon behind it cannot stand inside a JSON string, where the quotes would be escaped,
 * and only the very name that was put into the request is replaced.
 */
export class NameSwap {
  readonly #from: Buffer;
  readonly #to: Buffer;
  #held: Buffer = EMPTY;

  constructor(served: string, asked: string) {
    this.#from = Buffer.from(JSON.stringify(served));
    this.#to = Buffer.from(JSON.stringify(asked));
  }

  /** What may pass of the answer so far. */
  push(piece: Buffer): Buffer {
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    const out: Buffer[] = [];
    let passed = 0;
    let at = 0;
    for (;;) {
      const found = bytes.indexOf(KEY, at);
      const hold = found < 0 ? bytes.length - begun(bytes, at) : found;
      const value = found < 0 ? -1 : valueAt(bytes, found + KEY.length);
      if (found < 0 || value === UNSEEN || this.#mayBecome(bytes, value)) {
        out.push(bytes.subarray(passed, hold));
        this.#held = Buffer.from(bytes.subarray(hold));
        return out.length === 1 ? out[0]! : Buffer.concat(out);
      }
      at = found + KEY.length;
      if (value < 0 || !this.#isAt(bytes, value)) continue;
      out.push(bytes.subarray(passed, value), this.#to);
      passed = at = value + this.#from.length;
    }
  }

  /** What was held as the answer ended. */
  rest(): Buffer {
    const held = this.#held;
    this.#held = EMPTY;
    return held;
  }

  #isAt(bytes: Buffer, at: number): boolean {
    return bytes.subarray(at, at + this.#from.length).equals(this.#from);
  }

  /** The bytes end within what is the name so far. */
  #mayBecome(bytes: Buffer, at: number): boolean {
    const seen = bytes.length - at;
    return at >= 0 && seen < this.#from.length && bytes.subarray(at).equals(this.#from.subarray(0, seen));
  }
}

/** More has to come before the value begins. */
const UNSEEN = -2;

/** Index of the value behind a key; -1 where this is none, UNSEEN where the bytes end before it. */
function valueAt(bytes: Buffer, from: number): number {
  const colon = behindSpace(bytes, from);
  if (colon === UNSEEN) return UNSEEN;
  return bytes[colon] === COLON ? behindSpace(bytes, colon + 1) : -1;
}

function behindSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && at - from < SPACES_MAX && bytes[at]! <= SPACE) at++;
  return at === bytes.length ? UNSEEN : at;
}

/** Bytes at the end that the key may begin with. */
function begun(bytes: Buffer, from: number): number {
  for (let length = Math.min(KEY.length - 1, bytes.length - from); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(KEY.subarray(0, length))) return length;
  }
  return 0;
}
