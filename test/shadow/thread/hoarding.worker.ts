import { parentPort } from "node:worker_threads";

/** Takes all the memory that it may have, as a fit gone wrong would, at the first thing that it hears. */
const hoard: number[][] = [];
parentPort?.on("message", () => {
  for (;;) hoard.push(Array<number>(50_000).fill(hoard.length));
});
