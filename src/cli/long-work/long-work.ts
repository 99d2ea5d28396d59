import { RARE } from "#drive/rare-option.ts";
import { constants } from "node:os";
import { setImmediate } from "node:timers/promises";
import { Option, type Command } from "commander";
import { Interrupted } from "#serve/process/interrupted.ts";
import { cacheFolder } from "#serve/tokens/table-folder.ts";
import type { WorkKeeping } from "#shadow/job/result-memory.ts";
import { KeptResults } from "./kept-results.ts";

/** What of long work a person can set. */
export interface LongWorkFlags {
  /** False for none; undefined for the usual one. */
  readonly cache?: string | false;
}

/** How long work is shown and stopped, and what it leaves for the next time. */
export interface LongWork extends WorkKeeping {
  readonly signal: AbortSignal;
  /** How far it is: "12 of 63 simulations". A terminal shows it at once, anything else every ten seconds. */
  readonly progress: (text: string) => void;
  /** What could be reported were it interrupted now; a line. */
  readonly soFar: (text: string) => void;
  /** What comes of steps, with signals and timers handled between them. Fails once it is interrupted. */
  readonly inTurns: <T>(steps: Generator<void, T>, unit: string) => Promise<T>;
}

const LINE_MILLIS = 10_000;
/** So long steps go on without a turn of the event loop. */
const TURN_MILLIS = 50;
/** A signal that follows within this time is the same one: a terminal sends it to a group, and parents forward it. */
const SAME_SIGNAL_MILLIS = 500;
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function addCacheFlags(command: Command): Command {
  const meaning =
    "folder in which finished simulations of long work are kept, so that the same command goes on where it was " +
    "interrupted; at most 512 MiB (default: gnomon/results in XDG_CACHE_HOME or ~/.cache)";
  return command
    .addOption(new Option("--cache <folder>", meaning).helpGroup(RARE))
    .addOption(new Option("--no-cache", "keep none, and use none that was kept").helpGroup(RARE));
}

/**
 * Does work that may take long: shows how far it is, keeps finished results every ten seconds, and where SIGINT or
 * SIGTERM comes ends it with an Interrupted that states what is kept. Another signal ends the process at once.
 */
export async function doLongWork<T>(
  { cache }: LongWorkFlags,
  body: (work: LongWork) => Promise<T>,
  lineMillis = LINE_MILLIS,
): Promise<T> {
  const folder = cache === false ? undefined : (cache ?? cacheFolder(process.env, "results"));
  const memory = folder === undefined ? undefined : new KeptResults(folder);
  const stop = new AbortController();
  const [startedAt, terminal] = [performance.now(), process.stderr.isTTY];
  let [text, soFar, stoppedAt, shown] = ["", "", Infinity, startedAt];
  const show = (): void => {
    shown = performance.now();
    memory?.flush();
    const seconds = ((shown - startedAt) / 1000).toFixed(0);
    if (!terminal) process.stderr.write(`${text === "" ? "at work" : text}, ${seconds} s\n`);
  };
  const progress = (next: string): void => {
    text = next;
    if (terminal) process.stderr.write(`\r\x1b[K${text}`);
    // Work that holds this thread leaves the timer no turn.
    if (performance.now() - shown >= lineMillis) show();
  };
  const onSignal = (signal: (typeof SIGNALS)[number]): void => {
    const now = performance.now();
    const code = 128 + constants.signals[signal];
    if (now - stoppedAt >= SAME_SIGNAL_MILLIS) process.exit(code);
    stoppedAt = Math.min(stoppedAt, now);
    stop.abort(new Interrupted(code));
  };
  const timer = setInterval(() => performance.now() - shown >= lineMillis && show(), lineMillis / 10);
  for (const signal of SIGNALS) process.on(signal, onSignal);
  try {
    return await body({
      memory,
      signal: stop.signal,
      progress,
      soFar: (line) => (soFar = line),
      inTurns: (steps, unit) => inTurns(steps, stop.signal, (done) => progress(`${done} ${unit}`)),
    });
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    memory?.flush();
    const reason = stop.signal.reason as Interrupted;
    throw new Interrupted(reason.exitCode, interruptedText(text, soFar, memory));
  } finally {
    clearInterval(timer);
    for (const signal of SIGNALS) process.off(signal, onSignal);
    if (terminal) process.stderr.write("\r\x1b[K");
  }
}

function interruptedText(text: string, soFar: string, memory: KeptResults | undefined): string {
  const how = text === "" ? "interrupted" : `interrupted after ${text}`;
  const isKept = memory?.trouble === "" && memory.kept + memory.found > 0;
  const next = isKept
    ? "the same command goes on from there"
    : `nothing is kept${memory === undefined || memory.trouble === "" ? "" : ` (${memory.trouble})`}`;
  return `${how}; ${next}${soFar === "" ? "" : `\n${soFar}`}`;
}

async function inTurns<T>(steps: Generator<void, T>, signal: AbortSignal, done: (count: number) => void): Promise<T> {
  let turnAt = performance.now();
  for (let count = 1; ; count++) {
    const step = steps.next();
    if (step.done === true) return step.value;
    done(count);
    if (performance.now() - turnAt < TURN_MILLIS) continue;
    await setImmediate();
    signal.throwIfAborted();
    turnAt = performance.now();
  }
}
