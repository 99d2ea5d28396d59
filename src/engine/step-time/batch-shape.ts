/**
 * What a step computes, in sums that are exact integers, so that a step time is the same whether the engine counted
 * request by request or advanced many decodes together.
 *
 * A prefill computes `n` tokens whose first has `start` tokens before it; a decode computes one token with `start`
 * before it.
 */
export interface BatchShape {
  prefillSequences: number;
  /** Sum of n over prefills. */
  prefillTokens: number;
  /** Sum of start over prefills. */
  prefillContextTokens: number;
  /** Sum of n * (2 * start + n - 1) over prefills: twice the number of (token, earlier token) pairs. */
  prefillPairsTwice: number;
  /** Sum of n * (2 * whole + n) over prefills, whole being all tokens of the sequence that there are to prefill. */
  prefillWholeTwice: number;
  decodeSequences: number;
  /** Sum of start over decodes. */
  decodeContextTokens: number;
  /** The greatest start of a decode; 0 without decodes. */
  decodeContextMaxTokens: number;
}

/** The shape of a batch of nothing. */
export function emptyShape(): BatchShape {
  return {
    prefillSequences: 0,
    prefillTokens: 0,
    prefillContextTokens: 0,
    prefillPairsTwice: 0,
    prefillWholeTwice: 0,
    decodeSequences: 0,
    decodeContextTokens: 0,
    decodeContextMaxTokens: 0,
  };
}

/** Makes it the shape of a batch of nothing. */
export function clearShape(shape: BatchShape): void {
  shape.prefillSequences = 0;
  shape.prefillTokens = 0;
  shape.prefillContextTokens = 0;
  shape.prefillPairsTwice = 0;
  shape.prefillWholeTwice = 0;
  shape.decodeSequences = 0;
  shape.decodeContextTokens = 0;
  shape.decodeContextMaxTokens = 0;
}

/** Adds `tokens` tokens of a prompt behind `start` computed ones; the prompt is `whole` tokens long. */
export function addPrefill(shape: BatchShape, start: number, tokens: number, whole: number = start + tokens): void {
  shape.prefillSequences++;
  shape.prefillTokens += tokens;
  shape.prefillContextTokens += start;
  shape.prefillPairsTwice += tokens * (2 * start + tokens - 1);
  shape.prefillWholeTwice += tokens * (2 * whole + tokens);
}

/** Adds one output token behind `start` tokens of context. */
export function addDecode(shape: BatchShape, start: number): void {
  shape.decodeSequences++;
  shape.decodeContextTokens += start;
  if (start > shape.decodeContextMaxTokens) shape.decodeContextMaxTokens = start;
}
