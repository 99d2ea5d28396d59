/**
 * Logarithm and exponential from +, -, * and / alone, which IEEE 754 rounds alike everywhere: a generated workload has
 * the same bytes on every machine. Relative error below 1e-14, which a test holds against Math.
 */
const LN2_HIGH = 6.9314718036912381649e-1;
const LN2_LOW = 1.90821492927058770002e-10;
const SQRT_HALF = 0.7071067811865476;
const SERIES_TERMS = 13;

/** Natural logarithm of x > 0: x = m 2^e with m near 1, ln m = 2 artanh((m - 1) / (m + 1)). */
export function ln(x: number): number {
  let mantissa = x;
  let exponent = 0;
  for (; mantissa >= 2 * SQRT_HALF; exponent++) mantissa /= 2;
  for (; mantissa < SQRT_HALF; exponent--) mantissa *= 2;
  const s = (mantissa - 1) / (mantissa + 1);
  let sum = 0;
  for (let odd = 2 * SERIES_TERMS - 1; odd >= 1; odd -= 2) sum = sum * s * s + 1 / odd;
  return exponent * LN2_HIGH + (2 * s * sum + exponent * LN2_LOW);
}

/** e^x for |x| <= 700: x = k ln 2 + r, Taylor series of e^r. */
export function exp(x: number): number {
  const k = Math.round(x / (LN2_HIGH + LN2_LOW));
  const r = x - k * LN2_HIGH - k * LN2_LOW;
  let sum = 1;
  for (let term = SERIES_TERMS + 2; term >= 1; term--) sum = 1 + (sum * r) / term;
  for (let i = 0; i < k; i++) sum *= 2;
  for (let i = 0; i > k; i--) sum /= 2;
  return sum;
}

/** base^power for base > 0. */
export function portablePower(base: number, exponent: number): number {
  return exponent === 0 ? 1 : exp(exponent * ln(base));
}
