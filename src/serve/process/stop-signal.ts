import { endStopEarly } from "./early-stop.ts";

/** Exit code of a process that a second signal ended at once. */
const EXIT_FORCED = 130;
/**
 * A signal that follows the first within this time is the same stop: a terminal's interrupt, and what is sent to a process
 * group, reaches the process itself and once more through `npm start` or another parent that forwards it.
 */
const SAME_STOP_MILLIS = 500;

/**
 * Resolves with the first SIGINT, SIGTERM or SIGHUP. A later SIGINT or SIGTERM ends the process at once, whatever is
 * still open. A SIGHUP never does: a terminal that closes sends it more than once, and supervisors send it beside SIGTERM.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let stoppedMillis: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const nowMillis = performance.now();
      stoppedMillis ??= nowMillis;
      if (nowMillis - stoppedMillis >= SAME_STOP_MILLIS) process.exit(EXIT_FORCED);
      resolve(signal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
    process.on("SIGHUP", resolve);
    endStopEarly();
  });
}

const LINGER_MILLIS_MAX = 5_000;

/**
 * A process that is stopped while it starts ends once that is done, or with 0 after some seconds: what it waits for may
 * never come, and nobody was served yet. The start is over when the returned function is called.
 */
export function boundStart(stopped: Promise<unknown>): () => void {
  let over = false;
  void stopped.then(() => {
    if (!over) setTimeout(() => over || process.exit(0), LINGER_MILLIS_MAX).unref();
  });
  return () => {
    over = true;
  };
}

/** Ends the process some seconds after a shutdown, should anything keep it alive. */
export function exitSoon(): void {
  setTimeout(() => process.exit(), LINGER_MILLIS_MAX).unref();
}
