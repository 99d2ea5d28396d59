/**
 * Below which that part of a standard normal variate lies, within 0.0005 (C. Hastings, 1955; formula 26.2.23 of M.
 * Abramowitz and I. A. Stegun).
 */
export function normalQuantile(part: number): number {
  const t = Math.sqrt(-2 * Math.log(Math.min(part, 1 - part)));
  const above = 2.515517 + t * (0.802853 + t * 0.010328);
  const below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308));
  return (part < 0.5 ? -1 : 1) * (t - above / below);
}
