import { type Cell, type Column, COLUMNS } from "./cell.ts";

/** How far behind the best of all others counts as level, as a share; of goodput as points of share. */
const ALLOWED: Readonly<Record<Column, number>> = {
  e2eMean: 0.01,
  ttftMean: 0.01,
  e2eP99: 0.05,
  ttftP99: 0.05,
  goodput: 0.01,
};
/** A column counts for no more than this, so that no single case decides. */
const EXCESS_MAX = 0.5;
/** What being ahead is worth against being behind. */
const LEAD_WEIGHT = 0.1;

/** A policy beside the best of some others in one column of one case. */
export interface Standing {
  readonly name: string;
  readonly column: Column;
  readonly value: number;
  readonly best: number;
  readonly bestPolicy: string;
  /** Share by which it is behind, below 0 where it leads; of goodput points of share. */
  readonly behind: number;
}

/** The columns of `policy`, means over the seeds, beside those of each of `others`. */
export function standings(cells: readonly Cell[], policy: string, others: readonly string[]): Standing[] {
  const names = [...new Set(cells.map(({ name }) => name))];
  return names.flatMap((name) => {
    const here = cells.filter((cell) => cell.name === name);
    if (!here.some((cell) => cell.policy === policy)) return [];
    return COLUMNS.map((column) => {
      const value = meanOf(here, policy, column);
      const ranked = others
        .filter((other) => other !== policy && here.some((cell) => cell.policy === other))
        .map((other) => [meanOf(here, other, column), other] as const)
        .toSorted(([a], [b]) => (column === "goodput" ? b - a : a - b));
      const [best = NaN, bestPolicy = ""] = ranked[0] ?? [];
      const behind = column === "goodput" ? best - value : value / best - 1;
      return { name, column, value, best, bestPolicy, behind };
    });
  });
}

function meanOf(cells: readonly Cell[], policy: string, column: Column): number {
  const own = cells.filter((cell) => cell.policy === policy).map((cell) => cell[column]);
  return own.reduce((sum, value) => sum + value, 0) / own.length;
}

export function misses({ column, behind }: Standing): boolean {
  return behind > ALLOWED[column];
}

/**
 * What a policy is chosen by, less is better: the mean over cases and columns of
 *
 *     min(0.5, max(0, behind - allowed)) + 0.1 * clip(behind, -0.5, 0.5)
 */
export function scoreOf(all: readonly Standing[]): number {
  return all.reduce((sum, one) => sum + costOf(one), 0) / all.length;
}

function costOf({ column, behind }: Standing): number {
  const excess = Math.min(EXCESS_MAX, Math.max(0, behind - ALLOWED[column]));
  return excess + LEAD_WEIGHT * Math.max(-EXCESS_MAX, Math.min(EXCESS_MAX, behind));
}

/** The score of each case, so that two policies can be compared case by case. */
export function scoresByCase(all: readonly Standing[]): Map<string, number> {
  const names = [...new Set(all.map(({ name }) => name))];
  return new Map(names.map((name) => [name, scoreOf(all.filter((one) => one.name === name))]));
}
