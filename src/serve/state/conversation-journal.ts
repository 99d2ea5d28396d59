import { closeSync, ftruncateSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";

/** As many as the router remembers. */
const ENTRIES_MAX = 65_536;
const ENTRY_DOUBLES = 2;
const ENTRY_BYTES = ENTRY_DOUBLES * Float64Array.BYTES_PER_ELEMENT;

/**
 * Which prompts belong to which conversation, as the router infers them: pairs of numbers, appended before the answer
 * that they precede can have ended, so that a conversation that goes on after the process was killed is known. They are
 * keyed hashes. When the file has grown to twice what is remembered, its older half is let go.
 */
export class ConversationJournal {
  readonly #path: string;
  #file: number;
  #entries: number;
  #waiting: number[] = [];
  #scheduled = false;
  /** Pairs that the system refused to take. */
  lost = 0;

  constructor(path: string) {
    this.#path = path;
    this.#file = openSync(path, "a+", 0o600);
    const bytes = readFileSync(path).byteLength;
    this.#entries = Math.floor(bytes / ENTRY_BYTES);
    // A pair of which a killed process wrote a part.
    if (bytes % ENTRY_BYTES !== 0) ftruncateSync(this.#file, this.#entries * ENTRY_BYTES);
  }

  /** Prompt and conversation in turn, the latest last. */
  read(): number[] {
    const { buffer, byteOffset, byteLength } = readFileSync(this.#path);
    const whole = buffer.slice(byteOffset, byteOffset + byteLength - (byteLength % ENTRY_BYTES));
    return [...new Float64Array(whole)].slice(-ENTRIES_MAX * ENTRY_DOUBLES);
  }

  /** Is written when this turn of the event loop ends. */
  add(prompt: number, conversation: number): void {
    this.#waiting.push(prompt, conversation);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    this.#scheduled = false;
    const pairs = Float64Array.from(this.#waiting);
    this.#waiting = [];
    if (pairs.length === 0) return;
    try {
      writeSync(this.#file, new Uint8Array(pairs.buffer));
      this.#entries += pairs.length / ENTRY_DOUBLES;
      if (this.#entries >= 2 * ENTRIES_MAX) this.#shorten();
    } catch {
      this.lost += pairs.length / ENTRY_DOUBLES;
    }
  }

  close(): void {
    this.flush();
    closeSync(this.#file);
  }

  #shorten(): void {
    const kept = Float64Array.from(this.read());
    const beside = `${this.#path}.new`;
    writeFileSync(beside, new Uint8Array(kept.buffer), { mode: 0o600 });
    renameSync(beside, this.#path);
    closeSync(this.#file);
    this.#file = openSync(this.#path, "a");
    this.#entries = kept.length / ENTRY_DOUBLES;
  }
}
