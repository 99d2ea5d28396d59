import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { EmulatedSequence } from "../generation/sequence.ts";
import { familyHead, labelText, promFloat } from "./exposition.ts";
import { Histogram } from "./histogram.ts";

/** Whether the engine sleeps, and how deeply; all three are 0 in a pause alone. */
export interface SleepState {
  readonly awake: 0 | 1;
  readonly weightsOffloaded: 0 | 1;
  readonly discardAll: 0 | 1;
}

/** The engine's state at the moment of a scrape. */
export interface EngineState {
  readonly running: number;
  readonly waiting: number;
  /** Blocks in use over usable blocks, in [0, 1]. */
  readonly kvUsage: number;
  readonly preemptions: number;
  readonly sleep: SleepState;
}

const TTFT_SECONDS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const TOKEN_SECONDS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST_SECONDS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const STEP_TOKENS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
const CHOICES = [1, 2, 5, 10, 20];
const PREEMPTIONS = [1, 2, 3, 4, 5, 10, 20];

const FINISHED = ["stop", "length", "abort", "error", "repetition"] as const;
const REJECTED = ["max_num_queued_reqs", "max_num_queued_tokens"] as const;
const TIERS = ["device", "host", "p2p", "disk", "external_unspecified"];
const MFU = "(for Model Flops Utilization calculations).";
const EXTERNAL = "from KV connector cross-instance cache sharing, in terms of number of";
const WAITING_BY_REASON =
  "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals vllm:num_requests_waiting.";
const SLEEP =
  "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.";
const CACHED_BY_SOURCE =
  "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.";

/** The `vllm:` families of one engine, in the page's order. Times are wall-clock seconds. */
export class EngineMetrics {
  readonly #labels: Readonly<Record<string, string>>;
  readonly #model: string;
  readonly #createdAt = Date.now() / MILLIS_PER_SECOND;
  readonly #finished = new Map<string, number>();
  readonly #rejected = new Map<string, number>();
  readonly #histograms: Histograms;
  #queriedTokens = 0;
  #hitTokens = 0;
  #promptTokens = 0;
  #promptHitTokens = 0;
  #generatedTokens = 0;

  constructor(model: string, contextTokens: number) {
    this.#labels = { engine: "0", model_name: model };
    this.#model = model;
    this.#histograms = newHistograms(this.#labels, contextTokens);
  }

  admitted(sequence: EmulatedSequence): void {
    if (!sequence.cacheRead) return;
    this.#queriedTokens += sequence.prompt.length;
    this.#hitTokens += sequence.cachedTokens;
  }

  firstToken(sequence: EmulatedSequence, seconds: number): void {
    this.#promptTokens += sequence.prompt.length;
    this.#promptHitTokens += sequence.cachedTokens;
    if (!isPooled(sequence)) this.#generatedTokens++;
    this.#histograms.ttft.observe(seconds);
  }

  /** Tokens after the first, and the mean time between them. */
  laterTokens(count: number, secondsEach: number): void {
    this.#generatedTokens += count;
    this.#histograms.interToken.observe(secondsEach, count);
  }

  /** A step that computed this many prompt tokens and answers' tokens. */
  step(tokens: number): void {
    this.#histograms.step.observe(tokens);
  }

  rejected(reason: (typeof REJECTED)[number]): void {
    this.#rejected.set(reason, (this.#rejected.get(reason) ?? 0) + 1);
  }

  /** Counts a sequence that came to its end. `toSeconds` turns engine time into wall-clock seconds. */
  finished(sequence: EmulatedSequence, reason: (typeof FINISHED)[number], toSeconds: (micros: number) => number): void {
    this.#finished.set(reason, (this.#finished.get(reason) ?? 0) + 1);
    const { arrivedAt, scheduledAt, firstTokenAt, lastTokenAt, produced, prompt } = sequence;
    const h = this.#histograms;
    h.promptTokens.observe(prompt.length);
    h.generationTokens.observe(produced);
    if (!isPooled(sequence)) h.maxTokens.observe(sequence.maxTokens);
    h.endToEnd.observe(toSeconds(lastTokenAt - arrivedAt));
    h.queue.observe(toSeconds(scheduledAt - arrivedAt));
    h.inference.observe(toSeconds(lastTokenAt - scheduledAt));
    h.prefill.observe(toSeconds(firstTokenAt - scheduledAt));
    h.decode.observe(toSeconds(lastTokenAt - firstTokenAt));
    h.perToken.observe(produced > 1 ? toSeconds(lastTokenAt - firstTokenAt) / (produced - 1) : 0);
    h.preemptions.observe(sequence.preemptions);
    h.prefillComputed.observe(prompt.length - sequence.cachedTokens);
  }

  /** Counts a prompt all of whose choices came to their ends. */
  groupFinished(n: number, producedMax: number): void {
    this.#histograms.n.observe(n);
    this.#histograms.maxGenerationTokens.observe(producedMax);
  }

  render(state: EngineState): string {
    return this.#gauges(state) + this.#counters(state) + this.#requestCounters() + this.#renderHistograms();
  }

  #gauges(state: EngineState): string {
    const { running, waiting, kvUsage, sleep } = state;
    return [
      this.#counter("estimated_flops_per_gpu", `Estimated number of floating point operations per GPU ${MFU}`, 0),
      this.#counter("estimated_read_bytes_per_gpu", `Estimated number of bytes read from memory per GPU ${MFU}`, 0),
      this.#counter("estimated_write_bytes_per_gpu", `Estimated number of bytes written to memory per GPU ${MFU}`, 0),
      this.#gauge("num_requests_running", "Number of requests in model execution batches.", [[{}, running]]),
      this.#gauge("num_requests_waiting", "Number of requests waiting to be processed.", [[{}, waiting]]),
      this.#gauge("num_requests_waiting_by_reason", WAITING_BY_REASON, [
        [{ reason: "capacity" }, waiting],
        [{ reason: "deferred" }, 0],
      ]),
      this.#gauge("engine_sleep_state", SLEEP, [
        [{ sleep_state: "awake" }, sleep.awake],
        [{ sleep_state: "weights_offloaded" }, sleep.weightsOffloaded],
        [{ sleep_state: "discard_all" }, sleep.discardAll],
      ]),
      this.#gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", [[{}, kvUsage]]),
    ].join("");
  }

  #counters(state: EngineState): string {
    const hits = this.#hitTokens;
    const sources: [Record<string, string>, number][] = [
      [{ source: "local_compute" }, this.#promptTokens - this.#promptHitTokens],
      [{ source: "local_cache_hit" }, this.#promptHitTokens],
      [{ source: "external_kv_transfer" }, 0],
    ];
    const tiers = TIERS.map((source): [Record<string, string>, number] => [{ source }, source === "device" ? hits : 0]);
    return [
      this.#counter(
        "prefix_cache_queries",
        "Prefix cache queries, in terms of number of queried tokens.",
        this.#queriedTokens,
      ),
      this.#counter("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", hits),
      this.#counter("external_prefix_cache_queries", `External prefix cache queries ${EXTERNAL} queried tokens.`, 0),
      this.#counter("external_prefix_cache_hits", `External prefix cache hits ${EXTERNAL} cached tokens.`, 0),
      this.#counter("mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", 0),
      this.#counter("mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", 0),
      this.#counter("num_preemptions", "Cumulative number of preemption from the engine.", state.preemptions),
      this.#counter("prompt_tokens", "Number of prefill tokens processed.", this.#promptTokens),
      this.#labelled("prompt_tokens_by_source", "Number of prompt tokens by source.", this.#labels, sources),
      this.#counter(
        "prompt_tokens_cached",
        "Number of cached prompt tokens (local + external).",
        this.#promptHitTokens,
      ),
      this.#labelled("prompt_tokens_cached_by_source", CACHED_BY_SOURCE, this.#labels, tiers),
      this.#counter("generation_tokens", "Number of generation tokens processed.", this.#generatedTokens),
    ].join("");
  }

  #requestCounters(): string {
    const success = FINISHED.map((reason): [Record<string, string>, number] => [
      { finished_reason: reason },
      this.#finished.get(reason) ?? 0,
    ]);
    const rejections = REJECTED.map((reason): [Record<string, string>, number] => [
      { reason },
      this.#rejected.get(reason) ?? 0,
    ]);
    const model = { model_name: this.#model };
    const rejected = "Number of admission attempts rejected by a queue limit, by reason.";
    return [
      this.#labelled("request_success", "Count of successfully processed requests.", this.#labels, success),
      this.#labelled("admission_rejections", rejected, model, rejections),
    ].join("");
  }

  #renderHistograms(): string {
    return HISTOGRAMS.map(([key, name, help]) => {
      const created = `vllm:${name}_created${labelText(this.#labels)} ${promFloat(this.#createdAt)}\n`;
      const head = familyHead(`vllm:${name}`, "histogram", help);
      return head + this.#histograms[key].render() + familyHead(`vllm:${name}_created`, "gauge", help) + created;
    }).join("");
  }

  #gauge(name: string, help: string, samples: readonly (readonly [Record<string, string>, number])[]): string {
    const lines = samples.map(
      ([labels, value]) => `vllm:${name}${labelText({ ...this.#labels, ...labels })} ${promFloat(value)}\n`,
    );
    return [familyHead(`vllm:${name}`, "gauge", help), ...lines].join("");
  }

  #counter(name: string, help: string, value: number): string {
    return this.#labelled(name, help, this.#labels, [[{}, value]]);
  }

  /** A counter family and the gauge family of its creation times. */
  #labelled(
    name: string,
    help: string,
    common: Readonly<Record<string, string>>,
    samples: readonly (readonly [Record<string, string>, number])[],
  ): string {
    const totals = samples.map(
      ([labels, value]) => `vllm:${name}_total${labelText({ ...common, ...labels })} ${promFloat(value)}\n`,
    );
    const created = samples.map(
      ([labels]) => `vllm:${name}_created${labelText({ ...common, ...labels })} ${promFloat(this.#createdAt)}\n`,
    );
    const head = familyHead(`vllm:${name}_total`, "counter", help);
    return [head, ...totals, familyHead(`vllm:${name}_created`, "gauge", help), ...created].join("");
  }
}

/** Nothing is generated. */
function isPooled({ plan }: EmulatedSequence): boolean {
  return plan.tokens.length === 0;
}

/** Key, name and help of each histogram, in the page's order. */
const HISTOGRAMS = [
  ["promptTokens", "request_prompt_tokens", "Number of prefill tokens processed."],
  ["generationTokens", "request_generation_tokens", "Number of generation tokens processed."],
  ["step", "iteration_tokens_total", "Histogram of number of tokens per engine_step."],
  [
    "maxGenerationTokens",
    "request_max_num_generation_tokens",
    "Histogram of maximum number of requested generation tokens.",
  ],
  ["n", "request_params_n", "Histogram of the n request parameter."],
  ["maxTokens", "request_params_max_tokens", "Histogram of the max_tokens request parameter."],
  ["ttft", "time_to_first_token_seconds", "Histogram of time to first token in seconds."],
  ["interToken", "inter_token_latency_seconds", "Histogram of inter-token latency in seconds."],
  ["perToken", "request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request."],
  ["endToEnd", "e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."],
  ["queue", "request_queue_time_seconds", "Histogram of time spent in WAITING phase for request."],
  ["inference", "request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request."],
  ["prefill", "request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request."],
  ["decode", "request_decode_time_seconds", "Histogram of time spent in DECODE phase for request."],
  ["preemptions", "request_num_preemptions", "Histogram of the number of times a request was preempted."],
  [
    "prefillComputed",
    "request_prefill_kv_computed_tokens",
    "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
  ],
] as const;

type HistogramKey = (typeof HISTOGRAMS)[number][0];
type Histograms = Readonly<Record<HistogramKey, Histogram>>;

function newHistograms(labels: Readonly<Record<string, string>>, contextTokens: number): Histograms {
  const tokens = lengthBounds(contextTokens);
  const bounds: Readonly<Record<HistogramKey, readonly number[]>> = {
    promptTokens: tokens,
    generationTokens: tokens,
    step: STEP_TOKENS,
    maxGenerationTokens: tokens,
    n: CHOICES,
    maxTokens: tokens,
    ttft: TTFT_SECONDS,
    interToken: TOKEN_SECONDS,
    perToken: TOKEN_SECONDS,
    endToEnd: REQUEST_SECONDS,
    queue: REQUEST_SECONDS,
    inference: REQUEST_SECONDS,
    prefill: REQUEST_SECONDS,
    decode: REQUEST_SECONDS,
    preemptions: PREEMPTIONS,
    prefillComputed: tokens,
  };
  const made = HISTOGRAMS.map(([key, name]) => [key, new Histogram(`vllm:${name}`, labels, bounds[key])]);
  return Object.fromEntries(made) as Histograms;
}

/** 1, 2, 5, 10, 20, 50, ... up to the longest context. */
function lengthBounds(contextTokens: number): readonly number[] {
  const bounds: number[] = [];
  for (let power = 1; power <= contextTokens; power *= 10) {
    for (const factor of [1, 2, 5]) if (power * factor <= contextTokens) bounds.push(power * factor);
  }
  return bounds;
}
