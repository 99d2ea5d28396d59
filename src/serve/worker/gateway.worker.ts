import { workerData } from "node:worker_threads";
import { runWorker } from "./run-worker.ts";
import type { WorkerWork } from "./worker-message.ts";

await runWorker(workerData as WorkerWork);
