import type { FaultEvent } from "#live/log/fault-log.ts";
import type { OrdersStatus } from "#live/metrics/metric-policy.ts";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { KeptFile } from "./kept-file.ts";

/** Between two tries to write what the disk refused. */
const RETRY_MILLIS = 250;
const RETRY_MILLIS_MAX = 5_000;

export interface KeptOrdersOptions {
  /** Of the folder, for people. */
  readonly path: string;
  readonly report: (event: FaultEvent) => void;
}

interface Waiter {
  readonly order: number;
  readonly resolve: (problem: string) => void;
}

/**
 * What operators ordered, on its way to the disk: a text that the disk refuses, or a later one in its place, is tried
 * again until it is written. Files are written one after the other, in the order in which they are given here: a kill
 * between two leaves the first.
 */
export class KeptOrders {
  readonly #options: KeptOrdersOptions;
  readonly #files: readonly KeptFile[];
  readonly #wanted = new Map<KeptFile, string>();
  #waiters: Waiter[] = [];
  /** Texts that were asked for, and how many of them the disk has, or has newer ones of. */
  #asked = 0;
  #written = 0;
  #failures = 0;
  #problem = "";
  #running = false;
  #wake: (() => void) | undefined;

  constructor(files: readonly KeptFile[], options: KeptOrdersOptions) {
    this.#files = files;
    this.#options = options;
  }

  get status(): OrdersStatus {
    return { failures: this.#failures, isUnwritten: this.#written < this.#asked };
  }

  /** This text is to be what the file has. */
  write(file: KeptFile, text: string): void {
    this.#wanted.set(file, text);
    this.#asked++;
    this.#wake?.();
    if (!this.#running) void this.#run();
  }

  /** Resolves with "" once all that was asked for is on the disk; with what is wrong as soon as that is known, or then. */
  async settled(millisMax: number): Promise<string> {
    const order = this.#asked;
    if (this.#written >= order) return "";
    const { promise, resolve } = Promise.withResolvers<string>();
    const waiter = { order, resolve };
    this.#waiters.push(waiter);
    const late = `${this.#options.path}: the disk did not answer within ${millisMax / MILLIS_PER_SECOND} s`;
    const timer = setTimeout(() => {
      this.#waiters = this.#waiters.filter((one) => one !== waiter);
      resolve(late);
    }, millisMax);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    // What one order changes is asked for in one run of the event loop.
    await Promise.resolve();
    for (let tries = 0; this.#wanted.size > 0;) {
      const order = this.#asked;
      const problem = await this.#writeAll();
      if (problem === "") {
        tries = 0;
        this.#written = order;
        this.#recovered();
      } else this.#failed(problem);
      this.#answer(order, problem);
      if (problem !== "") await this.#pause(Math.min(RETRY_MILLIS * 2 ** tries++, RETRY_MILLIS_MAX));
    }
    this.#running = false;
  }

  /** What is wrong with the first that the disk refused; those behind it are written all the same. */
  async #writeAll(): Promise<string> {
    let problem = "";
    for (const file of this.#files) {
      const text = this.#wanted.get(file);
      if (text === undefined) continue;
      try {
        await file.write(text);
        if (this.#wanted.get(file) === text) this.#wanted.delete(file);
      } catch (error) {
        this.#failures++;
        problem ||= error instanceof Error ? error.message : String(error);
      }
    }
    return problem;
  }

  #answer(order: number, problem: string): void {
    const answered = this.#waiters.filter((one) => one.order <= order);
    this.#waiters = this.#waiters.filter((one) => one.order > order);
    for (const { resolve } of answered) resolve(problem === "" ? "" : `${this.#options.path}: ${problem}`);
  }

  #failed(problem: string): void {
    if (this.#problem === "") {
      const detail = `${this.#options.path}: ${problem}`;
      const done = "what was ordered holds; a restart would not know of it; it is tried again until it is written";
      this.#options.report({ kind: "state-failed", detail, done });
    }
    this.#problem = problem;
  }

  #recovered(): void {
    if (this.#problem === "") return;
    this.#problem = "";
    const detail = `${this.#options.path}: after ${this.#failures} failures`;
    this.#options.report({ kind: "state-written", detail, done: "a restart knows of all that was ordered" });
  }

  /** Something new to be written ends it: there may be room again. */
  async #pause(millis: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, millis).unref();
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }
}
