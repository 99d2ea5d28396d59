/**
 * Named streams of random numbers. A draw is part of the state, so nobody shares a stream: a decision draws from
 * `randomFor(seed, sequence)`, a subsystem from `randomFor(seed, nameHash("workload"))`. Another policy's draws then
 * never shift this one's luck.
 *
 * The generator is sfc32 (Chris Doty-Humphrey's Small Fast Counter, 128 bits of state), seeded through a 32-bit
 * finalizer (murmur3's). Integer arithmetic only: the same bytes on every machine.
 */
export interface Random {
  /** Uniform in [0, 1), 53 bits. */
  next(): number;
  /** Uniform integer in [0, bound); bound in [1, 2^32]. */
  below(bound: number): number;
}

/** The stream of draws with this number under this seed, both integers up to 2^53: the same pair always draws the same. */
export function randomFor(seed: number, stream: number): Random {
  return new Sfc32(seed, stream);
}

/** FNV-1a over UTF-16 code units, 32 bits: turns a subsystem's name into a stream number. */
export function nameHash(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** A bijection on 32 bits that leaves no visible structure (murmur3's finalizer). */
export function mix32(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

class Sfc32 implements Random {
  readonly #seed: number;
  readonly #stream: number;
  /** Most streams are named and never drawn from, so the first draw sets the state. Signed words, which are cheapest. */
  #started = false;
  #a = 0;
  #b = 0;
  #c = 0;
  #counter = 1;

  constructor(seed: number, stream: number) {
    this.#seed = seed;
    this.#stream = stream;
  }

  #start(): void {
    this.#started = true;
    const high = (value: number) => Math.floor(value / 0x1_0000_0000) | 0;
    this.#a = mix32((this.#seed | 0) ^ mix32(high(this.#seed)) ^ 0x9e3779b9) | 0;
    this.#b = mix32((this.#stream | 0) ^ 0x7f4a7c15) | 0;
    this.#c = mix32(high(this.#stream) ^ this.#a ^ 0x94d049bb) | 0;
    for (let i = 0; i < 8; i++) this.#next32();
  }

  #next32(): number {
    const t = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  next(): number {
    if (!this.#started) this.#start();
    return ((this.#next32() >>> 5) * 0x400_0000 + (this.#next32() >>> 6)) / 0x20_0000_0000_0000;
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound);
  }
}
