import type { EngineConfig } from "#engine/config.ts";
import type { TraceEngine } from "#trace/record.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";

/** More of them have no room in a simulation's memory. */
const KV_BLOCKS_MAX = 100_000_000;
/** Different counts of cached tokens needed before their common divisor is believed: one prefix has only one. */
const COUNTS_MIN = 8;

/** Sizes of the engines as far as a trace shows them. */
export interface RecordedSizes {
  readonly sizes: Partial<Pick<EngineConfig, keyof TraceEngine>>;
  /** Where each of them comes from, and what the endpoints disagree about. */
  readonly notes: readonly string[];
}

/**
 * What the trace states of its engines holds. Beyond that the block size is what all counts of cached tokens are
 * multiples of, else `fallback`, else the router's; the cache is what endpoints reported, the smallest where they differ.
 */
export function recordedSizes(
  { observed, endpoints, header }: RecordedRun,
  blockTokens?: number,
  fallback?: number,
): RecordedSizes {
  const notes: string[] = [];
  const cached = [...new Set(observed.map((one) => one.cachedTokens).filter((count) => count > 0))];
  const divisor = cached.reduce(gcd, 0);
  const { engine = {} } = header;
  let block = blockTokens ?? engine.blockTokens;
  if (block === undefined && cached.length >= COUNTS_MIN && divisor > 1) {
    block = divisor;
    notes.push(`blockTokens ${block}: all ${cached.length} different counts of cached tokens are its multiples`);
  } else if (block === undefined && fallback !== undefined) {
    block = fallback;
  } else if (block === undefined && Number.isInteger(header.router.blockTokens)) {
    block = header.router.blockTokens;
    notes.push(`blockTokens ${block}: the router's, since too few cached tokens were reported to show another`);
  }
  const ranks = endpoints.map(({ dataParallel = 1 }) => dataParallel);
  const dataParallel = engine.dataParallel ?? Math.max(1, ...ranks);
  const ofOneRank = endpoints.map(({ kvCapacityTokens, concurrencyMax }, i) => ({
    kvCapacityTokens: kvCapacityTokens && kvCapacityTokens / Math.max(1, ranks[i]!),
    concurrencyMax: concurrencyMax && concurrencyMax / Math.max(1, ranks[i]!),
  }));
  if (dataParallel > 1 && engine.dataParallel === undefined)
    notes.push(`dataParallel ${dataParallel}: as many ranks showed on the metrics page of an endpoint`);
  const capacities = usable(ofOneRank.map(({ kvCapacityTokens }) => kvCapacityTokens));
  const batches = usable(ofOneRank.map(({ concurrencyMax }) => concurrencyMax));
  if (new Set(capacities).size > 1 || new Set(batches).size > 1 || new Set(ranks).size > 1)
    notes.push("the endpoints are of different sizes: calibrate them one by one with --endpoint");
  const capacity = Math.min(...capacities);
  const sizes = {
    ...(block === undefined ? {} : { blockTokens: block }),
    // As vLLM counts, with the block that is reserved.
    ...(block === undefined || !(capacity >= block && capacity < Infinity)
      ? {}
      : { kvBlocks: Math.min(KV_BLOCKS_MAX, Math.floor(capacity / block) + 1) }),
    ...(batches.length === 0 ? {} : { sequencesMax: Math.floor(Math.min(...batches)) }),
    ...(dataParallel > 1 ? { dataParallel } : {}),
    ...engine,
    ...(blockTokens === undefined ? {} : { blockTokens }),
  };
  if (sizes.kvBlocks !== undefined && engine.kvBlocks === undefined)
    notes.push(
      `kvBlocks ${sizes.kvBlocks}: ${capacity} tokens, as the endpoints reported${dataParallel > 1 ? " of a rank" : ""}`,
    );
  return { sizes, notes };
}

/** An endpoint that has room for nothing does not know its size: it would serve nothing, and simulations no end. */
function usable(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined).filter((value) => value >= 1);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
