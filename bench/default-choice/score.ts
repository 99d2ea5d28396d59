import { type Cell, type Column, COLUMNS } from "./cell.ts";

/** How far behind the best of others counts as level. */
const ALLOWED: Readonly<Record<Column, number>> = { e2eMean: 0.01, ttftMean: 0.01, e2eP99: 0.05, ttftP99: 0.05 };

/** A policy beside the best of some others in one column of one case. */
export interface Standing {
  readonly name: string;
  readonly column: Column;
  readonly value: number;
  readonly best: number;
  readonly bestPolicy: string;
  /** Share by which it is behind the best, below 0 where it leads: its regret. */
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
        .filter((other) => here.some((cell) => cell.policy === other))
        .map((other) => [meanOf(here, other, column), other] as const)
        .toSorted(([a], [b]) => a - b);
      const [best = NaN, bestPolicy = ""] = ranked[0] ?? [];
      return { name, column, value, best, bestPolicy, behind: value / best - 1 };
    });
  });
}

function meanOf(cells: readonly Cell[], policy: string, column: Column): number {
  const own = cells.filter((cell) => cell.policy === policy).map((cell) => cell[column]);
  return own.reduce((sum, value) => sum + value, 0) / own.length;
}

/**
 * The same beside whom the other seeds name as the best, seed by seed: who is best of many on the very runs that it is
 * compared on is partly so by luck, the more the wider the runs of one policy differ.
 */
export function unseenStandings(cells: readonly Cell[], policy: string, others: readonly string[]): Standing[] {
  const seeds = [...new Set(cells.map(({ seed }) => seed))];
  if (seeds.length < 2) return [];
  const named = seeds.map((seed) => {
    const rest = standings(
      cells.filter((cell) => cell.seed !== seed),
      policy,
      others,
    );
    return new Map(rest.map(({ name, column, bestPolicy }) => [`${name}|${column}`, bestPolicy]));
  });
  return standings(cells, policy, others).map((one) => {
    const bests = seeds.map((seed, i) => {
      const best = named[i]!.get(`${one.name}|${one.column}`);
      return cells.find((cell) => cell.name === one.name && cell.seed === seed && cell.policy === best)![one.column];
    });
    const best = bests.reduce((sum, value) => sum + value, 0) / bests.length;
    return { ...one, best, behind: one.value / best - 1 };
  });
}

export function misses({ column, behind }: Standing): boolean {
  return behind > ALLOWED[column];
}

export interface Score {
  /** Mean over the columns of the worst regret over the cases. */
  readonly worst: number;
  /** Mean regret over cases and columns. */
  readonly mean: number;
  /** By column. */
  readonly worstOf: readonly Standing[];
}

/**
 * What a policy is chosen by, less is better: its worst regret over the cases, column by column, and the mean of the four.
 * A regret is against the best profile of that case and column.
 */
export function scoreOf(all: readonly Standing[]): Score {
  const worstOf = COLUMNS.map((column) => {
    const of = all.filter((one) => one.column === column);
    return of.reduce((worst, one) => (one.behind > worst.behind ? one : worst));
  });
  return {
    worst: worstOf.reduce((sum, { behind }) => sum + behind, 0) / worstOf.length,
    mean: all.reduce((sum, { behind }) => sum + behind, 0) / all.length,
    worstOf,
  };
}

/** Whether a candidate may take the default's place: less regret than it, the worst and the mean one. */
export function isBetter(candidate: Score, incumbent: Score): boolean {
  return candidate.worst < incumbent.worst && candidate.mean < incumbent.mean;
}
