import { setImmediate } from "node:timers/promises";

/** Commands that run until they are stopped, and end with 0 then. Options alone, or nothing, are `serve`. */
const SERVERS: ReadonlySet<string> = new Set(["serve", "emulate"]);
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const exitAtOnce = (): void => process.exit(0);

/**
 * Until the command of a server has begun to handle signals itself (`stopSignal`), one ends the process with 0: nothing is
 * there yet that would have to be closed. Without it a signal within the second that a start takes would end it as if it
 * had been killed.
 */
export function stopEarly(argv: readonly string[]): void {
  const [word = "serve"] = argv;
  if (!SERVERS.has(word) && !word.startsWith("-")) return;
  for (const signal of SIGNALS) if (!process.listeners(signal).includes(exitAtOnce)) process.on(signal, exitAtOnce);
}

/** A turn of the event loop, in which a signal of before is handled: while code is loaded there is none. */
export async function heedSignals(): Promise<void> {
  await setImmediate();
}

/** From now on signals are handled by whoever calls this, in the same turn of the event loop. */
export function endStopEarly(): void {
  for (const signal of SIGNALS) process.off(signal, exitAtOnce);
}
