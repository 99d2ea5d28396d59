import { mix32 } from "#core/base/random.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/** Tokens that one hash id of the format stands for. */
const HASH_TOKENS = 512;

/**
 * A request as a line of Mooncake's JSONL, or the reason why it has none. Hash ids are 53-bit numbers made from the
 * identity of the last block that lies wholly inside; tokens beyond all known blocks get an id of this request's own.
 */
export function mooncakeLine(request: WorkloadRequest): string | { readonly refused: string } {
  if (request.thinkMicros !== undefined && request.arrivalMicros === 0)
    return { refused: "follow-up turn without an arrival time" };
  const { arrivalMicros, promptTokens, outputTokens, session, turn } = request;
  return `${JSON.stringify({
    timestamp: arrivalMicros / MICROS_PER_MILLI,
    input_length: promptTokens,
    output_length: outputTokens,
    hash_ids: hashIds(request),
    ...(session !== "" && { session_id: session, turn_id: turn }),
  })}\n`;
}

/** One id per 512 tokens, the last of them partial. */
function hashIds({ blockIds, blockTokens, promptTokens, index }: WorkloadRequest): number[] {
  const ids: number[] = [];
  const known = blockIds === undefined ? 0 : blockIds.length;
  const count = Math.ceil(promptTokens / HASH_TOKENS);
  if (blockTokens === HASH_TOKENS && blockIds !== undefined && known === count) return [...blockIds];
  for (let i = 0; i < count; i++) {
    const begin = i * HASH_TOKENS;
    const end = Math.min(promptTokens, begin + HASH_TOKENS);
    const block = Math.min(known, Math.floor(end / blockTokens)) - 1;
    // The next block may be partial and still be what the prompt ends with.
    const partial = end === promptTokens && known * blockTokens > end && (block + 1) * blockTokens < end;
    const last = partial ? block + 1 : block;
    const isCovered = (known + 1) * blockTokens > end && last >= 0 && (last + 1) * blockTokens > begin;
    ids.push(isCovered ? mixed(blockIds?.[last] ?? 0, i, 0) : mixed(index, i, 1));
  }
  return ids;
}

/** 53 bits of an id, a position and a kind of identity. */
function mixed(id: number, position: number, kind: number): number {
  const low = mix32((id | 0) ^ mix32(2 * position + kind));
  const high = mix32(Math.floor(id / 0x1_0000_0000) ^ low);
  return (high & 0x1f_ffff) * 0x1_0000_0000 + low;
}
