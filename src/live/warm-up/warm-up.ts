import { setImmediate as nextTurn } from "node:timers/promises";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Micros } from "#core/base/units.ts";
import { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { Intake } from "../base/intake.ts";
import { joinMadeUp, MADE_UP_MODEL } from "./made-up-endpoint.ts";

export interface WarmUpOptions {
  /**
   * Around a router of its own, with the live one's profiles, index and listeners of the same kinds; thrown away
   * afterwards, so that nothing of it is ever seen.
   */
  readonly intake: Intake;
  readonly profiles: readonly string[];
  readonly blockTokens: number;
  /** The model's name is made up; so are the endpoints. */
  readonly endpoints?: number;
  readonly requestsPerShape?: number;
  readonly budgetMillis?: number;
  /** More of the request path, called once per made-up request with a text of its size. */
  readonly also?: (text: string) => unknown;
}

export interface WarmUpReport {
  readonly requests: number;
  readonly millis: number;
  /** False when the time ran out first. */
  readonly complete: boolean;
}

/** Prompt lengths, in tokens, and the share of them that earlier requests sent too. */
const SHAPES = [
  { promptTokens: 200, shared: 0.5 },
  { promptTokens: 2_000, shared: 0.8 },
  { promptTokens: 8_000, shared: 0.9 },
  { promptTokens: 32_000, shared: 0.95 },
] as const;

const BYTES_PER_TOKEN = 4;
/** Requests between two looks at the clock, after which other work gets its turn. */
const BATCH = 16;

/**
 * Runs made-up requests through the decision before the gateway reports ready, so that the first real ones meet compiled
 * code. It ends after a number of requests or when its time is over. Measured with 8 endpoints: without it the first 100
 * decisions took 42 us at the median and 410 at p90 (the worst 7.7 ms), after it 16 and 55 (0.35 ms), and as little as
 * ever from the 100th on; it takes 0.15 s.
 */
export async function warmUp(options: WarmUpOptions): Promise<WarmUpReport> {
  const { intake, endpoints = 8, requestsPerShape = 1_000, budgetMillis = 1_000 } = options;
  const start = performance.now();
  const traffic = new MadeUpTraffic(intake, options, endpoints);
  const total = requestsPerShape * SHAPES.length;
  while (traffic.requests < total && performance.now() - start < budgetMillis) {
    for (let i = 0; i < BATCH && traffic.requests < total; i++) await traffic.one();
    await nextTurn();
  }
  traffic.end();
  return { requests: traffic.requests, millis: performance.now() - start, complete: traffic.requests === total };
}

/** Requests that overlap, fail, are retried and end, on a clock of their own. */
class MadeUpTraffic {
  requests = 0;
  readonly #intake: Intake;
  readonly #options: WarmUpOptions;
  readonly #random: Random = randomFor(1, 0);
  readonly #ids: readonly EndpointId[];
  readonly #open: string[] = [];
  #at: Micros = 0;

  constructor(intake: Intake, options: WarmUpOptions, endpoints: number) {
    this.#intake = intake;
    this.#options = options;
    this.#ids = Array.from({ length: endpoints }, (_, i) => `warm-up-${i}`);
    const directory = new EndpointDirectory();
    for (const id of this.#ids) joinMadeUp(id, this.#at, intake, directory);
  }

  async one(): Promise<void> {
    const number = this.requests++;
    const shape = SHAPES[number % SHAPES.length]!;
    this.#observe(number);
    await this.#options.also?.(textOf(number, shape.promptTokens * BYTES_PER_TOKEN));
    const request = this.#request(number, shape.promptTokens, shape.shared);
    this.#intake.accept({ kind: "request-arrived", at: this.#tick(), request });
    if (number % 10 === 9) this.#retry(request.id);
    this.#intake.accept({ kind: "first-token", at: this.#tick(), requestId: request.id });
    this.#open.push(request.id);
    if (this.#open.length > 16) this.#finish(this.#open.shift()!);
  }

  end(): void {
    for (const id of this.#open) this.#finish(id);
  }

  #tick(): Micros {
    this.#at += 1 + this.#random.below(2_000);
    return this.#at;
  }

  #observe(number: number): void {
    const endpoint = this.#ids[number % this.#ids.length]!;
    const load = {
      running: this.#random.below(16),
      waiting: this.#random.below(8),
      kvUtilization: this.#random.next(),
      prefixHitRatio: this.#random.next(),
      ttftMicros: 100_000,
      tpotMicros: 20_000,
      tokensPerSecond: 1_000,
      adaptersRunning: undefined,
      adaptersWaiting: undefined,
      adaptersMax: undefined,
      watts: undefined,
      smUtilization: undefined,
    };
    this.#intake.accept({ kind: "load-observed", at: this.#tick(), endpoint, load });
  }

  #retry(requestId: string): void {
    this.#intake.accept({ kind: "attempt-failed", at: this.#tick(), requestId, fault: "connect" });
    this.#intake.accept({ kind: "request-retried", at: this.#tick(), requestId });
  }

  #finish(requestId: string): void {
    this.#intake.accept({ kind: "progress", at: this.#tick(), requestId, outputTokens: 64 });
    const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: 100 };
    this.#intake.accept({ kind: "request-finished", at: this.#tick(), requestId, outcome: "ok", ...counts });
  }

  #request(number: number, promptTokens: number, shared: number): RouteRequest {
    const { blockTokens, profiles } = this.#options;
    const length = Math.floor(promptTokens / blockTokens);
    const hashes = new Int32Array(2 * length);
    const common = Math.floor(length * shared);
    const conversation = randomFor(2, number % 7);
    for (let i = 0; i < hashes.length; i++) {
      hashes[i] = (i < 2 * common ? conversation : this.#random).below(0x1_0000_0000) | 0;
    }
    return {
      id: `warm-up-${number}`,
      model: MADE_UP_MODEL,
      tenant: `tenant-${number % 5}`,
      session: `session-${number % 50}`,
      sloClass: "",
      priority: 0,
      promptTokens,
      promptTokensExact: false,
      outputTokensMax: 256,
      sequences: 1,
      blocks: { hashes, length, blockTokens },
      profile: profiles[number % Math.max(1, profiles.length)] ?? "",
    };
  }
}

function textOf(number: number, bytes: number): string {
  const word = `warm up request ${number} with some words, `;
  return word.repeat(Math.ceil(bytes / word.length)).slice(0, bytes);
}
