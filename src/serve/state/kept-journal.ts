import { appendFile, unlink } from "node:fs/promises";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { KeptFile } from "./kept-file.ts";

/** What is added is in the system's hands so soon after, however much else there is to do. */
const FLUSH_MILLIS = 250;
/** Characters that wait for a slow disk; what is added beyond them is lost. */
const WAITING_CHARS_MAX = 16 * 2 ** 20;
/** Of one journal; beyond it lines are lost until the whole is written again. */
const JOURNAL_CHARS_MAX = 64 * 2 ** 20;

export interface KeptJournalOptions {
  /** Of the whole; its journals lie beside it. */
  readonly path: string;
  /** First line of every journal. */
  readonly opening: string;
  /** Lines were lost: what is wrong, in words. */
  readonly failed: (detail: string) => void;
}

/**
 * A file that is replaced whole now and then, and beside it the lines that were added since: a process that is killed loses
 * what was added in its last quarter of a second, however seldom the whole is written. Journals have numbers; the whole
 * states the first one that goes on from it, so that there is no moment in which what was added is in neither.
 */
export class KeptJournal {
  readonly #options: KeptJournalOptions;
  readonly #whole: KeptFile;
  #oldest: number;
  #number: number;
  #chars = 0;
  #waiting: string[] = [];
  #waitingChars = 0;
  #timer: NodeJS.Timeout | undefined;
  #written: Promise<void> = Promise.resolve();
  /** Lines that there was no room for, or that the system refused. */
  lost = 0;

  constructor(options: KeptJournalOptions) {
    this.#options = options;
    this.#whole = new KeptFile(options.path);
    const numbers = journalsOf(options.path);
    this.#oldest = Math.min(...numbers, Infinity);
    this.#number = Math.max(...numbers, -1) + 1;
    this.#oldest = Math.min(this.#oldest, this.#number);
  }

  add(line: string): void {
    const chars = line.length + 1;
    if (this.#waitingChars + chars > WAITING_CHARS_MAX || this.#chars + chars > JOURNAL_CHARS_MAX) {
      this.#lose(1, "more was to be kept than there is room for");
      return;
    }
    if (this.#chars === 0) this.#push(this.#options.opening);
    this.#push(line);
    this.#timer ??= setTimeout(() => void this.flushed(), FLUSH_MILLIS).unref();
  }

  /** Resolves when all that was added is written; never rejects. */
  flushed(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    if (lines.length === 0) return this.#written;
    this.#waiting = [];
    const text = `${lines.join("\n")}\n`;
    const path = journalPath(this.#options.path, this.#number);
    this.#written = this.#written
      .then(() => appendFile(path, text, { mode: 0o600 }))
      .catch((error: unknown) => this.#refused(lines.length, error))
      .finally(() => (this.#waitingChars -= text.length));
    return this.#written;
  }

  /**
   * Replaces the whole by a text that holds all that was added so far, and the number of the journal that goes on from it.
   * Resolves when it is on the disk; rejects with the system's error, and then nothing is lost.
   */
  async replace(textOf: (journal: number) => string): Promise<void> {
    const before = this.flushed();
    const number = ++this.#number;
    this.#chars = 0;
    await this.#whole.write(textOf(number));
    await before;
    while (this.#oldest < number) await unlink(journalPath(this.#options.path, this.#oldest++)).catch(() => {});
  }

  #push(line: string): void {
    this.#waiting.push(line);
    this.#chars += line.length + 1;
    this.#waitingChars += line.length + 1;
  }

  /** A part of them may be there: the next ones begin on a line of their own, with the opening. */
  #refused(lines: number, error: unknown): void {
    this.#waiting.unshift("", this.#options.opening);
    this.#lose(lines, error instanceof Error ? error.message : String(error));
  }

  #lose(lines: number, detail: string): void {
    this.lost += lines;
    this.#options.failed(detail);
  }
}

/** The lines of the journals from a number on, in order; of one that was cut off there is a part. */
export function journalsFrom(path: string, number: number): string[] {
  const numbers = journalsOf(path).filter((one) => one >= number);
  return numbers.flatMap((one) => readFileSync(journalPath(path, one), "utf8").split("\n"));
}

/** Paths of all journals beside a whole. */
export function journalPaths(path: string): string[] {
  return journalsOf(path).map((one) => journalPath(path, one));
}

const ENDING = ".journal";

function journalPath(path: string, number: number): string {
  return `${path}.${number}${ENDING}`;
}

/** Numbers of those that are there, in order. */
function journalsOf(path: string): number[] {
  const start = `${basename(path)}.`;
  const names = readdirSync(dirname(path)).filter((name) => name.startsWith(start) && name.endsWith(ENDING));
  const numbers = names.map((name) => Number(name.slice(start.length, -ENDING.length))).filter(Number.isSafeInteger);
  return numbers.toSorted((a, b) => a - b);
}
