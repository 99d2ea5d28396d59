import { Worker } from "node:worker_threads";
import type { FromShadow, Parity, ShadowWork } from "./shadow-message.ts";
import type { WhatIfAnswer } from "./what-if.ts";

export interface ShadowHostOptions {
  readonly work: ShadowWork;
  /** Heap of the thread; beyond it the thread ends, and nothing else does. */
  readonly heapMegabytesMax: number;
  /** The thread has worked through so many characters, or is gone with so many that it had not. */
  readonly taken: (chars: number) => void;
  /** A new thread needs a header before anything else. */
  readonly restarted: () => void;
  readonly log: (message: string) => void;
  /** The thread's code; for tests. */
  readonly script?: URL;
}

/** Restarts until the shadow is given up, and the pause before the first, which doubles. */
const RESTARTS_MAX = 8;
const PAUSE_MILLIS = 1_000;
const PAUSE_MILLIS_MAX = 60_000;

interface Sent {
  readonly atMillis: number;
  chars: number;
}

/**
 * Runs the shadow's thread. The gateway's thread only posts text to it and reads the reports that come back; a thread
 * that is slow leaves text untaken, and one that dies is started again after a pause, a bounded number of times.
 */
export class ShadowHost {
  readonly #options: ShadowHostOptions;
  #worker: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #sent: Sent[] = [];
  #state: "starting" | "running" | "crashed" | "off" = "starting";
  #detail = "";
  #restarts = 0;
  #parity: Parity = { decisions: 0, differences: 0, unverifiable: 0 };
  #before: Parity = this.#parity;
  #evaluated: { readonly answer: WhatIfAnswer; readonly millis: number } | undefined;

  constructor(options: ShadowHostOptions) {
    this.#options = options;
    this.#start();
  }

  send(text: string): void {
    if (this.#worker === undefined) {
      this.#options.taken(text.length);
      return;
    }
    this.#sent.push({ atMillis: performance.now(), chars: text.length });
    this.#worker.postMessage({ text });
  }

  status() {
    const oldest = this.#sent[0];
    return {
      state: this.#state,
      detail: this.#detail,
      restarts: this.#restarts,
      lagMillis: oldest === undefined ? 0 : Math.round(performance.now() - oldest.atMillis),
      parity: sum(this.#before, this.#parity),
      evaluated: this.#evaluated,
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
    const worker = new Worker(script ?? new URL("./shadow.worker.ts", import.meta.url), {
      workerData: work,
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
      name: "shadow",
    });
    this.#worker = worker;
    worker.on("message", (message: FromShadow) => this.#heard(message));
    worker.on("error", (error) => this.#died(worker, error instanceof Error ? error.message : String(error)));
    worker.on("exit", (code) => this.#died(worker, `ended with code ${code}`));
    worker.unref();
  }

  #heard(message: FromShadow): void {
    this.#state = "running";
    if (message.kind === "failed") {
      this.#detail = message.detail;
      this.#options.log(`shadow: ${message.detail}`);
      return;
    }
    if (message.kind === "evaluated") {
      this.#detail = "";
      this.#evaluated = message;
      return;
    }
    this.#parity = message.parity;
    this.#sent.shift();
    this.#options.taken(message.chars);
  }

  #died(worker: Worker, detail: string): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#before = sum(this.#before, this.#parity);
    this.#parity = { decisions: 0, differences: 0, unverifiable: 0 };
    const lostChars = this.#sent.reduce((chars, one) => chars + one.chars, 0);
    this.#sent.length = 0;
    this.#options.taken(lostChars);
    this.#detail = detail;
    this.#state = this.#restarts === RESTARTS_MAX ? "off" : "crashed";
    this.#options.log(`shadow: ${detail}${this.#state === "off" ? "; given up" : ""}`);
    if (this.#state === "off") return;
    const pause = Math.min(PAUSE_MILLIS * 2 ** this.#restarts++, PAUSE_MILLIS_MAX);
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
