import { get_encoding, type Tiktoken, type TiktokenEncoding } from "tiktoken";
import { type Asker, loopTurn } from "../base/loop-turn.ts";
import type { WordStep, WordSource } from "./text/word-source.ts";

/** No token ids: the end of a tag, and the end of a step. */
const TAG_END = -1;
const STEP_END = -2;
/** Characters encoded in one go, about 0.6 ms; cut behind them where a word begins, at the latest at the second bound. */
const CHUNK_CHARS = 4096;
const CHUNK_CHARS_MAX = 8192;
/** Longer texts yield to the event loop between chunks. */
const SYNC_CHARS_MAX = 8192;
const WORD_START = /[A-Za-z](?= [A-Za-z])/g;

/** OpenAI's tokens, which need not be the engine's. Special tokens written in a text are text. */
export class TiktokenSource implements WordSource {
  readonly #encoding: Tiktoken;
  readonly #tags = new Map<string, readonly number[]>();

  constructor(encoding: TiktokenEncoding) {
    this.#encoding = get_encoding(encoding);
  }

  words({ tag, text }: WordStep, _comesAgain: boolean, asker: Asker): Int32Array | Promise<Int32Array> {
    const chunks = chunksOf(text);
    if (text.length > SYNC_CHARS_MAX) return this.#slowly(tag, chunks, asker);
    return joined(
      this.#tag(tag),
      chunks.map((chunk) => this.#encoding.encode_ordinary(chunk)),
    );
  }

  close(): void {
    this.#encoding.free();
  }

  async #slowly(tag: string, chunks: readonly string[], asker: Asker): Promise<Int32Array> {
    const parts: Uint32Array[] = [];
    for (const chunk of chunks) {
      await loopTurn(asker);
      parts.push(this.#encoding.encode_ordinary(chunk));
    }
    return joined(this.#tag(tag), parts);
  }

  /** Tags are of a closed set. */
  #tag(tag: string): readonly number[] {
    let tokens = this.#tags.get(tag);
    if (tokens === undefined) {
      tokens = [...this.#encoding.encode_ordinary(tag)];
      this.#tags.set(tag, tokens);
    }
    return tokens;
  }
}

/** Where a text is cut depends on what is before only, so a text and a longer one that begins with it are cut alike. */
function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  let from = 0;
  while (text.length - from > CHUNK_CHARS) {
    WORD_START.lastIndex = from + CHUNK_CHARS;
    const found = WORD_START.exec(text)?.index ?? text.length;
    const to = Math.min(found + 1, from + CHUNK_CHARS_MAX, text.length);
    chunks.push(text.slice(from, to));
    from = to;
  }
  chunks.push(text.slice(from));
  return chunks;
}

function joined(tag: readonly number[], parts: readonly Uint32Array[]): Int32Array {
  const length = parts.reduce((sum, part) => sum + part.length, tag.length + 2);
  const words = new Int32Array(length);
  words.set(tag);
  words[tag.length] = TAG_END;
  let at = tag.length + 1;
  for (const part of parts) {
    words.set(part, at);
    at += part.length;
  }
  words[at] = STEP_END;
  return words;
}
