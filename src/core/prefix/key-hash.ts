/** Bucket number of a block hash, before masking. Lanes are hashes already, but a trace may bring small numbers. */
export function keyHash(low: number, high: number): number {
  const mixed = Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
