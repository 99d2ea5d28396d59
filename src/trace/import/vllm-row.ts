import { mix32 } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Timed } from "./in-order.ts";
import { amountOf, type JsonRecord, parseRecord, tokenCount, wholeNumbers } from "./json-record.ts";

/** One request of a run of vLLM. Times are whole microseconds of the run's clock. */
export interface VllmRow extends Timed {
  readonly id: string;
  /** NaN where no token came. */
  readonly firstAt: number;
  readonly endAt: number;
  readonly ok: boolean;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** NaN where the engine did not report it. */
  readonly cachedTokens: number;
  /** A word per token of the prompt, equal where the tokens are; undefined where the run does not hold them. */
  readonly words: Int32Array | undefined;
}

/** How times of the engine's own clock become times of the run's. */
export interface ClockOffset {
  /** Seconds of the client's clock at which the run's begins. */
  readonly begin: number;
  /** The engine's clock minus the client's, in seconds. */
  readonly offset: number;
}

const TOKEN_ID_MAX = 2_147_483_647;

/** Whether an engine timed the requests (arrival by the client, the rest by the engine), or a client did. */
export function isEngineTimed(record: JsonRecord): boolean {
  return "arrival_time" in record && "queued_ts" in record;
}

export function isClientTimed(record: JsonRecord): boolean {
  return "send" in record && "completion_tokens" in record;
}

/** Client and engine time of one request; undefined where the line holds none. */
export function clocksOf(record: JsonRecord): { readonly arrival: number; readonly queued: number } | undefined {
  const arrival = amountOf(record, "arrival_time");
  const queued = amountOf(record, "queued_ts");
  return arrival === undefined || queued === undefined ? undefined : { arrival, queued };
}

/** A request that the engine timed, with its line of the workload; or the reason why it cannot be used. */
export function engineTimedRow(record: JsonRecord, sent: string | undefined, clock: ClockOffset): VllmRow | string {
  const clocks = clocksOf(record);
  if (clocks === undefined) return "arrival_time or queued_ts is not a time";
  const [first, last] = [amountOf(record, "first_token_ts"), amountOf(record, "last_token_ts")];
  if (first === undefined || last === undefined) return "first_token_ts or last_token_ts is not a time";
  const [prompt, output] = [tokenCount(record, "input_toks"), tokenCount(record, "output_toks")];
  if (prompt === undefined || prompt === 0) return "input_toks is not a number of tokens >= 1";
  if (output === undefined || output === 0) return "output_toks is not a number of tokens >= 1";
  if (sent === undefined) return "no line of workload.jsonl with its number";
  const text = parseRecord(sent);
  const ids = typeof text === "string" ? undefined : wholeNumbers(text["input_tok_ids"], TOKEN_ID_MAX);
  if (ids === undefined) return "its line of workload.jsonl has no list input_tok_ids";
  if (ids.length !== prompt) return "input_toks is not the number of input_tok_ids in its line of workload.jsonl";
  const micros = (seconds: number) => Math.round((seconds - clock.begin) * MICROS_PER_SECOND);
  return checked({
    id: idOf(record["request_id"]),
    time: micros(clocks.arrival),
    firstAt: micros(first - clock.offset),
    endAt: micros(last - clock.offset),
    ok: true,
    promptTokens: prompt,
    outputTokens: output,
    cachedTokens: NaN,
    words: Int32Array.from(ids),
  });
}

/** A request that its client timed, in seconds since the run began; or the reason why it cannot be used. One with
 * `aborted_at` was taken back by its client. */
export function clientTimedRow(record: JsonRecord): VllmRow | string {
  const send = amountOf(record, "send");
  if (send === undefined) return "send is not a time";
  const [prompt, reported] = [tokenCount(record, "prompt_tokens"), tokenCount(record, "completion_tokens")];
  // One that was taken back before its first token has kept the engine busy all the same.
  const taken = amountOf(record, "aborted_at") !== undefined;
  const output = taken ? Math.max(1, reported ?? 0) : reported;
  if (prompt === undefined || prompt === 0) return "prompt_tokens is not a number of tokens >= 1";
  if (output === undefined || output === 0) return "completion_tokens is not a number of tokens >= 1";
  const end = lastChunk(record["chunks"]) ?? amountOf(record, "done");
  if (end === undefined) return "neither chunks nor done show when it ended";
  const micros = (seconds: number) => Math.round(seconds * MICROS_PER_SECOND);
  return checked({
    id: idOf(record["id"]),
    time: micros(send),
    firstAt: micros(amountOf(record, "first_chunk") ?? NaN),
    endAt: micros(end),
    ok: record["status"] === 200 && record["finish_reason"] !== "abort" && !taken,
    promptTokens: prompt,
    outputTokens: output,
    cachedTokens: tokenCount(record, "cached_tokens") ?? NaN,
    words: recipeWords(record, prompt),
  });
}

function checked(row: VllmRow): VllmRow | string {
  if (row.firstAt < row.time || row.endAt < (row.firstAt || row.time)) return "times that run backwards";
  return row;
}

function idOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** Time of the last of `[[time, tokens so far], ...]`. */
function lastChunk(chunks: unknown): number | undefined {
  const last: unknown = Array.isArray(chunks) ? chunks.at(-1) : undefined;
  const time: unknown = Array.isArray(last) ? last[0] : undefined;
  return typeof time === "number" && time >= 0 ? time : undefined;
}

/** Prompts made of the first `prefix_len` tokens of a group's text and then of a text of their own, by their names. */
function recipeWords(record: JsonRecord, promptTokens: number): Int32Array | undefined {
  const [group, unique] = [amountOf(record, "group"), amountOf(record, "unique_id")];
  const prefix = tokenCount(record, "prefix_len");
  if (group === undefined || unique === undefined || prefix === undefined) return undefined;
  const words = new Int32Array(promptTokens);
  const [ofGroup, ofOwn] = [mix32(2 * group), mix32(2 * unique + 1)];
  for (let i = 0; i < promptTokens; i++) words[i] = i < prefix ? mix32(i ^ ofGroup) : mix32((i - prefix) ^ ofOwn);
  return words;
}
