import { parentPort } from "node:worker_threads";

/** Hears everything and never answers. */
parentPort?.on("message", () => {});
