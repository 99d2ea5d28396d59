/** Stops on a bug. What may happen in operation is a value, never an assertion. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${invariant}`);
}
