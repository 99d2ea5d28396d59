import { parentPort } from "node:worker_threads";
import { explainCounts } from "./explain-counts.ts";
import type { Question } from "./explainer.ts";

parentPort!.on("message", ({ requests, cells, delayMicros }: Question) => {
  parentPort!.postMessage(explainCounts(requests, cells, delayMicros));
});
