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
  decodeSequences: number;
  /** Sum of start over decodes. */
  decodeContextTokens: number;
}

export function emptyShape(): BatchShape {
  return {
    prefillSequences: 0,
    prefillTokens: 0,
    prefillContextTokens: 0,
    prefillPairsTwice: 0,
    decodeSequences: 0,
    decodeContextTokens: 0,
  };
}

export function clearShape(shape: BatchShape): void {
  shape.prefillSequences = 0;
  shape.prefillTokens = 0;
  shape.prefillContextTokens = 0;
  shape.prefillPairsTwice = 0;
  shape.decodeSequences = 0;
  shape.decodeContextTokens = 0;
}

export function addPrefill(shape: BatchShape, start: number, tokens: number): void {
  shape.prefillSequences++;
  shape.prefillTokens += tokens;
  shape.prefillContextTokens += start;
  shape.prefillPairsTwice += tokens * (2 * start + tokens - 1);
}

export function addDecode(shape: BatchShape, start: number): void {
  shape.decodeSequences++;
  shape.decodeContextTokens += start;
}
