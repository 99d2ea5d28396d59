import type { Random } from "#core/base/random.ts";

/**
 * A draw of mean 1 from the exponential distribution by comparisons alone (J. von Neumann, 1951: Various techniques
 * used in connection with random digits). No logarithm, so the same value on every machine.
 *
 * A run u1 > u2 > ... descends until u(n) >= u(n-1); with n - 1 odd, u1 is the fraction, else one more whole unit.
 */
export function exponential(random: Random): number {
  for (let whole = 0; ; whole++) {
    const first = random.next();
    let previous = first;
    let length = 1;
    for (let next = random.next(); next < previous; next = random.next()) {
      previous = next;
      length++;
    }
    if (length % 2 === 1) return whole + first;
  }
}
