import { Worker } from "node:worker_threads";
import { FIT_OUTCOMES, type FitOutcome, type FitReport } from "../calibrate/fit-report.ts";
import type { AwaitedRequests } from "../rollout/awaited-requests.ts";
import type { FromShadow, Parity, ShadowWork, ToShadow } from "./shadow-message.ts";
import type { WhyCard } from "#page/status/why-card.ts";
import type { WhatIfAnswer } from "../question/what-if.ts";
import type { TuneAnswer } from "../tune/tune.ts";
import type { RolloutPredictions } from "../rollout/request-predictions.ts";

export interface ShadowHostOptions {
  readonly work: ShadowWork;
  /** Heap of the thread; beyond it the thread ends, and nothing else does. */
  readonly heapMegabytesMax: number;
  /** The thread has worked through so many bytes of lines, or is gone with so many that it had not. */
  readonly taken: (bytes: number) => void;
  /** Requests of a rollout were predicted. */
  readonly predicted: (predictions: RolloutPredictions) => void;
  /** A fit is in use from now on. */
  readonly fitted?: (report: FitReport) => void;
  /** A search for a better policy came to its end. */
  readonly tuned?: (answer: TuneAnswer) => void;
  /** A new thread needs a header before anything else. */
  readonly restarted: () => void;
  /** Called for each failure, for a log: what happened, and what is done about it. */
  readonly failed: (detail: string, done: string) => void;
  /** The thread's code; for tests. */
  readonly script?: URL;
}

/** For objects that its thread just made: two halves of 8 and what is copied, where V8 took 64 (`bench -- memory`). */
const YOUNG_MEGABYTES_MAX = 24;
/** Restarts in a row until the shadow is given up, and the pause before the first, which doubles. */
const RESTARTS_MAX = 8;
const PAUSE_MILLIS = 1_000;
const PAUSE_MILLIS_MAX = 60_000;
/** A thread that lived so long ends a row. */
const STEADY_MILLIS = 600_000;

/** An evaluation, and the time and processor time that it took. */
export interface Evaluated {
  readonly answer: WhatIfAnswer;
  /** Why it has no intervals; "" where it has. */
  readonly withoutIntervals: string;
  /** Changes of the fleet that the window had no room for. */
  readonly fleetEventsMerged: number;
  readonly millis: number;
  readonly cpuMicros: number;
}

interface Sent {
  readonly atMillis: number;
  readonly bytes: number;
}

/**
 * Runs the shadow's thread. The gateway's thread only posts lines to it and reads the reports that come back; a thread
 * that is slow leaves lines untaken, and one that dies is started again after a pause, a bounded number of times.
 */
export class ShadowHost {
  readonly #options: ShadowHostOptions;
  #worker: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #sent: Sent[] = [];
  #state: "starting" | "running" | "crashed" | "off" = "starting";
  #detail = "";
  #restarts = 0;
  #restartsInRow = 0;
  #startedMillis = 0;
  #cpuMicros = 0;
  #cpuMicrosBefore = 0;
  readonly #fits: Record<FitOutcome, number>;
  #fit: { readonly report: FitReport; readonly millis: number; readonly cpuMicros: number } | undefined;
  #accepted: { readonly report: FitReport; readonly atMillis: number } | undefined;
  #parity: Parity = { decisions: 0, differences: 0, unverifiable: 0 };
  #before: Parity = this.#parity;
  #evaluated: Evaluated | undefined;
  #why: WhyCard | undefined;

  constructor(options: ShadowHostOptions) {
    this.#options = options;
    this.#fits = Object.fromEntries(FIT_OUTCOMES.map((outcome) => [outcome, 0])) as Record<FitOutcome, number>;
    this.#start();
  }

  /** The bytes are the thread's from now on. */
  send(lines: Buffer<ArrayBuffer>): void {
    const { byteLength: bytes } = lines;
    if (this.#worker === undefined) {
      this.#options.taken(bytes);
      return;
    }
    this.#sent.push({ atMillis: performance.now(), bytes });
    this.#worker.postMessage({ lines } satisfies ToShadow, [lines.buffer]);
  }

  /** What waits for a prediction now. */
  awaits(awaited: readonly AwaitedRequests[]): void {
    this.#worker?.postMessage({ awaited } satisfies ToShadow);
  }

  status() {
    const oldest = this.#sent[0];
    return {
      state: this.#state,
      detail: this.#detail,
      restarts: this.#restarts,
      lagMillis: oldest === undefined ? 0 : Math.round(performance.now() - oldest.atMillis),
      parity: sum(this.#before, this.#parity),
      cpuMicros: this.#cpuMicrosBefore + this.#cpuMicros,
      evaluated: this.#evaluated,
      why: this.#why,
      /** In use by evaluations. */
      engine: this.#fit?.report.engine ?? this.#options.work.engine,
      fits: { ...this.#fits },
      /** The latest attempt, whatever its outcome. */
      fit: this.#fit,
      /** The fit in use; undefined as long as it is the engine of the start. */
      accepted: this.#accepted && {
        report: this.#accepted.report,
        ageMillis: Math.round(performance.now() - this.#accepted.atMillis),
      },
    };
  }

  async close(): Promise<void> {
    this.#state = "off";
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #start(): void {
    const { work, heapMegabytesMax, script } = this.#options;
    // What was learnt outlives the thread that learnt it.
    const { engine, residuals } = this.#accepted?.report ?? work;
    const workerData: ShadowWork = { ...work, engine, residuals };
    this.#startedMillis = performance.now();
    const worker = new Worker(script ?? new URL("./shadow.worker.ts", import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax, maxYoungGenerationSizeMb: YOUNG_MEGABYTES_MAX },
      name: "shadow",
    });
    this.#worker = worker;
    worker.on("message", (message: FromShadow) => this.#received(message));
    worker.on("error", (error) => this.#died(worker, error instanceof Error ? error.message : String(error)));
    worker.on("exit", (code) => this.#died(worker, `ended with code ${code}`));
    worker.unref();
  }

  #received(message: FromShadow): void {
    this.#state = "running";
    if (message.kind === "failed") {
      this.#detail = message.detail;
      this.#options.failed(message.detail, "it goes on with the next evaluation");
      return;
    }
    if (message.kind === "fitted") {
      const { report } = message;
      this.#fits[report.outcome]++;
      this.#fit = message;
      if (report.outcome !== "accepted") return;
      this.#accepted = { report, atMillis: performance.now() };
      this.#options.fitted?.(report);
      return;
    }
    if (message.kind === "predicted") {
      this.#options.predicted({ rollout: message.rollout, requests: message.requests });
      return;
    }
    if (message.kind === "explained") {
      this.#why = message.why;
      return;
    }
    if (message.kind === "tuned") {
      this.#options.tuned?.(message.answer);
      return;
    }
    if (message.kind === "evaluated") {
      this.#detail = "";
      this.#evaluated = message;
      return;
    }
    this.#parity = message.parity;
    this.#cpuMicros = message.cpuMicros;
    this.#sent.shift();
    this.#options.taken(message.bytes);
  }

  #died(worker: Worker, detail: string): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#before = sum(this.#before, this.#parity);
    this.#parity = { decisions: 0, differences: 0, unverifiable: 0 };
    this.#cpuMicrosBefore += this.#cpuMicros;
    this.#cpuMicros = 0;
    const lostBytes = this.#sent.reduce((bytes, one) => bytes + one.bytes, 0);
    this.#sent.length = 0;
    this.#options.taken(lostBytes);
    this.#detail = detail;
    if (performance.now() - this.#startedMillis > STEADY_MILLIS) this.#restartsInRow = 0;
    this.#state = this.#restartsInRow === RESTARTS_MAX ? "off" : "crashed";
    if (this.#state === "off") return this.#options.failed(detail, "it is given up; requests are not affected");
    this.#restarts++;
    const pause = Math.min(PAUSE_MILLIS * 2 ** this.#restartsInRow++, PAUSE_MILLIS_MAX);
    this.#options.failed(detail, `it is started again after ${pause} ms; requests are not affected`);
    this.#timer = setTimeout(() => {
      this.#start();
      this.#options.restarted();
    }, pause).unref();
  }
}

function sum(a: Parity, b: Parity): Parity {
  return {
    decisions: a.decisions + b.decisions,
    differences: a.differences + b.differences,
    unverifiable: a.unverifiable + b.unverifiable,
  };
}
