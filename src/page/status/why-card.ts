/** Why answers of the last minutes were slow and cached tokens lost, as plain JSON. Times in milliseconds. */
export interface WhyCard {
  /** When it was found, in milliseconds since 1970. */
  readonly at: number;
  readonly requests: number;
  /** Profile in force, and the one that it is held against. */
  readonly inForce: string;
  readonly against: string;
  /** What stands out, a sentence each: of slow answers, of lost tokens. */
  readonly sentences: readonly string[];
  /** Together the mean time to the first token; 90 % intervals where there are any. */
  readonly parts: readonly WhyPart[];
  /** Together all prompt tokens. */
  readonly tokens: readonly WhyTokens[];
}

export interface WhyPart {
  readonly part: string;
  readonly millis: number;
  readonly low?: number;
  readonly high?: number;
  readonly meaning: string;
}

export interface WhyTokens {
  /** new, hit, or what they were lost to. */
  readonly what: string;
  readonly tokens: number;
  readonly meaning: string;
}
