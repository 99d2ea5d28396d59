/** Token ids that the post-processor puts around a text, where a client's request asks for special tokens. */
export interface Surround {
  readonly before: Int32Array;
  readonly behind: Int32Array;
}

/** Read off one text encoded both ways. */
export function surroundOf(plain: readonly number[], processed: readonly number[]): Surround | undefined {
  for (let at = 0; at + plain.length <= processed.length; at++) {
    if (plain.every((id, i) => id === processed[at + i])) {
      return {
        before: Int32Array.from(processed.slice(0, at)),
        behind: Int32Array.from(processed.slice(at + plain.length)),
      };
    }
  }
  return undefined;
}
