import { mix32 } from "#core/base/random.ts";

/**
 * What a made-up pooling model makes of a prompt: numbers that depend on its tokens alone, alike for prompts that share
 * tokens. Its length (L2) is 1.
 */
export function pooledVector(prompt: Int32Array, dimensions: number): Float64Array {
  const sums = new Float64Array(dimensions);
  for (const token of prompt) {
    const seed = mix32(token);
    for (let i = 0; i < dimensions; i++) sums[i]! += mix32(seed ^ Math.imul(i + 1, GOLDEN)) / 2 ** 31 - 1;
  }
  const length = Math.hypot(...sums) || 1;
  return sums.map((value) => Math.fround(value / length));
}

/** Shares of classes that add up to 1 (softmax); of one class the share that it has (sigmoid). */
export function classShares(prompt: Int32Array, classes: number): Float64Array {
  const values = pooledVector(prompt, Math.max(classes, DIMENSIONS_MIN));
  if (classes === 1) return Float64Array.of(Math.fround(1 / (1 + Math.exp(-SPREAD * values[0]!))));
  const powers = values.subarray(0, classes).map((value) => Math.exp(SPREAD * value));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => Math.fround(power / total));
}

/** Cosine of two vectors of length 1. */
export function similarity(a: Float64Array, b: Float64Array): number {
  return Math.fround(a.reduce((sum, value, i) => sum + value * b[i]!, 0));
}

const GOLDEN = 0x9e3779b1;
/** With fewer, two vectors of length 1 hardly differ. */
const DIMENSIONS_MIN = 8;
const SPREAD = 4;
