import { parentPort, workerData } from "node:worker_threads";
import { busyRun, digest } from "./digest.ts";
import { WEIGHTED } from "./cluster.ts";

const { seed, runs } = workerData as { readonly seed: number; readonly runs: number };
parentPort?.postMessage(Array.from({ length: runs }, () => digest(busyRun(WEIGHTED, seed))));
