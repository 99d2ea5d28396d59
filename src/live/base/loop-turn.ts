/** Who waits for work that is done in turns. */
export interface Asker {
  /** Nobody waits for it any more: the client left, or its answer is complete. */
  readonly over: boolean;
}

/** For work that is done whoever leaves. */
export const STAYS: Asker = { over: false };

/** Ends work that nobody waits for any more. */
export class AskerLeft extends Error {
  override readonly name = "AskerLeft";

  constructor() {
    super("nobody waits for this any more");
  }
}

interface Waiter {
  readonly asker: Asker;
  readonly resolve: () => void;
  readonly reject: (error: AskerLeft) => void;
}

/** Those that wait, the longest first from `first` on. */
let waiting: Waiter[] = [];
let first = 0;

/**
 * The next turn for a slice of long work. All long work of the process stands in one line, of which each pass of the event
 * loop lets one go on: however many do it at once, whatever else the loop has to do waits for one slice, not for one of
 * each. As many wait as requests are in flight, at most.
 *
 * Rejects with AskerLeft, without a turn, once nobody waits for the work.
 */
export function loopTurn(asker: Asker): Promise<void> {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) setImmediate(goOn);
    waiting.push({ asker, resolve, reject });
  });
}

/** Long work that pauses after each slice: its first slice at once, each other one in a turn of its own. */
export async function inTurns<T>(work: Generator<void, T>, asker: Asker): Promise<T> {
  for (let slice = work.next(); ; slice = work.next()) {
    if (slice.done === true) return slice.value;
    await loopTurn(asker);
  }
}

/** The same without a pause, for work that is known to be short. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const slice = work.next();
    if (slice.done === true) return slice.value;
  }
}

function goOn(): void {
  for (let gone = false; !gone && first < waiting.length;) {
    const { asker, resolve, reject } = waiting[first++]!;
    gone = !asker.over;
    if (gone) resolve();
    else reject(new AskerLeft());
  }
  if (first >= Math.max(KEPT_MAX, waiting.length / 2) || first === waiting.length) {
    waiting = waiting.slice(first);
    first = 0;
  }
  if (waiting.length > 0) setImmediate(goOn);
}

/** Places behind which those that had their turn are dropped. */
const KEPT_MAX = 1_024;
