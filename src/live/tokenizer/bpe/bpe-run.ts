import type { AddedMatch, AddedTokens } from "./added-tokens.ts";
import type { Composer } from "./composer.ts";
import { LongMerge } from "./long-merge.ts";
import type { PieceCache } from "./piece-cache.ts";
import { ABSENT, HIGH_MASKS, LOW_MASKS } from "./piece-table.ts";
import { scanPiece, shortWord } from "./scan-piece.ts";
import type { ShortMerge } from "./short-merge.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What the runs of one tokenizer share. */
export interface BpeShared {
  readonly vocabulary: Vocabulary;
  readonly added: AddedTokens;
  readonly classes: Uint8Array;
  readonly digits: number;
  /** Undefined where text is taken as it is. */
  readonly composer: Composer | undefined;
  readonly pieces: PieceCache;
  readonly shortMerge: ShortMerge;
}

const UTF8_BYTES_MAX = 3;
/** The piece tables read whole words. */
const PADDING_BYTES = 8;
const BYTES_MIN = 1 << 14;
/** What remains of the buffers of a run over a very long text. */
const BYTES_KEPT_MAX = 1 << 20;
/** Work of merging a byte, in bytes scanned. */
const MERGE_COST = 16;
/** Bytes of a text in pieces too long for the short merge. More is no prose and no code: it is not worth the time. */
const LONG_BYTES_MAX = 1 << 18;
const SHORT_PIECE_BYTES_MAX = 8;
/** Characters searched for added tokens in one go, and how many of them are as much work as scanning a byte. */
const SEARCHED_CHARS = 1 << 16;
const SEARCHED_PER_WORK = 4;
/** Work of an added token and of beginning the text behind it. */
const SEGMENT_COST = 16;
/** A segment to be composed, which is done in one piece: some 20 ms. */
const COMPOSED_CHARS_MAX = 1 << 19;
/** Characters above which composition may change a text. */
const COMPOSING = /[\u0300-\uffff]/;

/** Encodes one text at a time, in slices of bounded work. */
export class BpeRun {
  readonly #shared: BpeShared;
  readonly #encoder = new TextEncoder();
  #text = "";
  /** Characters of the text that are in the buffer or done. */
  #taken = 0;
  /** Characters searched for the added token behind what is taken; all of it once the search is over. */
  #searched = 0;
  #searching = false;
  #givenUp = false;
  #match: AddedMatch | undefined = undefined;
  #bytes = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  #end = 0;
  #merge: LongMerge | undefined = undefined;
  #mergeFrom = 0;
  #longBytes = 0;
  #out = new Int32Array(0);
  #count = 0;

  constructor(shared: BpeShared) {
    this.#shared = shared;
    this.#roomForText(0);
    this.#out = new Int32Array(BYTES_MIN);
  }

  start(text: string): void {
    this.#text = text;
    this.#taken = 0;
    this.#searched = 0;
    this.#searching = true;
    this.#givenUp = false;
    this.#match = undefined;
    this.#at = 0;
    this.#end = 0;
    this.#merge = undefined;
    this.#longBytes = 0;
    this.#count = 0;
    if (this.#bytes.length > BYTES_KEPT_MAX) this.#bytes = new Uint8Array(0);
    if (this.#out.length > BYTES_KEPT_MAX) this.#out = new Int32Array(BYTES_MIN);
  }

  /** Works for about as long as scanning `work` bytes takes; true when the text is done or given up. */
  advance(work: number): boolean {
    let left = work;
    while (left > 0) {
      if (this.#givenUp) return true;
      if (this.#merge !== undefined) left = this.#mergeOn(left);
      else if (this.#at < this.#end) left = this.#scan(left);
      else if (this.#searching) left -= this.#search();
      else if (!this.#nextSegment()) return true;
      else left -= SEGMENT_COST;
    }
    return false;
  }

  /** The tokens of a text that is done, valid until the next start; undefined where it was given up. */
  tokens(): Int32Array | undefined {
    return this.#givenUp ? undefined : this.#out.subarray(0, this.#count);
  }

  /** Past the segment that is done: its added token, and the text behind it. */
  #nextSegment(): boolean {
    const match = this.#match;
    if (match === undefined) return false;
    this.#roomForTokens(1);
    this.#out[this.#count++] = match.id;
    this.#taken = match.start + match.content.length;
    this.#searched = this.#taken;
    this.#match = undefined;
    this.#searching = true;
    return true;
  }

  /**
   * Looks on for the next added token; returns the work it was, in whole units: a fraction would cost an object for
   * each piece scanned after it.
   */
  #search(): number {
    const from = this.#searched;
    const until = Math.min(this.#text.length, from + SEARCHED_CHARS);
    this.#match = this.#shared.added.find(this.#text, from, until);
    this.#searched = until;
    if (this.#match !== undefined || until >= this.#text.length) {
      this.#searching = false;
      this.#take();
    }
    return Math.ceil(((this.#match?.start ?? until) - from) / SEARCHED_PER_WORK);
  }

  /** Puts the text up to the next added token into the buffer. */
  #take(): void {
    const to = this.#match === undefined ? this.#text.length : this.#match.start;
    let segment = this.#taken === 0 && to === this.#text.length ? this.#text : this.#text.slice(this.#taken, to);
    const { composer } = this.#shared;
    if (composer !== undefined && COMPOSING.test(segment)) {
      this.#givenUp = segment.length > COMPOSED_CHARS_MAX;
      if (this.#givenUp) return;
      segment = composer.compose(segment);
    }
    this.#roomForText(segment.length);
    this.#at = 0;
    this.#end = this.#encoder.encodeInto(segment, this.#bytes).written;
    this.#bytes.fill(0, this.#end, this.#end + PADDING_BYTES);
    this.#roomForTokens(0);
  }

  #scan(work: number): number {
    const { classes, digits, pieces } = this.#shared;
    const bytes = this.#bytes;
    const view = this.#view;
    const end = this.#end;
    const out = this.#out;
    let count = this.#count;
    let at = this.#at;
    let left = work;
    while (at < end && left > 0) {
      const word = shortWord(bytes, view, at, classes);
      const length = word > 0 ? word : scanPiece(bytes, at, end, classes, digits) - at;
      const known =
        length <= SHORT_PIECE_BYTES_MAX
          ? pieces.getShort(
              view.getInt32(at, true) & LOW_MASKS[length]!,
              view.getInt32(at + 4, true) & HIGH_MASKS[length]!,
              length,
            )
          : pieces.getLong(view, at, at + length);
      at += length;
      left -= length;
      if (known === ABSENT) {
        this.#count = count;
        this.#at = at;
        return left - this.#mergePiece(at - length, at);
      }
      if ((known & 1) === 0) out[count++] = known >> 1;
      else {
        const place = known >> 1;
        const tokens = pieces.multi[place]!;
        for (let i = 1; i <= tokens; i++) out[count++] = pieces.multi[place + i]!;
      }
    }
    this.#count = count;
    this.#at = at;
    return left;
  }

  /** Returns the work it was. */
  #mergePiece(from: number, to: number): number {
    const { shortMerge, vocabulary, pieces } = this.#shared;
    if (to - from > shortMerge.bytesMax) {
      this.#longBytes += to - from;
      this.#givenUp = this.#longBytes > LONG_BYTES_MAX;
      if (this.#givenUp) return 0;
      const ids = new Int32Array(to - from);
      for (let i = 0; i < ids.length; i++) ids[i] = vocabulary.byteIds[this.#bytes[from + i]!]!;
      this.#merge = new LongMerge(vocabulary.merges, ids);
      this.#mergeFrom = from;
      return to - from;
    }
    const count = shortMerge.merge(this.#bytes, from, to, this.#out, this.#count);
    pieces.remember(this.#view, from, to, this.#out.subarray(this.#count, this.#count + count));
    this.#count += count;
    return MERGE_COST * (to - from);
  }

  #mergeOn(work: number): number {
    const merge = this.#merge!;
    const left = work - MERGE_COST * merge.advance(Math.ceil(work / MERGE_COST));
    if (!merge.done) return left;
    const tokens = merge.tokens();
    this.#shared.pieces.remember(this.#view, this.#mergeFrom, this.#at, tokens);
    this.#out.set(tokens, this.#count);
    this.#count += tokens.length;
    this.#merge = undefined;
    return left;
  }

  #roomForText(characters: number): void {
    const needed = UTF8_BYTES_MAX * characters + PADDING_BYTES;
    if (needed <= this.#bytes.length) return;
    this.#bytes = new Uint8Array(Math.max(BYTES_MIN, needed));
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** A segment has at most as many tokens as bytes. */
  #roomForTokens(more: number): void {
    const needed = this.#count + this.#end - this.#at + more;
    if (needed <= this.#out.length) return;
    const out = new Int32Array(2 * needed);
    out.set(this.#out.subarray(0, this.#count));
    this.#out = out;
  }
}
