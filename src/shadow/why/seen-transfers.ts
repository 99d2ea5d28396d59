import { median } from "#core/base/quantile.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import type { WorkloadRequests } from "#shadow/recorded/packed-workload.ts";
import { TRANSFER_DEFAULTS, type TransferOptions } from "#sim/setting/transfer-options.ts";

/** Fewer show nothing. */
const REQUESTS_MIN = 15;
const OUTPUT_TOKENS_MIN = 4;
/** Prompts of two halves must differ by so much that a time for each token shows. */
const SPREAD_MIN = 1.2;

/**
 * How fast blocks went from engines that computed prompts to those that answered, by how long first tokens took from there
 * on beyond a step of the answer: medians of the shorter half of the prompts and of the longer one. Undefined where too few
 * requests show it.
 */
export function seenTransfers(
  observed: readonly Observed[],
  workload: WorkloadRequests,
  { kvBytesPerToken }: EngineConfig,
): TransferOptions | undefined {
  const seen = [...workload].flatMap(({ promptTokens }, index) => {
    const { ok, handoverMicros, ttftMicros, e2eMicros, outputTokens } = observed[index]!;
    if (!ok || handoverMicros === undefined || !(outputTokens >= OUTPUT_TOKENS_MIN)) return [];
    const step = (e2eMicros - ttftMicros) / (outputTokens - 1);
    return Number.isFinite(step) ? [{ promptTokens, micros: Math.max(0, handoverMicros - step) }] : [];
  });
  if (seen.length < REQUESTS_MIN) return undefined;
  const inOrder = seen.toSorted((a, b) => a.promptTokens - b.promptTokens);
  const [short, long] = [inOrder.slice(0, inOrder.length >> 1), inOrder.slice(inOrder.length >> 1)].map((half) => ({
    tokens: median(half.map(({ promptTokens }) => promptTokens)),
    micros: median(half.map(({ micros }) => micros)),
  })) as [Half, Half];
  const isSpread = long.tokens >= SPREAD_MIN * short.tokens;
  const perToken = isSpread
    ? Math.max(0, long.micros - short.micros) / (long.tokens - short.tokens)
    : long.micros / Math.max(1, long.tokens);
  const latency = isSpread ? Math.max(0, short.micros - perToken * short.tokens) : 0;
  return {
    ...TRANSFER_DEFAULTS,
    latencyMicros: Math.max(TRANSFER_DEFAULTS.latencyMicros, Math.round(latency)),
    bytesPerSecond:
      perToken === 0 ? TRANSFER_DEFAULTS.bytesPerSecond : (kvBytesPerToken * MICROS_PER_SECOND) / perToken,
  };
}

interface Half {
  readonly tokens: number;
  readonly micros: number;
}
