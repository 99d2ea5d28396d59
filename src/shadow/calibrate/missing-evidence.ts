import { decodeRows, prefilledTokens } from "./decode-rows.ts";
import type { Evidence } from "./evidence.ts";
import type { Parameters } from "./parameters.ts";
import { quantile } from "#core/base/quantile.ts";

const REQUESTS_MIN = 40;
/** Least 5th to 95th percentile ratio of uncached prompt lengths, and least difference of concurrency. */
const PROMPT_RATIO_MIN = 1.5;
const CONCURRENCY_RANGE_MIN = 0.5;

/**
 * Part of the prompts' blocks that an earlier prompt had, from which unreported hits leave too much open. Below it the
 * replay's own hits stand in for them.
 */
const SHARED_PART_MAX = 0.1;

/** Why parameters cannot be identified from the first `count` requests: a line each, with the traffic that would. */
export function missingEvidence(evidence: Evidence, count: number, fixed: Partial<Parameters>): string[] {
  const rows = evidence.rows.slice(0, count);
  const answered = rows.filter(({ e2eMicros, outputTokens }) => e2eMicros > 0 && outputTokens > 0);
  const ok = rows.filter((row) => row.ok);
  if (answered.length < REQUESTS_MIN)
    return [`expected ${REQUESTS_MIN} answered requests to fit or more, got ${answered.length}; record for longer`];
  if (ok.length < REQUESTS_MIN)
    return [
      `expected times to the first token of ${REQUESTS_MIN} requests or more, got ${ok.length}: only streams show them; ` +
        `requests with "stream": true would`,
    ];
  const decodes = decodeRows(evidence, count);
  if (decodes.length < REQUESTS_MIN)
    return [
      `expected ${REQUESTS_MIN} answers of two tokens or more, got ${decodes.length}; longer answers would show what a ` +
        "decode takes",
    ];
  const reasons: string[] = [];
  const concurrency = decodes.map((row) => row.concurrency);
  const range = quantile(concurrency, 0.95) - quantile(concurrency, 0.05);
  if (range < CONCURRENCY_RANGE_MIN && fixed.perDecodeMicros === undefined && fixed.baseMicros === undefined)
    reasons.push(
      `baseMicros and perDecodeMicros: an engine always had about ${quantile(concurrency, 0.5).toFixed(1)} answers in ` +
        "progress; traffic with sometimes one and sometimes many would separate them, or --fix perDecodeMicros=N",
    );
  const unreported = ok.filter(({ cachedTokens }) => Number.isNaN(cachedTokens)).length;
  if (unreported > ok.length / 2 && sharedPart(evidence, count) > SHARED_PART_MAX)
    reasons.push(
      `perPrefillTokenMicros: prompts share prefixes and ${unreported} of ${ok.length} answers do not report cached tokens; ` +
        "vLLM with --enable-prompt-tokens-details does",
    );
  const lengths = ok.map(prefilledTokens);
  const ratio = quantile(lengths, 0.95) / quantile(lengths, 0.05);
  if (ratio < PROMPT_RATIO_MIN && fixed.perPrefillTokenMicros === undefined && fixed.delayMicros === undefined)
    reasons.push(
      `delayMicros and perPrefillTokenMicros: all prompts had about ${quantile(lengths, 0.5)} uncached tokens; prompts ` +
        "of different lengths would separate them, or --fix perPrefillTokenMicros=N",
    );
  return reasons;
}

/** Part of the first `count` prompts' blocks that were in one before. */
function sharedPart({ rows }: Evidence, count: number): number {
  const seen = new Set<number>();
  let blocks = 0;
  let shared = 0;
  for (let i = 0; i < count; i++) {
    const { hashes } = rows[i]!;
    blocks += hashes.length / 2;
    for (let word = 0; word < hashes.length; word += 2) {
      // 53 bits of the hash.
      const key = (hashes[word]! >>> 0) * 0x20_0000 + (hashes[word + 1]! >>> 11);
      if (seen.has(key)) shared++;
      else seen.add(key);
    }
  }
  return blocks === 0 ? 0 : shared / blocks;
}

/** Requests in flight at an engine below which it has little to do. */
const FEW_IN_FLIGHT = 4;

/**
 * How many requests found their engine with little to do, so that their times show more than a queue. The first ones of
 * a trace always do, and do not count.
 */
export function seenLightly({ rows }: Evidence, count: number): number {
  let light = 0;
  const ends = new Map<number, number[]>();
  const seen = new Map<number, number>();
  for (let i = 0; i < count; i++) {
    const { endpoint, arrivalAt, e2eMicros } = rows[i]!;
    const aboard = (ends.get(endpoint) ?? []).filter((end) => end > arrivalAt);
    const before = seen.get(endpoint) ?? 0;
    seen.set(endpoint, before + 1);
    if (before >= FEW_IN_FLIGHT && aboard.length < FEW_IN_FLIGHT) light++;
    if (e2eMicros > 0) aboard.push(arrivalAt + e2eMicros);
    ends.set(endpoint, aboard);
  }
  return light;
}
