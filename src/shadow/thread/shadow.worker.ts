import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import type { FromShadow } from "./shadow-message.ts";

/**
 * The gateway's thread goes first where cores are short, already while this one's code is loaded. On Linux a priority is
 * one thread's; elsewhere it would be the whole process's.
 */
try {
  if (process.platform === "linux") setPriority(constants.priority.PRIORITY_LOW);
} catch (error) {
  const detail = `runs at the gateway's priority: ${String(error)}`;
  parentPort?.postMessage({ kind: "failed", detail } satisfies FromShadow);
}
await import("./shadow-thread.ts");
