/**
 * Pairs of a new token of a prompt and one before it, which attention computes: newTokens * (promptTokens - newTokens /
 * 2).
 */
export function attentionPairs(promptTokens: number, newTokens: number): number {
  return newTokens * (promptTokens - newTokens / 2);
}
