/**
 * What the boards of a tensor-parallel engine send each other: two sums over all of them a layer, after attention and
 * after the feed-forward block, each once around a ring to be summed and once to be handed out:
 *
 *   2 layers * 2 (gpus - 1) * (hop + tokens * bytesPerToken / gpus / bandwidth)
 */
export interface Exchange {
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
export function exchangeMicros(exchange: Exchange, layers: number, tokens: number): number {
  const { gpus, bytesPerToken, gigabytesPerSecond, hopMicros } = exchange;
  const part = (tokens * bytesPerToken) / gpus / (gigabytesPerSecond * BYTES_PER_MICRO_OF_GIGABYTE);
  return 2 * layers * 2 * (gpus - 1) * (hopMicros + part);
}
