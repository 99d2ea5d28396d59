/**
 * What the boards of a tensor-parallel engine send each other: two sums over all of them a layer, after attention and
 * after the feed-forward block, each once around a ring to be summed and once to be handed out:
 *
 *   2 layers * 2 (gpus - 1) * (hop + tokens * bytesPerToken / gpus / bandwidth)
 */
export interface BoardExchange {
  readonly gpus: number;
  /** hidden * bytes of an activation. */
  readonly bytesPerToken: number;
  /** Of the link between two neighbours, in one direction. */
  readonly gigabytesPerSecond: number;
  /** From one board to the next, whatever the size. */
  readonly hopMicros: number;
}

const BYTES_PER_MICRO_OF_GIGABYTE = 1e3;

/** Microseconds that a step of so many tokens takes for the exchanges of its layers, by rings of boards. */
export function exchangeMicros(exchange: BoardExchange, layers: number, tokens: number): number {
  const { gpus, bytesPerToken, gigabytesPerSecond, hopMicros } = exchange;
  const part = (tokens * bytesPerToken) / gpus / (gigabytesPerSecond * BYTES_PER_MICRO_OF_GIGABYTE);
  return 2 * layers * 2 * (gpus - 1) * (hopMicros + part);
}

/**
 * What data-parallel ranks send each other in every layer with experts: before it each rank's tokens to all others, after
 * it the parts of their sums back, once around a ring each:
 *
 *   layers * (2 (ranks - 1) * hop + (out + back) * slowest board's time for a byte of each token that passes it)
 *
 * What passes between a board and its neighbour is all tokens but the neighbour's own. Links through the host's memory
 * are quicker while nothing comes the other way.
 */
export interface RankExchange {
  readonly ranks: number;
  /** A token's state and what its router made of the experts. */
  readonly bytesOut: number;
  readonly bytesBack: number;
  /** Of the link between two neighbours, in one direction while the other one is as busy. */
  readonly gigabytesPerSecond: number;
  /** The same while the other direction is idle; no more than that when left out. */
  readonly oneWayGigabytesPerSecond?: number;
  readonly hopMicros: number;
}

/** Microseconds of a step whose ranks have so many tokens each. */
export function rankExchangeMicros(exchange: RankExchange, layers: number, tokens: readonly number[]): number {
  const { ranks, bytesOut, bytesBack, gigabytesPerSecond: both, hopMicros } = exchange;
  const { oneWayGigabytesPerSecond: alone = both } = exchange;
  const all = tokens.reduce((sum, count) => sum + count, 0);
  let slowest = 0;
  tokens.forEach((own, rank) => {
    const [sent, got] = [all - tokens[(rank + 1) % tokens.length]!, all - own];
    const shared = Math.min(sent, got);
    slowest = Math.max(slowest, shared / both + (Math.max(sent, got) - shared) / alone);
  });
  const part = (slowest * (bytesOut + bytesBack)) / BYTES_PER_MICRO_OF_GIGABYTE;
  return layers * (2 * (ranks - 1) * hopMicros + part);
}
