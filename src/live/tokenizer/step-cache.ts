import { LRUCache } from "lru-cache";
import { textKey } from "./text-key.ts";

/** Shorter texts are encoded sooner than looked up. */
const TEXT_CHARS_MIN = 48;
const ENTRY_BYTES = 300;

interface Entry {
  readonly text: string;
  readonly tokens: Int32Array;
}

/**
 * Tokens of whole steps by their text, for messages that come again in another scope, behind another history, or after
 * the memo of prefixes has forgotten them.
 */
export class StepCache {
  readonly #entries: LRUCache<string, Entry> | undefined;
  hits = 0;
  misses = 0;

  /** Bounded in bytes; 0 turns it off. */
  constructor(bytesMax: number) {
    if (bytesMax === 0) return;
    this.#entries = new LRUCache<string, Entry>({
      maxSize: bytesMax,
      sizeCalculation: ({ text, tokens }) => ENTRY_BYTES + 2 * text.length + 4 * tokens.length,
    });
  }

  get(text: string): Int32Array | undefined {
    if (text.length < TEXT_CHARS_MIN || this.#entries === undefined) return undefined;
    const entry = this.#entries.get(textKey(text));
    if (entry === undefined || entry.text !== text) {
      this.misses++;
      return undefined;
    }
    this.hits++;
    return entry.tokens;
  }

  /** Keeps a copy. */
  set(text: string, tokens: Int32Array): void {
    if (text.length < TEXT_CHARS_MIN || this.#entries === undefined) return;
    this.#entries.set(textKey(text), { text, tokens: tokens.slice() });
  }
}
