import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import type { WorkerMemory } from "#live/worker/worker-memory.ts";
import { newWorkerMemory } from "#live/worker/worker-memory.ts";
import { WorkerDesk, type DecidingParts } from "#live/worker/worker-desk.ts";
import type { BellMemory } from "#live/worker/bell.ts";
import type { FromWorker, ToWorker, WorkerCounts, WorkerWork } from "./worker-message.ts";

export interface WorkerThreadOptions {
  readonly script: URL;
  readonly deciding: BellMemory;
  readonly parts: DecidingParts;
  readonly work: Omit<WorkerWork, "memory" | "port">;
  /** It ended by itself, or never began. */
  readonly died: (detail: string) => void;
}

/** How long an answer to a question about counts is waited for. */
const COUNT_MILLIS_MAX = 250;

/** One worker: its thread, its mail, and what it counted. */
export class WorkerThread {
  readonly desk: WorkerDesk;
  /** Resolves when it takes requests; rejects where its address cannot be had, or it died before. */
  readonly listening: Promise<void>;
  counts: WorkerCounts | undefined;
  isUp = false;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #memory: WorkerMemory;
  readonly #asked = new Map<number, () => void>();
  #questions = 0;
  #isOver = false;
  #drained: ((requestsCut: number) => void) | undefined;

  constructor({ script, deciding, parts, work, died }: WorkerThreadOptions) {
    const { number } = work;
    this.#memory = newWorkerMemory(deciding);
    this.desk = new WorkerDesk({ ...parts, worker: number, memory: this.#memory });
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData: WorkerWork = { ...work, memory: this.#memory, port: port2 };
    const worker = new Worker(script, { workerData, transferList: [port2], name: `worker-${number}` });
    this.#worker = worker;
    this.listening = new Promise((resolve, reject) => {
      port1.on("message", (message: FromWorker) => {
        if (message.kind === "listening") {
          this.isUp = true;
          resolve();
        } else if (message.kind === "refused") {
          reject(Object.assign(new Error(message.message), { code: message.code }));
        } else this.#received(message);
      });
      const ended = (detail: string): void => {
        reject(new Error(detail));
        this.#ended(detail, died);
      };
      worker.on("error", (error) => ended(error instanceof Error ? error.message : String(error)));
      worker.on("exit", (code) => ended(`ended with code ${code}`));
    });
    this.listening.catch(() => {});
  }

  send(message: ToWorker): void {
    if (!this.#isOver) this.#port.postMessage(message);
  }

  /** Its counts as they are now, or after a moment as they last were. */
  async recount(): Promise<void> {
    if (!this.isUp) return;
    const question = ++this.#questions;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, COUNT_MILLIS_MAX);
      this.#asked.set(question, () => {
        clearTimeout(timer);
        resolve();
      });
      this.send({ kind: "count", question });
    });
    this.#asked.delete(question);
  }

  /** Its requests end, or are cut after the grace. Returns how many were. */
  async drain(graceMillis: number, noticeMillis: number): Promise<number> {
    if (this.#isOver) return 0;
    const drained = new Promise<number>((resolve) => (this.#drained = resolve));
    this.send({ kind: "drain", graceMillis, noticeMillis });
    return drained;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#port.close();
    await this.#worker.terminate();
    while (this.desk.take() > 0);
  }

  #received(message: Extract<FromWorker, { kind: "counted" | "drained" }>): void {
    this.counts = message.counts;
    if (message.kind === "counted") this.#asked.get(message.question)?.();
    else this.#drained?.(message.requestsCut);
  }

  #ended(detail: string, died: (detail: string) => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.isUp = false;
    this.#port.close();
    for (const answered of this.#asked.values()) answered();
    this.#drained?.(this.desk.inFlight);
    died(detail);
  }
}
