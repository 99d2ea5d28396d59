import { randomFor } from "#core/base/random.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";

/** What an engine states about itself. */
export interface LiveEngine {
  readonly model: string;
  readonly modelTokensMax: number | undefined;
  readonly blockTokens: number | undefined;
  readonly kvBlocks: number | undefined;
}

export interface LiveAddress {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly model: string;
}

/** An engine to be measured by prompts, with their limits. */
export interface MeasuredEngine extends LiveAddress {
  readonly modelTokensMax: number;
  /** Tokens that its KV cache holds; undefined where it does not say. */
  readonly cacheTokens: number | undefined;
  /** Of the prompts. */
  readonly seed: number;
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

/** When a streamed answer came, counted from when it was asked for. */
export interface Answered {
  /** On the clock of this process. */
  readonly askedMillis: number;
  readonly firstMillis: number;
  readonly lastMillis: number;
  readonly tokens: number;
}

/** One streamed completion of a prompt of token ids. `onTokens` is called at each event with tokens, as it comes. */
export async function timedAnswer(
  { url, model, apiKey }: LiveAddress,
  prompt: readonly number[],
  tokens: number,
  signal: AbortSignal,
  onTokens: () => void = () => {},
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
        onTokens();
      }
      completed = event.usage?.completion_tokens ?? completed;
    }
  }
  if (Number.isNaN(firstMillis))
    throw new CommandFailure(`${url}/v1/completions: expected tokens, got an empty stream`);
  return { askedMillis: sentAt, firstMillis, lastMillis, tokens: completed > 0 ? completed : tokens };
}

/** Prompts that share no block with one another. */
export function promptsOf(seed: number): (tokens: number) => number[] {
  let number = 0;
  return (tokens) => {
    const random = randomFor(seed, number++);
    return Array.from({ length: tokens }, () => TOKEN_MIN + Math.floor(TOKEN_COUNT * random.next()));
  };
}
