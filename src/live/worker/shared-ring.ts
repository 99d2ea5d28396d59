/**
 * Bytes between two threads, in one direction: where it is written, where it is read, and room for `bytes`, a power of
 * two.
 */
export interface RingMemory {
  readonly places: SharedArrayBuffer;
  readonly room: SharedArrayBuffer;
}

export function newRingMemory(bytes: number): RingMemory {
  return { places: new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT), room: new SharedArrayBuffer(bytes) };
}

const WRITTEN = 0;
const READ = 1;
const HEAD_BYTES = 4;

/**
 * Messages from one thread to one other through shared memory, without a lock: only the writer moves the one place, only
 * the reader the other. Places count on past the end of the room and past 2^32, which both are multiples of.
 */
export class SharedRing {
  readonly #places: Int32Array;
  readonly #room: Uint8Array;
  readonly #mask: number;
  readonly #head = new Uint8Array(HEAD_BYTES);
  readonly #headWord = new Uint32Array(this.#head.buffer);

  constructor({ places, room }: RingMemory) {
    this.#places = new Int32Array(places);
    this.#room = new Uint8Array(room);
    this.#mask = room.byteLength - 1;
  }

  /** Longest message that may ever fit. */
  get bytesMax(): number {
    return this.#room.length - HEAD_BYTES;
  }

  get isEmpty(): boolean {
    return Atomics.load(this.#places, WRITTEN) === Atomics.load(this.#places, READ);
  }

  /** False where there is no room for it, and nothing is written then. */
  write(message: Uint8Array): boolean {
    const from = Atomics.load(this.#places, WRITTEN);
    const used = (from - Atomics.load(this.#places, READ)) >>> 0;
    if (used + HEAD_BYTES + message.length > this.#room.length) return false;
    this.#headWord[0] = message.length;
    this.#put(from, this.#head);
    this.#put(from + HEAD_BYTES, message);
    Atomics.store(this.#places, WRITTEN, (from + HEAD_BYTES + message.length) | 0);
    return true;
  }

  /** Copies the next message into what `roomFor` gives for its length, and returns that; undefined where there is none. */
  read(roomFor: (bytes: number) => Uint8Array): Uint8Array | undefined {
    const from = Atomics.load(this.#places, READ);
    if (Atomics.load(this.#places, WRITTEN) === from) return undefined;
    this.#get(from, this.#head);
    const length = this.#headWord[0]!;
    const message = roomFor(length);
    this.#get(from + HEAD_BYTES, message);
    Atomics.store(this.#places, READ, (from + HEAD_BYTES + length) | 0);
    return message;
  }

  #put(place: number, bytes: Uint8Array): void {
    const at = place & this.#mask;
    const first = this.#room.length - at;
    if (bytes.length <= first) return this.#room.set(bytes, at);
    this.#room.set(bytes.subarray(0, first), at);
    this.#room.set(bytes.subarray(first), 0);
  }

  #get(place: number, into: Uint8Array): void {
    const at = place & this.#mask;
    const first = this.#room.length - at;
    if (into.length <= first) return into.set(this.#room.subarray(at, at + into.length));
    into.set(this.#room.subarray(at), 0);
    into.set(this.#room.subarray(0, into.length - first), first);
  }
}
