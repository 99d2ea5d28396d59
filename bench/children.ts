import type { ChildProcess } from "node:child_process";

/** Processes that a bench started and that still run: none outlives it. */
const running = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/** The process itself, which is now ended with this one at the latest. */
export function kept<T extends ChildProcess>(child: T): T {
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Asks all of them to end. */
export function endAll(): void {
  for (const child of running) child.kill("SIGTERM");
}

/** What it sends next; rejects where it ends before. */
export function message(from: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`${from.spawnargs.join(" ")} ended with ${code}`));
    from.once("exit", ended);
    from.once("message", (received) => {
      from.removeListener("exit", ended);
      resolve(received);
    });
  });
}
