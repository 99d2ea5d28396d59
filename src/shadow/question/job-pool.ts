import { Piscina } from "piscina";
import type { Setting } from "./candidate.ts";
import { type Job, type JobResults, perform } from "./job.ts";
import { columnsOf, type WorkloadColumns } from "../recorded/packed-workload.ts";

/** Below so many simulated requests threads cost more than they save. */
const REQUESTS_PER_THREAD_MIN = 5_000;

/** What a thread is given once: the workload in shared memory, the rest copied. */
export interface WorkerSetting {
  readonly setting: Omit<Setting, "workload">;
  readonly columns: WorkloadColumns;
}

/** Does jobs on threads of its own, or in this one where there is little to do. The results are the same. */
export class JobPool {
  readonly #setting: Setting;
  readonly #threads: Piscina<Job, JobResults[Job["kind"]]> | undefined;
  readonly #pause: () => Promise<void>;
  /** Ends when the jobs before have, in this thread. */
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * `work` is the number of requests that all jobs together will simulate. `pause` is awaited after each job that this
   * thread has done, one by one, so that a host can let it rest.
   */
  constructor(setting: Setting, work: number, threadsMax: number, pause = async (): Promise<void> => {}) {
    this.#setting = setting;
    this.#pause = pause;
    const threads = Math.min(threadsMax, Math.floor(work / REQUESTS_PER_THREAD_MIN));
    if (threads < 2) return;
    const { workload, ...rest } = setting;
    this.#threads = new Piscina({
      filename: new URL("./candidate.worker.ts", import.meta.url).href,
      workerData: { setting: rest, columns: columnsOf(workload) } satisfies WorkerSetting,
      minThreads: threads,
      maxThreads: threads,
    });
  }

  async run<K extends Job["kind"]>(job: Job & { readonly kind: K }): Promise<JobResults[K]> {
    const result = this.#threads === undefined ? await this.#here(job) : await this.#threads.run(job);
    return result as JobResults[K];
  }

  async #here(job: Job): Promise<JobResults[Job["kind"]]> {
    const before = this.#turn;
    const done = (async () => {
      await before;
      const result = perform(this.#setting, job);
      await this.#pause();
      return result;
    })();
    // A job that fails is its caller's matter; the next one comes all the same.
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async close(): Promise<void> {
    await this.#threads?.destroy();
  }
}
