import { nameHash } from "#core/base/random.ts";

/**
 * Chained 64-bit hashes of the full blocks of a token sequence, two 32-bit hashes per block, low then high. Equal chains
 * mean equal tokens up to and including that block under the same root, but for a collision: with k blocks alive its
 * probability is about k² / 2^65.
 *
 * Each half is murmur3's mixing step with constants of its own; the hashes cross at every block's end.
 */
export function hashBlocks(prompt: Int32Array, output: Int32Array, blockTokens: number, root: number): Int32Array {
  const total = prompt.length + output.length;
  const blocks = Math.floor(total / blockTokens);
  const hashes = new Int32Array(blocks * 2);
  let low = root;
  let high = Math.imul(root, 0x9e3779b1) ^ 0x7f4a7c15;
  let at = 0;
  for (let block = 0; block < blocks; block++) {
    for (const end = at + blockTokens; at < end; at++) {
      const token = (at < prompt.length ? prompt[at] : output[at - prompt.length]) ?? 0;
      low = step(low, token, 0xcc9e2d51, 0x1b873593);
      high = step(high, token, 0x85ebca6b, 0xc2b2ae35);
    }
    low = finish(low ^ Math.imul(high, 0x27d4eb2f));
    high = finish(high ^ Math.imul(low, 0x165667b1));
    hashes[block * 2] = low;
    hashes[block * 2 + 1] = high;
  }
  return hashes;
}

/** Root of a chain: what must be equal besides the tokens for blocks to be shared. */
export function hashRoot(model: string, cacheSalt: string): number {
  return nameHash(`${model}\u0000${cacheSalt}`) | 0;
}

/** A number for the content of a prompt, from which everything random about its answer is drawn. */
export function hashTokens(tokens: Int32Array): number {
  let hash = tokens.length;
  for (let i = 0; i < tokens.length; i++) hash = step(hash, tokens[i] ?? 0, 0xcc9e2d51, 0x1b873593);
  return finish(hash) >>> 0;
}

/** The chain of a token behind those before it: a number for a sequence, which a further token continues. */
export function chainToken(chain: number, token: number): number {
  return step(chain, token, 0xcc9e2d51, 0x1b873593);
}

function step(hash: number, token: number, first: number, second: number): number {
  let k = Math.imul(token, first);
  k = Math.imul((k << 15) | (k >>> 17), second);
  const h = hash ^ k;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
