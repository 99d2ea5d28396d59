import { nameHash, randomFor } from "#core/base/random.ts";
import { normalQuantile } from "./normal-quantile.ts";

/**
 * Standard normal values that replicas draw evenly rather than by chance, so that the middle of a few is near that of many:
 * the replica's point of Halton's sequence (1960) in that base, moved round by a draw of the seed (R. Cranley and T. N. L.
 * Patterson, 1976), through the normal distribution's quantiles. What is drawn by one name takes a prime of its own.
 */
export function spreadNormal(name: string, prime: number, seed: number, replica: number): number {
  const moved = radicalInverse(replica, prime) + randomFor(seed, nameHash(name)).next();
  return normalQuantile(Math.min(1 - EDGE, Math.max(EDGE, moved % 1)));
}

const EDGE = 1e-4;

/** Digits of a whole number in a base, behind the point in reverse. */
function radicalInverse(whole: number, base: number): number {
  let [rest, part, value] = [whole, 1 / base, 0];
  while (rest > 0) {
    value += part * (rest % base);
    rest = Math.floor(rest / base);
    part /= base;
  }
  return value;
}
