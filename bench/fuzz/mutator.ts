/** Pieces that formats give a meaning to, or that are long. */
const PIECES: readonly Buffer[] = [
  "\n",
  "\r\n\r\n",
  "data: ",
  "data: [DONE]\n\n",
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "# TYPE a b\n",
  " ",
  "0",
  "-1",
  "1e308",
  "NaN",
  "null",
  '"finish_reason":"abort"',
  '"token_ids":[',
  '"usage":{',
  "\u0000",
  "\u00ff\u00ff\u00ff\u00ff",
  "\u0093\u00cb",
  "\u00dd\u00ff\u00ff\u00ff\u00ff",
  "\u0091",
].map((text) => Buffer.from(text, "latin1"));
const TIMES = [1, 2, 10, 1_000, 50_000];
const CHANGES_MAX = 6;

/** Changes bytes by draws of a seed: the same ones for the same seed. */
export class Mutator {
  #state: number;

  constructor(seed: number) {
    this.#state = (Math.imul(seed + 1, 0x9e3779b1) >>> 0) | 1;
  }

  /** xorshift; from 0 up to `count`. */
  below(count: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % count;
  }

  of<T>(all: readonly T[]): T {
    return all[this.below(all.length)]!;
  }

  /** `bytes` with a few changes; `other` is what a part of may be put into it. */
  mutated(bytes: Buffer, other: Buffer): Buffer {
    let changed = bytes;
    for (let changes = 1 + this.below(CHANGES_MAX); changes > 0; changes--) changed = this.#changed(changed, other);
    return changed;
  }

  #changed(bytes: Buffer, other: Buffer): Buffer {
    const at = this.below(bytes.length + 1);
    const to = Math.min(bytes.length, at + this.below(1 + this.of([1, 8, 200, bytes.length])));
    const rest = bytes.subarray(at);
    switch (this.below(7)) {
      case 0: {
        const flipped = Buffer.from(bytes);
        if (at < flipped.length) flipped[at]! ^= 1 << this.below(8);
        return flipped;
      }
      case 1:
        return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
      case 2:
        return Buffer.concat([bytes.subarray(0, to), rest]);
      case 3:
        return bytes.subarray(0, at);
      case 4:
        return Buffer.concat([
          bytes.subarray(0, at),
          ...Array.from({ length: this.of(TIMES) }, () => this.of(PIECES)),
          rest,
        ]);
      case 5: {
        const piece = this.of(PIECES);
        return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(piece.length * this.of(TIMES), piece), rest]);
      }
      default:
        return Buffer.concat([bytes.subarray(0, at), other.subarray(this.below(other.length + 1)), rest]);
    }
  }
}
