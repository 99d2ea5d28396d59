/** Tokens of vLLM's largest CUDA graph by default, where max_num_seqs is 256 or more. */
export const GRAPH_TOKENS_MAX = 512;

/**
 * Tokens that a step computes when CUDA graphs exist for some numbers of them up to `max`: it is padded to the next one.
 * vLLM makes graphs for 1, 2, 4, every 8 up to 256 and every 16 beyond (cudagraph_capture_sizes); a greater step, or any
 * with `max` 0, runs without a graph and is not padded.
 */
export function graphTokens(tokens: number, max: number): number {
  if (tokens > max) return tokens;
  const every = tokens > 256 ? 16 : tokens > 4 ? 8 : tokens > 2 ? 4 : 1;
  return Math.min(max, Math.ceil(tokens / every) * every);
}
