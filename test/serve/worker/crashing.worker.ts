import { BroadcastChannel, workerData } from "node:worker_threads";
import { runWorker } from "#serve/worker/run-worker.ts";
import type { WorkerWork } from "#serve/worker/worker-message.ts";

const work = workerData as WorkerWork;
if (work.number === 1) {
  const asked = new BroadcastChannel("crash-worker-1");
  asked.addEventListener("message", () => {
    setImmediate(() => {
      throw new Error("on purpose");
    });
  });
}
await runWorker(work);
