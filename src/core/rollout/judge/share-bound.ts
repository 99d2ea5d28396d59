/**
 * What a share of so many independent draws shows, at any time that it is looked at: the likelihood of what was seen,
 * averaged over other shares, over that of a share of `against`. While the true share is `against` or the draws are
 * fewer this is a martingale, which exceeds 1 / level with probability at most `level` (J. Ville, 1939; H. Robbins,
 * "Statistical methods related to the law of the iterated logarithm", 1970). Half of the average is over all shares alike,
 * half over shares as rare as `against`: of one in a hundred those around one in fifty are likelier than those around a
 * half, and found with fewer draws. Natural logarithm. `count` need not be whole.
 */
export function shareEvidence(count: number, share: number, against: number): number {
  const [hits, misses] = [share * count, (1 - share) * count];
  const known = termOf(hits, against) + termOf(misses, 1 - against);
  const even = betaMean(hits, misses, 1);
  const weight = 1 / (RARE_TIMES * Math.min(against, 1 - against));
  if (!(weight > 1 && weight < Infinity)) return even - known;
  const rare = against < 0.5 ? betaMean(hits, misses, weight) : betaMean(misses, hits, weight);
  const most = Math.max(even, rare);
  return most + Math.log((Math.exp(even - most) + Math.exp(rare - most)) / 2) - known;
}

/** Of how many times `against` rare shares are on average. */
const RARE_TIMES = 2;

/** The likelihood averaged over shares of a beta distribution with parameters 1 and `weight`, a logarithm. */
function betaMean(hits: number, misses: number, weight: number): number {
  return logGamma(hits + 1) + logGamma(misses + weight) - logGamma(hits + misses + 1 + weight) + Math.log(weight);
}

/** The least share of so many draws that shows the true one to be above `against`; above 1 where none does. */
export function shareNeeded(count: number, against: number, evidence: number): number {
  if (!(count > 0) || shareEvidence(count, 1, against) < evidence) return Infinity;
  return boundary(against, 1, (share) => shareEvidence(count, share, against) >= evidence);
}

/** What the true share is at least, with that evidence against any lower one; 0 where nothing is known. */
export function shareAtLeast(count: number, share: number, evidence: number): number {
  if (!(count > 0) || !(share > 0)) return 0;
  return boundary(share, 0, (against) => shareEvidence(count, share, against) >= evidence);
}

const HALVINGS = 40;

/** Between a value of which it does not hold and one of which it does: the nearest to the former of which it holds. */
function boundary(not: number, holds: number, of: (value: number) => boolean): number {
  let [without, having] = [not, holds];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (without + having) / 2;
    if (of(middle)) having = middle;
    else without = middle;
  }
  return having;
}

function termOf(count: number, share: number): number {
  if (count === 0) return 0;
  return share <= 0 ? -Infinity : count * Math.log(share);
}

const SHIFT = 8;

/** Stirling's series for an argument that the recurrence made large; of at least 1. */
function logGamma(x: number): number {
  let [shifted, product] = [x, 1];
  while (shifted < SHIFT) product *= shifted++;
  const inverse = 1 / shifted;
  const square = inverse * inverse;
  const series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)));
  return (shifted - 0.5) * Math.log(shifted) - shifted + 0.5 * Math.log(2 * Math.PI) + series - Math.log(product);
}
