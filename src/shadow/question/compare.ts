/** What is compared. Times in microseconds; the hit ratio and goodput in [0, 1]. */
export const COMPARED = [
  "ttftMean",
  "ttftP50",
  "ttftP99",
  "tpotMean",
  "tpotP99",
  "e2eMean",
  "e2eP50",
  "e2eP99",
  "hitRatio",
  "goodput",
] as const;
export type Compared = (typeof COMPARED)[number];

/** Shares, of which more is better. */
export const SHARES: ReadonlySet<Compared> = new Set(["hitRatio", "goodput"]);

/** One policy's results, as far as they were given. */
export interface PolicyFigures {
  readonly policy: string;
  readonly figures: Readonly<Partial<Record<Compared, number>>>;
}

export interface Gap {
  readonly policy: string;
  readonly live: number;
  readonly simulated: number;
  /** |simulated - live| */
  readonly absolute: number;
  /** simulated / live - 1; undefined where live is 0. */
  readonly relative: number | undefined;
}

/** How one figure carries over from the simulation to reality. */
export interface Transfer {
  /** A gap per policy that has both, in order of the live figure. */
  readonly gaps: readonly Gap[];
  /** Spearman's rank correlation, equal values sharing their mean rank; undefined where either side does not vary. */
  readonly spearman: number | undefined;
  /** Pairs of policies that differ live, and those of them that the simulation orders the same way. */
  readonly pairs: number;
  readonly pairsPreserved: number;
  readonly relativeMeanAbsolute: number | undefined;
  /** What the simulation's favourite costs live over the live best: live figure / best - 1; of shares, lost. */
  readonly regret: number | undefined;
}

export interface TransferAnswer {
  /** Policies with both results. */
  readonly policies: readonly string[];
  readonly onlyLive: readonly string[];
  readonly onlySimulated: readonly string[];
  readonly figures: Readonly<Partial<Record<Compared, Transfer>>>;
}

/**
 * Compares live results with simulated ones, policy by policy. A figure that fewer than two of several policies have is
 * left out; of one policy alone there are gaps and no ranks.
 */
export function compareRuns(live: readonly PolicyFigures[], simulated: readonly PolicyFigures[]): TransferAnswer {
  const simulatedOf = new Map(simulated.map((one) => [one.policy, one]));
  const liveNames = new Set(live.map(({ policy }) => policy));
  const both = live.filter(({ policy }) => simulatedOf.has(policy));
  const figures: Partial<Record<Compared, Transfer>> = {};
  for (const figure of COMPARED) {
    const gaps = both.flatMap(({ policy, figures: seen }) => {
      const [real, model] = [seen[figure], simulatedOf.get(policy)?.figures[figure]];
      return real === undefined || model === undefined ? [] : [gapOf(policy, real, model)];
    });
    if (gaps.length >= Math.min(2, Math.max(1, both.length)))
      figures[figure] = transferOf(gaps, SHARES.has(figure) ? -1 : 1);
  }
  return {
    policies: both.map(({ policy }) => policy),
    onlyLive: live.map(({ policy }) => policy).filter((policy) => !simulatedOf.has(policy)),
    onlySimulated: simulated.map(({ policy }) => policy).filter((policy) => !liveNames.has(policy)),
    figures,
  };
}

function gapOf(policy: string, live: number, simulated: number): Gap {
  return {
    policy,
    live,
    simulated,
    absolute: Math.abs(simulated - live),
    relative: live === 0 ? undefined : simulated / live - 1,
  };
}

/** `sense` is 1 where less is better and -1 where more is. */
function transferOf(gaps: readonly Gap[], sense: 1 | -1): Transfer {
  let pairs = 0;
  let pairsPreserved = 0;
  gaps.forEach((a, i) => {
    for (const b of gaps.slice(i + 1)) {
      const order = Math.sign(a.live - b.live);
      if (order === 0) continue;
      pairs++;
      if (Math.sign(a.simulated - b.simulated) === order) pairsPreserved++;
    }
  });
  const relatives = gaps.map(({ relative }) => relative).filter((relative) => relative !== undefined);
  const sorted = gaps.toSorted((a, b) => sense * (a.live - b.live));
  const favourite = gaps.reduce((best, gap) => (sense * (gap.simulated - best.simulated) < 0 ? gap : best));
  const best = sorted[0]!;
  return {
    gaps: sorted,
    spearman: spearman(
      gaps.map((gap) => gap.live),
      gaps.map((gap) => gap.simulated),
    ),
    pairs,
    pairsPreserved,
    relativeMeanAbsolute:
      relatives.length === 0 ? undefined : relatives.reduce((sum, one) => sum + Math.abs(one), 0) / relatives.length,
    regret: best.live === 0 ? undefined : sense * (favourite.live / best.live - 1),
  };
}

/** Pearson's r of the ranks; undefined where either side is all equal. */
export function spearman(a: readonly number[], b: readonly number[]): number | undefined {
  const [ranksA, ranksB] = [ranksOf(a), ranksOf(b)];
  const middle = (a.length + 1) / 2;
  let ab = 0;
  let aa = 0;
  let bb = 0;
  ranksA.forEach((rank, i) => {
    ab += (rank - middle) * (ranksB[i]! - middle);
    aa += (rank - middle) ** 2;
    bb += (ranksB[i]! - middle) ** 2;
  });
  return aa === 0 || bb === 0 ? undefined : ab / Math.sqrt(aa * bb);
}

/** Ranks from 1, equal values sharing the mean of theirs. */
function ranksOf(values: readonly number[]): number[] {
  return values.map((value) => {
    let below = 0;
    let equal = 0;
    for (const other of values) {
      if (other < value) below++;
      else if (other === value) equal++;
    }
    return below + (equal + 1) / 2;
  });
}
