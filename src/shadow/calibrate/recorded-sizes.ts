import type { EngineConfig } from "#engine/config.ts";
import type { TraceEngine } from "#trace/codec/record.ts";
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
export function recordedSizes(run: RecordedRun, blockTokens?: number, fallback?: number): RecordedSizes {
  const { engine = {} } = run.header;
  const notes: string[] = [];
  const block = blockTokens ?? engine.blockTokens ?? blockTokensOf(run, fallback, notes);
  const ranks = run.endpoints.map(({ dataParallel = 1 }) => Math.max(1, dataParallel));
  const dataParallel = engine.dataParallel ?? Math.max(1, ...ranks);
  if (dataParallel > 1 && engine.dataParallel === undefined)
    notes.push(`dataParallel ${dataParallel}: as many ranks showed on the metrics page of an endpoint`);
  // Endpoints report the sums of their ranks.
  const capacities = usable(
    run.endpoints.map(({ kvCapacityTokens }, i) => kvCapacityTokens && kvCapacityTokens / ranks[i]!),
  );
  const batches = usable(run.endpoints.map(({ concurrencyMax }, i) => concurrencyMax && concurrencyMax / ranks[i]!));
  if ([capacities, batches, ranks].some((sizes) => new Set(sizes).size > 1))
    notes.push("the endpoints are of different sizes: calibrate them one by one with --endpoint");
  const capacity = Math.min(...capacities);
  const kvBlocks = block === undefined ? undefined : kvBlocksOf(capacity, block);
  const sizes = {
    ...(block !== undefined && { blockTokens: block }),
    ...(kvBlocks !== undefined && { kvBlocks }),
    ...(batches.length > 0 && { sequencesMax: Math.floor(Math.min(...batches)) }),
    ...(dataParallel > 1 && { dataParallel }),
    ...engine,
    ...(blockTokens !== undefined && { blockTokens }),
  };
  if (sizes.kvBlocks !== undefined && engine.kvBlocks === undefined)
    notes.push(
      `kvBlocks ${sizes.kvBlocks}: ${capacity} tokens, as the endpoints reported${dataParallel > 1 ? " of a rank" : ""}`,
    );
  return { sizes, notes };
}

/** The block size where neither a caller nor the trace states it; undefined where nothing shows it. */
function blockTokensOf({ observed, header }: RecordedRun, fallback: number | undefined, notes: string[]) {
  const cached = [...new Set(observed.map((one) => one.cachedTokens).filter((count) => count > 0))];
  const divisor = cached.reduce(gcd, 0);
  if (cached.length >= COUNTS_MIN && divisor > 1) {
    notes.push(`blockTokens ${divisor}: all ${cached.length} different counts of cached tokens are its multiples`);
    return divisor;
  }
  const own = header.router.blockTokens;
  if (fallback !== undefined || !Number.isInteger(own)) return fallback;
  notes.push(`blockTokens ${own}: the router's, since too few cached tokens were reported to show another`);
  return own;
}

/** As vLLM counts, with the block that is reserved; undefined where not one has room. */
function kvBlocksOf(capacityTokens: number, blockTokens: number): number | undefined {
  if (!(capacityTokens >= blockTokens && capacityTokens < Infinity)) return undefined;
  return Math.min(KV_BLOCKS_MAX, Math.floor(capacityTokens / blockTokens) + 1);
}

/** An endpoint that has room for nothing does not know its size: it would serve nothing, and simulations no end. */
function usable(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined).filter((value) => value >= 1);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}
