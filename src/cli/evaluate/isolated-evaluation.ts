import { Worker } from "node:worker_threads";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import type { WorkerSetting } from "#shadow/job/job-pool.ts";
import { columnsOf } from "#shadow/recorded/packed-workload.ts";
import type { Evaluation, Ground } from "./evaluation.ts";

export interface Limits {
  readonly timeoutMillis: number;
  readonly heapMegabytesMax: number;
  /** The thread's code; for tests. */
  readonly script?: URL;
}

/** An evaluation, or why there is none. */
export type EvaluationAttempt =
  | { readonly ok: true; readonly evaluation: Evaluation }
  | { readonly ok: false; readonly error: string };

/** Evaluates policies each in a thread of its own, with an end in time and a heap of its own: none can harm another. */
export class IsolatedEvaluations {
  readonly #given: WorkerSetting & { readonly ground: Ground };
  readonly #limits: Limits;

  constructor(setting: Setting, ground: Ground, limits: Limits) {
    const { workload, ...rest } = setting;
    this.#given = { setting: rest, columns: columnsOf(workload), ground };
    this.#limits = limits;
  }

  /** Never rejects. */
  async run(candidate: Candidate): Promise<EvaluationAttempt> {
    const { timeoutMillis, heapMegabytesMax, script } = this.#limits;
    const worker = new Worker(script ?? new URL("./evaluation.worker.ts", import.meta.url), {
      workerData: { ...this.#given, candidate },
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
      name: "evaluation",
    });
    const { promise, resolve } = Promise.withResolvers<EvaluationAttempt>();
    const failed = (error: string) => resolve({ ok: false, error });
    const timer = setTimeout(() => failed(`it took longer than ${timeoutMillis} ms`), timeoutMillis);
    worker.on("message", (evaluation: Evaluation) => resolve({ ok: true, evaluation }));
    worker.on("error", (error) => failed(error instanceof Error ? error.message : String(error)));
    worker.on("exit", (code) => failed(`its thread ended with code ${code}`));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      await worker.terminate();
    }
  }
}
