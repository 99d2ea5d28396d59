import { mix32 } from "#core/base/random.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/** Characters that readers of the format take for a token. */
const TOKEN_CHARS = 4;
const WORD_CHARS = 8;

/** What of a trace LMCache's lines have no place for. */
export const LMCACHE_LOSSES =
  "prompts and answers are made up, of 4 characters a token, and share what the trace's blocks share; a turn comes after its " +
  "think time, without the time that the one before took, and tenants, classes, models and sub-agents are not written";

/**
 * A workload as lines of LMCache's agent traces, `{"timestamp": us, "input", "output", "session_id"}`, in order of time.
 * Holds the workload. A request of no conversation is one of its own. Where the trace has prompts they are written as they
 * are; where it has blocks alone, a text is made of each, the same wherever the block is the same.
 */
export async function lmcacheLines(requests: AsyncIterable<WorkloadRequest>): Promise<string[]> {
  const rows: { readonly time: number; readonly request: WorkloadRequest }[] = [];
  const last = new Map<string, number>();
  for await (const request of requests) {
    const { session, thinkMicros, arrivalMicros } = request;
    const before = session === "" ? undefined : last.get(session);
    const time = before === undefined ? arrivalMicros : Math.max(arrivalMicros, before + (thinkMicros ?? 0));
    if (session !== "") last.set(session, time);
    rows.push({ time, request });
  }
  rows.sort((a, b) => a.time - b.time || a.request.index - b.request.index);
  return rows.map(({ time, request }) => lineOf(time, request));
}

function lineOf(timestamp: number, request: WorkloadRequest): string {
  const { index, session, outputTokens } = request;
  const row = {
    timestamp,
    input: request.text ?? promptOf(request),
    output: textOf(mix32(index), 1, outputTokens * TOKEN_CHARS),
    session_id: session === "" ? `request_${index}` : session,
  };
  return `${JSON.stringify(row)}\n`;
}

function promptOf({ blockIds, blockTokens, promptTokens, index }: WorkloadRequest): string {
  const chars = promptTokens * TOKEN_CHARS;
  const parts: string[] = [];
  let written = 0;
  for (let i = 0; i < (blockIds?.length ?? 0) && written < chars; i++) {
    const id = blockIds![i]!;
    parts.push(textOf(id | 0, Math.floor(id / 0x1_0000_0000), blockTokens * TOKEN_CHARS));
    written += blockTokens * TOKEN_CHARS;
  }
  if (written < chars) parts.push(textOf(index, -1, chars - written));
  return parts.join("").slice(0, chars);
}

/** Words of a block, by the two halves of what it is. */
function textOf(low: number, high: number, chars: number): string {
  let text = "";
  for (let word = mix32(low ^ mix32(high)); text.length < chars; word = mix32(word ^ low))
    text += `${word
      .toString(36)
      .padStart(WORD_CHARS - 1, "0")
      .slice(1 - WORD_CHARS)} `;
  return text.slice(0, chars);
}
