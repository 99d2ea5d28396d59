import { parentPort } from "node:worker_threads";

/** Dies of the first thing that it hears. */
parentPort?.on("message", () => {
  throw new Error("the shadow broke");
});
