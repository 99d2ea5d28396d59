import { setImmediate } from "node:timers/promises";
import { Piscina } from "piscina";
import type { Setting } from "../candidate/candidate.ts";
import { type Job, type JobResults, perform } from "./job.ts";
import { columnsOf, type WorkloadColumns } from "../recorded/packed-workload.ts";
import { jobDigest, type WorkKeeping } from "./result-memory.ts";

/** Below so many simulated requests threads cost more than they save. */
const REQUESTS_PER_THREAD_MIN = 5_000;

/** What a thread is given once: the workload in shared memory, the rest copied. */
export interface WorkerSetting {
  readonly setting: Omit<Setting, "workload">;
  readonly columns: WorkloadColumns;
}

export interface JobPoolOptions {
  /** Number of requests that all jobs together will simulate. */
  readonly work: number;
  readonly threadsMax: number;
  /** Awaited after each job that this thread has done, one by one, so that a host can let it rest. */
  readonly pause?: (() => Promise<void>) | undefined;
  readonly keeping?: WorkKeeping | undefined;
}

/** Does jobs on threads of its own, or in this one where there is little to do. The results are the same. */
export class JobPool {
  readonly #setting: Setting;
  /** Of its own; 0 for none. */
  readonly #threadCount: number;
  #threads: Piscina<Job, JobResults[Job["kind"]]> | undefined;
  readonly #options: JobPoolOptions;
  /** Rejects once no more is to be done. */
  readonly #stopped: Promise<never> | undefined;
  #settingDigest: string | undefined;
  /** Ends when the jobs before have, in this thread. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(setting: Setting, options: JobPoolOptions) {
    this.#setting = setting;
    this.#options = options;
    const { work, threadsMax, keeping } = options;
    if (keeping?.signal !== undefined) this.#stopped = stopped(keeping.signal);
    const threads = Math.max(1, Math.min(threadsMax, Math.floor(work / REQUESTS_PER_THREAD_MIN)));
    // Signals are handled between jobs, so that one thread which can be stopped leaves long ones to another.
    const isHere = threads === 1 && (keeping?.signal === undefined || work < 2 * REQUESTS_PER_THREAD_MIN);
    this.#threadCount = isHere ? 0 : threads;
  }

  async run<K extends Job["kind"]>(job: Job & { readonly kind: K }): Promise<JobResults[K]> {
    const { memory, signal } = this.#options.keeping ?? {};
    signal?.throwIfAborted();
    const key = memory && this.#keyOf(job);
    const known = key === undefined ? undefined : memory?.get(key);
    if (known !== undefined) return known as JobResults[K];
    const done = this.#threadCount === 0 ? this.#here(job) : this.#elsewhere(job);
    const result = await (this.#stopped === undefined ? done : Promise.race([done, this.#stopped]));
    if (key !== undefined) memory?.put(key, result);
    return result as JobResults[K];
  }

  #keyOf(job: Job): string {
    if (this.#settingDigest === undefined) {
      const { workload, ...rest } = this.#setting;
      this.#settingDigest = jobDigest([rest, columnsOf(workload)]);
    }
    return jobDigest([this.#settingDigest, job]);
  }

  /** Threads begin with the first job that has to be done. */
  #elsewhere(job: Job): Promise<JobResults[Job["kind"]]> {
    if (this.#threads === undefined) {
      const { workload, ...rest } = this.#setting;
      this.#threads = new Piscina({
        filename: new URL("./candidate.worker.ts", import.meta.url).href,
        workerData: { setting: rest, columns: columnsOf(workload) } satisfies WorkerSetting,
        minThreads: this.#threadCount,
        maxThreads: this.#threadCount,
      });
    }
    return this.#threads.run(job);
  }

  async #here(job: Job): Promise<JobResults[Job["kind"]]> {
    const before = this.#turn;
    const { pause, keeping } = this.#options;
    const done = (async () => {
      await before;
      if (keeping?.signal !== undefined) await setImmediate();
      keeping?.signal?.throwIfAborted();
      const result = perform(this.#setting, job);
      await pause?.();
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

function stopped(signal: AbortSignal): Promise<never> {
  const never = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  // Whoever waits for a job is notified; where nobody does there is nothing to be notified of.
  never.catch(() => {});
  return never;
}
