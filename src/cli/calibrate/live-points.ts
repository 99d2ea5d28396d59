import { setTimeout } from "node:timers/promises";
import { randomFor } from "#core/base/random.ts";
import { MICROS_PER_MILLI, MILLIS_PER_SECOND } from "#core/base/units.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { roundSpeeds, type TimedPoint } from "#shadow/calibrate/steady-chance.ts";
import type { SteadyPoint } from "#shadow/calibrate/steady-fit.ts";
import { pauseMicros, type ProtocolPoint, steadyProtocol } from "#shadow/calibrate/steady-protocol.ts";

/** What an engine states about itself. */
export interface LiveEngine {
  readonly model: string;
  readonly modelTokensMax: number | undefined;
  readonly blockTokens: number | undefined;
  readonly kvBlocks: number | undefined;
}

export interface LiveOptions {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly sequencesMax: number;
  readonly modelTokensMax: number;
  /** Tokens that its KV cache holds; undefined where it does not say. */
  readonly cacheTokens: number | undefined;
  readonly model: string;
  /** Of all points together. */
  readonly secondsMax: number;
  readonly seed: number;
  readonly progress: (line: string) => void;
}

/** Ids that every model's vocabulary has, without the special ones at its beginning. */
const TOKEN_MIN = 5;
const TOKEN_COUNT = 240;
const STATE_MILLIS_MAX = 10_000;
const PAGE_BYTES_MAX = 16_777_216;
const EVENT_BYTES_MAX = 1_048_576;

/** Reads /v1/models and /metrics of an engine. Throws CommandFailure where it does not answer as vLLM does. */
export async function liveEngine(url: string, apiKey: string | undefined): Promise<LiveEngine> {
  const models: unknown = JSON.parse(await pageOf(`${url}/v1/models`, apiKey));
  const [first] = (models as { readonly data?: readonly Readonly<Record<string, unknown>>[] }).data ?? [];
  if (typeof first?.["id"] !== "string") throw new CommandFailure(`${url}/v1/models: expected a list of models`);
  const longest = first["max_model_len"];
  const page = await pageOf(`${url}/metrics`, apiKey).catch(() => "");
  const [info = ""] = /^vllm:cache_config_info\{.*$/m.exec(page) ?? [];
  const label = (name: string) => {
    const value = Number(new RegExp(`${name}="(\\d+)"`).exec(info)?.[1] ?? NaN);
    return value > 0 ? value : undefined;
  };
  return {
    model: first["id"],
    modelTokensMax: typeof longest === "number" && longest > 0 ? longest : undefined,
    blockTokens: label("block_size"),
    kvBlocks: label("num_gpu_blocks"),
  };
}

/** Sent to the engine and kept nowhere. */
function bearer(apiKey: string | undefined): Record<string, string> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}

async function pageOf(url: string, apiKey: string | undefined): Promise<string> {
  try {
    const answer = await fetch(url, { headers: bearer(apiKey), signal: AbortSignal.timeout(STATE_MILLIS_MAX) });
    const text = await answer.text();
    if (!answer.ok || text.length > PAGE_BYTES_MAX) throw new Error(`status ${answer.status}`);
    return text;
  } catch (error) {
    throw new CommandFailure(
      `${url}: expected an answer, got ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

/**
 * Each point so often, a while apart: a machine is slower now and then, by a tenth from one minute to the next. More often
 * where the rounds do not agree by then, as long as there is time.
 */
const ROUNDS_MIN = 4;
const ROUNDS_MAX = 12;
/** Rounds agree whose mean speed is known so well, as a logarithm. */
const AGREED = 0.01;

/**
 * Measures the points of the protocol one after another, and again, every other time from the last to the first, so that
 * a speed that rises or falls all the while moves all points alike. The engine should serve nobody else meanwhile. A
 * request of each length goes before, uncounted, since a first one compiles kernels. Throws CommandFailure.
 */
export async function livePoints(options: LiveOptions): Promise<TimedPoint[]> {
  const protocol = steadyProtocol(options);
  if (protocol === undefined)
    throw new CommandFailure(
      `--live: expected an engine that takes 512 tokens and 2 requests at once, got ${options.modelTokensMax} tokens, ` +
        `${options.sequencesMax} requests and a cache of ${options.cacheTokens ?? "unstated"} tokens`,
    );
  const until = performance.now() + options.secondsMax * MILLIS_PER_SECOND;
  const signal = AbortSignal.timeout(options.secondsMax * MILLIS_PER_SECOND);
  const prompts = promptsOf(options.seed);
  const points: TimedPoint[] = [];
  try {
    for (const point of protocol) await asked(options, prompts(point.promptTokens), 2, signal);
    const beganAt = performance.now();
    const nowMicros = () => Math.round(MICROS_PER_MILLI * (performance.now() - beganAt));
    for (let round = 0; round < ROUNDS_MAX; round++) {
      for (const point of round % 2 === 0 ? protocol : protocol.toReversed()) {
        const { users, requests, promptTokens } = point;
        options.progress(`${round + 1}: ${users} at once, ${requests} requests of ${promptTokens} tokens`);
        const beganMicros = nowMicros();
        const times = await measured(options, point, prompts, signal);
        points.push({ ...times, round, beganMicros, endedMicros: nowMicros() });
      }
      const each = (performance.now() - beganAt) / (round + 1);
      if (performance.now() + each > until) break;
      if (round + 1 >= ROUNDS_MIN && roundSpeeds(points).error < AGREED) break;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    const whole = points.length - (points.length % protocol.length);
    if (whole > 0) return points.slice(0, whole);
    throw new CommandFailure(
      `--live: expected ${protocol.length} points within ${options.secondsMax} s, got ${points.length}: --live-seconds gives more`,
    );
  }
  return points;
}

async function measured(
  options: LiveOptions,
  point: ProtocolPoint,
  prompts: (tokens: number) => number[],
  signal: AbortSignal,
): Promise<SteadyPoint> {
  const { users, requests, promptTokens, outputTokens } = point;
  const times: Answered[] = [];
  let begun = 0;
  const user = async () => {
    while (begun < requests) {
      const pause = pauseMicros(point, begun++);
      if (pause > 0) await setTimeout(pause / MICROS_PER_MILLI, undefined, { signal });
      times.push(await asked(options, prompts(promptTokens), outputTokens, signal));
    }
  };
  await Promise.all(Array.from({ length: users }, user));
  const mean = (of: (one: Answered) => number) => times.reduce((sum, one) => sum + of(one), 0) / times.length;
  return {
    ...point,
    outputTokens: Math.round(mean(({ tokens }) => tokens)),
    ttftMicros: MICROS_PER_MILLI * mean(({ firstMillis }) => firstMillis),
    tpotMicros:
      MICROS_PER_MILLI *
      mean(({ firstMillis, lastMillis, tokens }) => (lastMillis - firstMillis) / Math.max(1, tokens - 1)),
  };
}

interface Answered {
  readonly firstMillis: number;
  readonly lastMillis: number;
  readonly tokens: number;
}

/** One streamed completion of a prompt of token ids. */
async function asked(
  { url, model, apiKey }: LiveOptions,
  prompt: readonly number[],
  tokens: number,
  signal: AbortSignal,
): Promise<Answered> {
  const sentAt = performance.now();
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(apiKey) },
    body: JSON.stringify({
      model,
      prompt,
      max_tokens: tokens,
      min_tokens: tokens,
      ignore_eos: true,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
    signal,
  });
  if (!answer.ok || answer.body === null) {
    const text = (await answer.text()).slice(0, 300);
    throw new CommandFailure(`${url}/v1/completions: expected a stream, got status ${answer.status}: ${text}`);
  }
  let firstMillis = NaN;
  let lastMillis = NaN;
  let completed = 0;
  let rest = "";
  const decoder = new TextDecoder();
  for await (const bytes of answer.body as AsyncIterable<Uint8Array>) {
    const at = performance.now() - sentAt;
    rest += decoder.decode(bytes, { stream: true });
    if (rest.length > EVENT_BYTES_MAX)
      throw new CommandFailure(`${url}: expected events of at most ${EVENT_BYTES_MAX} bytes`);
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const event = JSON.parse(line.slice("data: ".length)) as {
        readonly choices?: readonly unknown[];
        readonly usage?: { readonly completion_tokens?: number } | null;
      };
      if ((event.choices?.length ?? 0) > 0) {
        if (Number.isNaN(firstMillis)) firstMillis = at;
        lastMillis = at;
      }
      completed = event.usage?.completion_tokens ?? completed;
    }
  }
  if (Number.isNaN(firstMillis))
    throw new CommandFailure(`${url}/v1/completions: expected tokens, got an empty stream`);
  return { firstMillis, lastMillis, tokens: completed > 0 ? completed : tokens };
}

/** Prompts that share no block with one another. */
function promptsOf(seed: number): (tokens: number) => number[] {
  let number = 0;
  return (tokens) => {
    const random = randomFor(seed, number++);
    return Array.from({ length: tokens }, () => TOKEN_MIN + Math.floor(TOKEN_COUNT * random.next()));
  };
}
