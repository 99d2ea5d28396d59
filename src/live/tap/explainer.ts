import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type CountedEnds, type EndedRequest, explainCounts, type Explanation } from "./explain-counts.ts";

export interface Question {
  readonly requests: readonly EndedRequest[];
  readonly cells: readonly CountedEnds[];
  readonly delayMicros: number;
}

/** So few requests are explained at once, in a fraction of a millisecond. */
const AT_ONCE_MAX = 6;

/** Explains counts where requests do not wait for it: a search may take a fifth of a second. One question at a time. */
export class Explainer {
  #worker: Worker | undefined;

  async explain(question: Question): Promise<Explanation> {
    if (question.requests.length <= AT_ONCE_MAX)
      return explainCounts(question.requests, question.cells, question.delayMicros);
    this.#worker ??= this.#start();
    this.#worker.postMessage(question);
    const [explanation] = (await once(this.#worker, "message")) as [Explanation];
    return explanation;
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./explain-counts.worker.ts", import.meta.url), { execArgv: [] });
    worker.unref();
    // Whoever waits is rejected; the next question gets another one.
    worker.on("error", () => (this.#worker = undefined));
    return worker;
  }
}
