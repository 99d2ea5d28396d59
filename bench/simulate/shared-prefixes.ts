/** Prompts of a shared prefix of 1,024 tokens (32 of them) and 512 +- 128 of their own, answers of 128 +- 64. */
export function sharedPrefixes(conversations: number, ratePerSecond: number): string {
  return `
conversations: ${conversations}
arrivals: { process: constant, ratePerSecond: ${ratePerSecond} }
groups:
  - name: shared
    prefixes: 32
    prefixTokens: 1024
    userTokens: { distribution: normal, mean: 512, stddev: 128, min: 2, max: 7000 }
    outputTokens: { distribution: normal, mean: 128, stddev: 64, min: 2, max: 512 }
`;
}
