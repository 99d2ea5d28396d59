import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { CheckJudge } from "#core/endpoint/check-judge.ts";
import { askEngine } from "../endpoints/engine-request.ts";

export interface HealthCheckOptions {
  readonly path: string;
  readonly intervalMillis: number;
  readonly timeoutMillis: number;
  readonly unhealthyAfter: number;
  readonly healthyAfter: number;
}

/** Counts of all checks of this process. */
export interface CheckCounts {
  ok: number;
  failed: number;
  /** Verdicts, each time that they changed. */
  unhealthy: number;
  healthy: number;
}

export function newCheckCounts(): CheckCounts {
  return { ok: 0, failed: 0, unhealthy: 0, healthy: 0 };
}

/** Lets so many work at once; the others wait in order. */
export class Turnstile {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(concurrencyMax: number) {
    this.#free = concurrencyMax;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

export interface HealthCheckerOptions extends HealthCheckOptions {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly dispatcher: Dispatcher;
  readonly turnstile: Turnstile;
  readonly counts: CheckCounts;
  /** Whether there is anybody to check for; a server that is lost is asked otherwise. */
  readonly wanted: () => boolean;
  /** The verdict changed, with why the last check failed. It must not throw. */
  readonly judged: (healthy: boolean, detail: string) => void;
  /** A number in [0, 1) that spreads checks over time. */
  readonly random?: () => number;
}

const JITTER = 0.1;
const BODY_BYTES_MAX = 64 * 1024;

/** Asks one server how it is, again and again, until it is stopped. Only 200 is healthy. */
export class HealthChecker {
  readonly #options: HealthCheckerOptions;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;
  #judge: CheckJudge;

  constructor(options: HealthCheckerOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#judge = this.#newJudge();
    this.#done = this.#run();
  }

  /** By its checks so far. */
  get healthy(): boolean {
    return this.#judge.healthy;
  }

  /** Another process is there: nothing is known of it. */
  forget(): void {
    this.#judge = this.#newJudge();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { intervalMillis, turnstile } = this.#options;
    // The first ones are spread over a whole interval.
    await this.#pause(intervalMillis * this.#random());
    while (!this.#stop.signal.aborted) {
      if (this.#options.wanted()) await turnstile.pass(() => this.#check());
      await this.#pause(intervalMillis * (1 - JITTER + 2 * JITTER * this.#random()));
    }
  }

  async #check(): Promise<void> {
    const { url, path, apiKey, dispatcher, timeoutMillis, counts, judged } = this.#options;
    if (this.#stop.signal.aborted) return;
    const asked = { dispatcher, apiKey, timeoutMillis, bytesMax: BODY_BYTES_MAX, stop: this.#stop.signal };
    const judge = this.#judge;
    const answer = await askEngine(`${url}${path}`, asked);
    if (this.#stop.signal.aborted || judge !== this.#judge) return;
    if (answer.kind === "failed" && answer.fault === "no-files") return;
    const ok = answer.kind === "answered";
    counts[ok ? "ok" : "failed"]++;
    if (!judge.checked(ok)) return;
    counts[ok ? "healthy" : "unhealthy"]++;
    judged(ok, answer.kind === "failed" ? `GET ${path}: ${answer.detail}` : "");
  }

  #newJudge(): CheckJudge {
    const { intervalMillis, unhealthyAfter, healthyAfter } = this.#options;
    return new CheckJudge({ intervalMicros: intervalMillis * MICROS_PER_MILLI, unhealthyAfter, healthyAfter });
  }

  async #pause(millis: number): Promise<void> {
    try {
      await sleep(millis, undefined, { signal: this.#stop.signal });
    } catch {
      // Stopped; the loop looks at that itself.
    }
  }
}
