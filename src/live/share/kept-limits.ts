import { windowsOf } from "#core/admission/windows-elsewhere.ts";
import type { Input } from "#core/input/input.ts";
import type { PeerWindow } from "#core/request/peer-news.ts";
import { nowMicros } from "../base/clock.ts";
import type { Intake, IntakeListener } from "../base/intake.ts";

/** Where it is kept what limits have counted, for gateways that start when none is there. */
export interface LimitsStore {
  /**
   * What was kept last, by each version that this one reads, and for how long it will be still. Rejects where it cannot
   * be asked.
   */
  read(): Promise<readonly { readonly text: string; readonly leftMillis: number }[]>;
  /** Rejects where nobody knows whether it is kept. */
  write(text: string, keptMillis: number): Promise<void>;
}

export interface KeptLimitsOptions {
  readonly intake: Intake;
  readonly store: LimitsStore;
  /** Forgotten after so long without any gateway. */
  readonly keptMillis: number;
  /** Between two writes, as far as something was used; longer where there is much to write. */
  readonly writeMillis: number;
  /** Whether this gateway is the one that writes for all: one is enough. */
  readonly writes: () => boolean;
  /** What was there could not be read. */
  readonly refused: (detail: string) => void;
}

export interface KeptLimitsStatus {
  /** Windows of limits that this gateway took over at its start, and how long ago they had been written then. */
  readonly takenOver: number;
  readonly takenOverAgeMillis: number | undefined;
  /** Windows in what this gateway wrote last, and since then; undefined before it wrote. */
  readonly written: { readonly windows: number; readonly leftOut: number; readonly millisAgo: number } | undefined;
  readonly writesFailed: number;
}

/** The name under which the router learns of what gateways had counted that are gone. */
const KEPT = "(kept)";
/** Windows that may be written in a millisecond, on the average. */
const WINDOWS_PER_MILLI = 1;
/** Written again after this share of its time, so that it is not forgotten while gateways are there. */
const RENEWED_SHARE = 0.25;
const LOOKS_PER_WRITE = 4;

/**
 * Keeps what limits have counted outside of the gateways, so that it outlives all of them. One that starts takes it over as
 * if a peer had reported it, before it writes anything itself.
 */
export class KeptLimits implements IntakeListener {
  readonly #options: KeptLimitsOptions;
  #isTaken = false;
  #takenOver = 0;
  #takenOverAgeMillis: number | undefined;
  #isUsed = false;
  #written: { readonly windows: number; readonly leftOut: number; readonly at: number } | undefined;
  #writesFailed = 0;
  #nextMillis = 0;
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: KeptLimitsOptions) {
    this.#options = options;
    options.intake.listen(this);
  }

  get status(): KeptLimitsStatus {
    const written = this.#written;
    return {
      takenOver: this.#takenOver,
      takenOverAgeMillis: this.#takenOverAgeMillis,
      written: written && {
        windows: written.windows,
        leftOut: written.leftOut,
        millisAgo: performance.now() - written.at,
      },
      writesFailed: this.#writesFailed,
    };
  }

  accepted(input: Input): void {
    const { kind } = input;
    if (kind === "request-arrived" || kind === "request-finished" || kind === "request-released") this.#isUsed = true;
    else if (kind === "policy-changed" || (kind === "peer-reported" && input.news.length > 0)) this.#isUsed = true;
  }

  /** The store can be asked, for the first time or again. Resolves when what it had is taken over. */
  async connected(): Promise<void> {
    this.#isUsed = true;
    this.#timer ??= setInterval(() => this.#look(), this.#options.writeMillis / LOOKS_PER_WRITE).unref();
    await this.#take();
  }

  /** The last word: whatever is used now. */
  async stop(isConnected: boolean): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    if (isConnected && this.#isTaken && this.#isUsed) await this.#write(performance.now());
  }

  #look(): void {
    const now = performance.now();
    if (!this.#options.writes()) return;
    if (!this.#isTaken) return void this.#take();
    const isOld = now - (this.#written?.at ?? -Infinity) > RENEWED_SHARE * this.#options.keptMillis;
    if (this.#running !== undefined || now < this.#nextMillis || !(this.#isUsed || isOld)) return;
    this.#running = this.#write(now).finally(() => (this.#running = undefined));
  }

  async #take(): Promise<void> {
    if (this.#isTaken || this.#running !== undefined) return this.#running;
    this.#running = this.#read().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #read(): Promise<void> {
    const { intake, store, refused } = this.#options;
    const found = await store.read().catch(() => undefined);
    // It cannot be asked: it is asked again before anything is written.
    if (found === undefined || this.#isTaken) return;
    this.#isTaken = true;
    const windows: PeerWindow[] = [];
    for (const { text, leftMillis } of found) {
      try {
        windows.push(...windowsOfText(text, leftMillis));
      } catch (error) {
        refused(`what limits had counted cannot be read: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    if (windows.length === 0) return;
    this.#takenOver = windows.length;
    this.#takenOverAgeMillis = Math.min(...windows.map(({ ageMicros = 0 }) => ageMicros)) / 1_000;
    const head = { peer: KEPT, epoch: 1, sequence: 1 };
    intake.accept({ kind: "peer-reported", at: nowMicros(), ...head, snapshot: true, news: windows });
    intake.accept({ kind: "peer-left", at: nowMicros(), peer: KEPT });
  }

  async #write(now: number): Promise<void> {
    const { intake, store, keptMillis, writeMillis } = this.#options;
    this.#isUsed = false;
    const listed = windowsOf(intake.router.admission.limits, nowMicros());
    const { text, leftOut } = keptLimitsText(listed.windows, keptMillis);
    const windows = listed.windows.length - leftOut;
    this.#nextMillis = now + Math.max(writeMillis, windows / WINDOWS_PER_MILLI);
    // Nothing was ever used: nothing need be there.
    if (windows === 0 && this.#written === undefined && this.#takenOver === 0) return;
    try {
      await store.write(text, keptMillis);
      this.#written = { windows, leftOut: listed.leftOut + leftOut, at: performance.now() };
    } catch {
      this.#writesFailed++;
      this.#isUsed = true;
    }
  }
}

/** Of the text: another one is not read. It outlives the version of what gateways send one another. */
const FORMAT = 1;
/** Characters of one text at most; windows beyond, those that used something longest ago, are left out. */
const CHARS_MAX = 1_048_576;
const HEAD_CHARS_MAX = 128;
const WINDOWS_MAX = 8_192;

/** What is used of limits, for gateways that start when none is there, and how many windows there was no room for. */
export function keptLimitsText(
  windows: readonly PeerWindow[],
  keptMillis: number,
): { readonly text: string; readonly leftOut: number } {
  const rows: string[] = [];
  let chars = 0;
  for (const { limit, measure, subject, passedMicros, counts } of windows) {
    const row = JSON.stringify([limit, measure, subject, passedMicros, ...counts]);
    chars += row.length + 1;
    if (chars > CHARS_MAX || rows.length === WINDOWS_MAX) break;
    rows.push(row);
  }
  const text = `{"format":${FORMAT},"keptMillis":${keptMillis},"windows":[${rows.join(",")}]}`;
  return { text, leftOut: windows.length - rows.length };
}

const HEAD = /^\{"format":(\d{1,9}),"keptMillis":(\d{1,16}),"windows":\[/;
/** One of `keptLimitsText`, at its place: names, the time that passed, and up to 64 counts. */
const ROW = /\[(?:"(?:[^"\\]|\\.)*",){3}\d{1,16}(?:,\d{1,16}){0,64}\]/y;
const END = "]}";

/**
 * The windows of such a text, `leftMillis` before it is forgotten. Throws Error for anything else. Read row by row: whatever
 * else there is, an object of a hundred thousand keys for one, is never made.
 */
export function windowsOfText(text: string, leftMillis: number): PeerWindow[] {
  if (text.length > CHARS_MAX + HEAD_CHARS_MAX) throw new Error("it is too long");
  const [head, format, keptMillis] = HEAD.exec(text) ?? [];
  if (head === undefined || !isWhole(Number(keptMillis))) throw new Error("its head");
  if (Number(format) !== FORMAT) throw new Error(`expected format ${FORMAT}, got ${format}`);
  const ageMicros = Math.max(0, Math.round((Number(keptMillis) - leftMillis) * 1_000));
  const windows: PeerWindow[] = [];
  ROW.lastIndex = head.length;
  for (let isLast = text.startsWith(END, head.length); !isLast;) {
    if (windows.length === WINDOWS_MAX) throw new Error(`more than ${WINDOWS_MAX} windows`);
    const row = ROW.exec(text)?.[0];
    if (row === undefined) throw new Error(`window ${windows.length} is none`);
    windows.push(windowOf(row, windows.length, ageMicros));
    isLast = text[ROW.lastIndex] !== ",";
    if (!isLast) ROW.lastIndex++;
  }
  if (text.slice(ROW.lastIndex) !== END) throw new Error("its end");
  return windows;
}

function windowOf(row: string, number: number, ageMicros: number): PeerWindow {
  const [limit, measure, subject, passedMicros, ...counts] = JSON.parse(row) as [string, string, string, ...number[]];
  if (![passedMicros, ...counts].every(isWhole)) throw new Error(`window ${number} is none`);
  return { kind: "window", limit, measure, subject, passedMicros: passedMicros!, ageMicros, counts };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
