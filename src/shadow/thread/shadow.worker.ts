import { enableCompileCache, flushCompileCache } from "node:module";
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
// A thread does not keep compiled code by itself where its process does: 0.4 s of CPU at its start in place of 0.14.
if (process.env["NODE_COMPILE_CACHE"] !== undefined) enableCompileCache();
await import("./shadow-thread.ts");
flushCompileCache();
