import { randomFor } from "#core/random.ts";
import type { Micros } from "#core/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

/** Tokens of a block: llm-d's index of prefixes knows none below 64, so that engines, llm-d and gnomon have the same. */
export const BLOCK_TOKENS = 64;
const SYSTEMS = 6;
const SYSTEM_BLOCKS = 8;
const TURN_BLOCKS = 2;
const TURNS_MAX = 8;
/** Ids that the emulator's tokenizer has. */
const [ID_MIN, ID_RANGE] = [300, 16_000];

/** A prompt of whole blocks, as token ids, and when it is sent. */
export interface Arrival {
  readonly id: string;
  readonly at: Micros;
  readonly tokens: readonly number[];
  /** One content identity a block, what came before included. */
  readonly blockIds: Float64Array;
}

/** Turns of conversations over a few system prompts, as a Poisson stream of so many a second. */
export function drawArrivals(count: number, ratePerSecond: number, seed: number): Arrival[] {
  const random = randomFor(seed, 1);
  const ids = new Map<string, number>();
  const block = (): number[] => Array.from({ length: BLOCK_TOKENS }, () => ID_MIN + random.below(ID_RANGE));
  const blocks = (n: number): number[][] => Array.from({ length: n }, block);
  const systems = Array.from({ length: SYSTEMS }, () => blocks(SYSTEM_BLOCKS));
  const open: number[][][] = [];
  let at = 0;
  return Array.from({ length: count }, (_, i) => {
    at += Math.round((-Math.log(1 - random.below(2 ** 30) / 2 ** 30) * 1e6) / ratePerSecond);
    const place = random.below(open.length + 2);
    const known = open[place];
    const prompt = [...(known ?? systems[random.below(SYSTEMS)]!), ...blocks(TURN_BLOCKS)];
    const ended = prompt.length >= SYSTEM_BLOCKS + TURNS_MAX * TURN_BLOCKS;
    if (known === undefined) open.push(prompt);
    else if (ended) open.splice(place, 1);
    else open[place] = prompt;
    return { id: `r${i}`, at, tokens: prompt.flat(), blockIds: identities(prompt, ids) };
  });
}

/** Equal ids for blocks that are equal with all before them. */
function identities(prompt: readonly (readonly number[])[], ids: Map<string, number>): Float64Array {
  let parent = 0;
  return Float64Array.from(prompt, (tokens) => {
    const key = `${parent} ${tokens.join(" ")}`;
    parent = ids.get(key) ?? ids.size + 1;
    ids.set(key, parent);
    return parent;
  });
}

/** The same arrivals for the simulator. */
export function asWorkload(arrivals: readonly Arrival[], outputTokens: number): WorkloadRequest[] {
  return arrivals.map(({ at, tokens, blockIds }, index) => ({
    ...LENGTHS_ONLY,
    index,
    arrivalMicros: at,
    promptTokens: tokens.length,
    outputTokens,
    blockIds,
    blockTokens: BLOCK_TOKENS,
  }));
}
