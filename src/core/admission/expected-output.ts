import { tokensOfEach } from "../latency/latency-model.ts";

/** The latest outputs count most. */
const OUTPUTS_AVERAGED = 64;

/**
 * Mean length of the latest answers, which a tenant is charged with for each that its request asks for as that goes on. Were
 * it charged as they are made, it would get many turns before the first of them counts, and then none for as long.
 */
export class ExpectedOutput {
  tokens = 0;

  /** A request of so many answers had so many tokens together. */
  ended(outputTokens: number, sequences: number): void {
    this.tokens += (tokensOfEach(outputTokens, sequences) - this.tokens) / OUTPUTS_AVERAGED;
  }
}
