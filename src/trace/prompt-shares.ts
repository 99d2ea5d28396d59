/** So many tokens as prompts have them that were taken to have these. */
export function promptShares(tokens: number, estimates: readonly number[]): number[] {
  const sum = estimates.reduce((all, one) => all + one, 0);
  return estimates.map((one) => Math.max(1, Math.round(sum > 0 ? (tokens * one) / sum : tokens / estimates.length)));
}
