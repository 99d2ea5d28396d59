import { MICROS_PER_SECOND } from "#core/base/units.ts";
import {
  amountOf,
  isRecord,
  type JsonRecord,
  MOMENT_RANGE,
  momentOf,
  tokenCount,
  wholeNumbers,
} from "./json-record.ts";
import { LOCAL_IDS_MAX } from "./block-id.ts";

/** One model call of a recorded session. Times are seconds from the start of its session or sub-agent. */
export interface WekaCall {
  readonly kind: "call";
  readonly startSeconds: number;
  /** How long the recorded service took; undefined where it was not recorded. */
  readonly serviceSeconds: number | undefined;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly hashIds: readonly number[];
  readonly model: string;
}

/** A sub-agent's conversation, which runs beside its parent. */
export interface WekaSubagent {
  readonly kind: "subagent";
  readonly name: string;
  readonly type: string;
  readonly launchSeconds: number;
  /** When the parent got its result; undefined where the parent did not wait for it. */
  readonly endSeconds: number | undefined;
  readonly toolTokens: number;
  readonly systemTokens: number;
  /** Unparsed calls. */
  readonly requests: readonly unknown[];
}

/**
 * Reads one entry of a session's `requests`, or reports why it cannot.
 *
 * A finished sub-agent (`duration_ms` present) is written down when it ends: its `t` is the end, and it began
 * `duration_ms` before. An "async_launched" one is written down at its launch, and nobody waits for it.
 */
export function parseWekaEntry(entry: unknown): WekaCall | WekaSubagent | string {
  if (!isRecord(entry)) return "request is not a JSON object";
  const at = momentOf(entry, "t", MICROS_PER_SECOND);
  if (at === undefined) return `t is not a number of seconds ${MOMENT_RANGE}`;
  return entry["type"] === "subagent" ? subagent(entry, at) : call(entry, at);
}

function call(entry: JsonRecord, startSeconds: number): WekaCall | string {
  const promptTokens = tokenCount(entry, "in");
  if (promptTokens === undefined || promptTokens === 0) return "in is not a number of tokens >= 1";
  const outputTokens = tokenCount(entry, "out");
  if (outputTokens === undefined) return "out is not a number of tokens >= 0";
  const hashIds = wholeNumbers(entry["hash_ids"], LOCAL_IDS_MAX - 1);
  if (hashIds === undefined) return "hash_ids is not a list of whole numbers below 2^26";
  const serviceSeconds = amountOf(entry, "api_time");
  const model = typeof entry["model"] === "string" ? entry["model"] : "";
  return { kind: "call", startSeconds, serviceSeconds, promptTokens, outputTokens, hashIds, model };
}

function subagent(entry: JsonRecord, at: number): WekaSubagent | string {
  const requests = entry["requests"];
  if (!Array.isArray(requests)) return "sub-agent without a list of requests";
  const durationMillis = amountOf(entry, "duration_ms");
  return {
    kind: "subagent",
    name: typeof entry["agent_id"] === "string" ? entry["agent_id"] : `at-${at}`,
    type: typeof entry["subagent_type"] === "string" ? entry["subagent_type"] : "",
    launchSeconds: durationMillis === undefined ? at : Math.max(0, at - durationMillis / 1_000),
    endSeconds: durationMillis === undefined ? undefined : at,
    toolTokens: tokenCount(entry, "tool_tokens") ?? 0,
    systemTokens: tokenCount(entry, "system_tokens") ?? 0,
    requests,
  };
}
