import { Agent } from "undici";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import { inTurns, STAYS } from "../base/loop-turn.ts";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { askEngine } from "../endpoints/engine-request.ts";
import { readExposition } from "../scrape/exposition.ts";
import type { EngineConnections } from "../tls/connections.ts";
import type { CountedEnds } from "./explain-counts.ts";

/** What an engine has counted of requests that ended, and between which times its page was made. */
export interface EndsSeen extends CountedEnds {
  readonly askedAt: Micros;
  readonly readAt: Micros;
}

type Figure = keyof CountedEnds;

/** vLLM's names, then SGLang's, which counts tokens of requests as they end. */
const NAMES: ReadonlyMap<string, Figure> = new Map([
  ["vllm:e2e_request_latency_seconds_count", "ends"],
  ["vllm:e2e_request_latency_seconds_sum", "micros"],
  ["vllm:request_prompt_tokens_sum", "promptTokens"],
  ["vllm:request_generation_tokens_sum", "outputTokens"],
  ["sglang:e2e_request_latency_seconds_count", "ends"],
  ["sglang:e2e_request_latency_seconds_sum", "micros"],
  ["sglang:prompt_tokens_total", "promptTokens"],
  ["sglang:generation_tokens_total", "outputTokens"],
]);
const WANTED = new Set(NAMES.keys());

/** Pages of engines, asked for what they count of requests that end. */
export class EngineCounts {
  readonly #agent: Agent;
  readonly #stop = new AbortController();
  readonly #timeoutMillis: number;
  readonly #pageBytesMax: number;
  /** Pages that could not be had. */
  failed = 0;
  asked = 0;

  constructor(connections: EngineConnections, timeoutMillis: number, pageBytesMax: number) {
    this.#agent = new Agent({ connections: 1, connect: connections.connector(timeoutMillis) });
    this.#timeoutMillis = timeoutMillis;
    this.#pageBytesMax = pageBytesMax;
  }

  /** By data-parallel rank as the page labels it, "" where it does not; undefined where there is no page. */
  async of({ url, apiKey }: EndpointEntry): Promise<ReadonlyMap<string, EndsSeen> | undefined> {
    this.asked++;
    const askedAt = nowMicros();
    const answer = await askEngine(`${url}/metrics`, {
      dispatcher: this.#agent,
      apiKey,
      timeoutMillis: this.#timeoutMillis,
      bytesMax: this.#pageBytesMax,
      stop: this.#stop.signal,
    });
    if (answer.kind === "failed") {
      this.failed++;
      return undefined;
    }
    const readAt = nowMicros();
    const ranks = new Map<string, Record<Figure, number>>();
    const reading = readExposition(answer.text, WANTED, (name, labels, value) => {
      const figure = NAMES.get(name)!;
      const rank = labels.get("engine") ?? labels.get("dp_rank") ?? "";
      let figures = ranks.get(rank);
      if (figures === undefined) ranks.set(rank, (figures = { ...NONE }));
      const own = figure === "micros" ? value * MICROS_PER_SECOND : value;
      figures[figure] = (Number.isNaN(figures[figure]) ? 0 : figures[figure]) + own;
    });
    await inTurns(reading, STAYS);
    return new Map([...ranks].map(([rank, figures]) => [rank, { ...figures, askedAt, readAt }]));
  }

  stop(): Promise<void> {
    this.#stop.abort();
    return this.#agent.destroy();
  }
}

const NONE: CountedEnds = { ends: NaN, promptTokens: NaN, outputTokens: NaN, micros: NaN };

/** What was counted between two looks; NaN stays NaN. A counter that fell was begun anew. */
export function between(before: EndsSeen, now: EndsSeen): CountedEnds | undefined {
  const ends = now.ends - before.ends;
  if (!(ends >= 0)) return undefined;
  return {
    ends,
    promptTokens: now.promptTokens - before.promptTokens,
    outputTokens: now.outputTokens - before.outputTokens,
    micros: now.micros - before.micros,
  };
}
