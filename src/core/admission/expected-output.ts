/** The latest outputs count most. */
const OUTPUTS_AVERAGED = 64;

/**
 * Mean of the latest outputs, which a tenant is charged with as its request goes on. Were it charged as they are made, it
 * would get many turns before the first of them counts, and then none for as long.
 */
export class ExpectedOutput {
  tokens = 0;

  ended(outputTokens: number): void {
    this.tokens += (outputTokens - this.tokens) / OUTPUTS_AVERAGED;
  }
}
