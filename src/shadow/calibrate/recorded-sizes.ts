import type { EngineConfig } from "#engine/config.ts";
import type { RecordedRun } from "../recorded-run.ts";

/** Cached counts needed before their common divisor is believed. */
const COUNTS_MIN = 8;

/** Sizes of the engines as far as a trace tells them. */
export interface RecordedSizes {
  readonly sizes: Partial<Pick<EngineConfig, "blockTokens" | "kvBlocks" | "sequencesMax">>;
  /** Where each of them comes from, and what the endpoints disagree about. */
  readonly notes: readonly string[];
}

/**
 * The block size is what all counts of cached tokens are multiples of, else the router's; the cache is what endpoints
 * reported, the smallest where they differ.
 */
export function recordedSizes({ observed, endpoints, header }: RecordedRun, blockTokens?: number): RecordedSizes {
  const notes: string[] = [];
  const cached = observed.map((one) => one.cachedTokens).filter((count) => count > 0);
  const divisor = cached.reduce(gcd, 0);
  let block = blockTokens;
  if (block === undefined && cached.length >= COUNTS_MIN && divisor > 1) {
    block = divisor;
    notes.push(`blockTokens ${block}: all ${cached.length} counts of cached tokens are its multiples`);
  } else if (block === undefined && Number.isInteger(header.router.blockTokens)) {
    block = header.router.blockTokens;
    notes.push(`blockTokens ${block}: the router's, since too few cached tokens were reported to tell`);
  }
  const capacities = told(endpoints.map(({ kvCapacityTokens }) => kvCapacityTokens));
  const batches = told(endpoints.map(({ concurrencyMax }) => concurrencyMax));
  if (new Set(capacities).size > 1 || new Set(batches).size > 1)
    notes.push("the endpoints are of different sizes: calibrate them one by one with --endpoint");
  const capacity = Math.min(...capacities);
  const sizes = {
    ...(block === undefined ? {} : { blockTokens: block }),
    // As vLLM counts, with the block that is reserved.
    ...(block === undefined || capacities.length === 0 ? {} : { kvBlocks: Math.floor(capacity / block) + 1 }),
    ...(batches.length === 0 ? {} : { sequencesMax: Math.min(...batches) }),
  };
  if (sizes.kvBlocks !== undefined)
    notes.push(`kvBlocks ${sizes.kvBlocks}: ${capacity} tokens, as the endpoints reported`);
  return { sizes, notes };
}

function told(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
