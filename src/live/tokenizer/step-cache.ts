import { LRUCache } from "lru-cache";
import { Sightings } from "./sightings.ts";
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
 * the memo of prefixes has forgotten them. Most never do: a text is kept when it comes for the second time.
 */
export class StepCache {
  readonly #entries: LRUCache<string, Entry> | undefined;
  readonly #sightings = new Sightings();
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
    const entry = this.#sightings.has(text, 0) ? this.#entries.get(textKey(text)) : undefined;
    if (entry === undefined || entry.text !== text) {
      this.misses++;
      return undefined;
    }
    this.hits++;
    return entry.tokens;
  }

  /** Keeps a copy, if the text was here before. */
  set(text: string, tokens: Int32Array): void {
    if (text.length < TEXT_CHARS_MIN || this.#entries === undefined || !this.#sightings.note(text, 0)) return;
    this.#entries.set(textKey(text), { text, tokens: tokens.slice() });
  }
}
