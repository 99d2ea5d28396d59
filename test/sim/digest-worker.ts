import { parentPort, workerData } from "node:worker_threads";
import { busyRun, digest } from "./digest.ts";
import { WEIGHTED } from "./cluster.ts";

const { seed, runs } = workerData as { readonly seed: number; readonly runs: number };
const digests = Array.from({ length: runs }, () => digest(busyRun(WEIGHTED, seed)));
parentPort?.postMessage(digests, []);
