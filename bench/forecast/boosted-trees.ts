import type { Random } from "#core/base/random.ts";

export interface BoostingOptions {
  readonly trees: number;
  readonly depth: number;
  readonly rate: number;
  /** Shares of the rows and of the columns that a tree sees. */
  readonly rows: number;
  readonly columns: number;
  readonly leafRowsMin: number;
  /** Penalties: gain that a split has to bring, and L1 and L2 on a leaf's value. */
  readonly gainMin: number;
  readonly l1: number;
  readonly l2: number;
}

/** A split, or a leaf where `left` is undefined. */
interface Node {
  readonly column: number;
  readonly below: number;
  readonly value: number;
  readonly left: Node | undefined;
  readonly right: Node | undefined;
}

/** Thresholds that are tried per column. */
const BINS = 256;

/**
 * Regression trees, each fitted to what the ones before it left over of the squared error (Friedman 2001), with the
 * penalties of XGBoost (Chen and Guestrin 2016): for a node with residuals of sum G over n rows
 *
 *     value = soft(G, l1) / (n + l2),  score = soft(G, l1)^2 / (n + l2),  gain = (left + right - parent) / 2
 */
export class BoostedTrees {
  readonly #base: number;
  readonly #rate: number;
  readonly #trees: readonly Node[];

  /** `rows` of features, all of one length, and what they came to. */
  constructor(
    rows: readonly (readonly number[])[],
    targets: readonly number[],
    options: BoostingOptions,
    random: Random,
  ) {
    this.#base = targets.reduce((sum, target) => sum + target, 0) / Math.max(1, targets.length);
    this.#rate = options.rate;
    const left = targets.map((target) => target - this.#base);
    const columns = rows[0]?.map((_, column) => thresholds(rows.map((row) => row[column]!))) ?? [];
    const trees: Node[] = [];
    for (let t = 0; t < options.trees && rows.length > 0; t++) {
      const seen = [...rows.keys()].filter(() => random.next() < options.rows);
      const used = columns.map((cuts) => (random.next() < options.columns ? cuts : []));
      const tree = grow(rows, left, seen, used, options, options.depth);
      trees.push(tree);
      rows.forEach((row, i) => (left[i]! -= options.rate * valueOf(tree, row)));
    }
    this.#trees = trees;
  }

  at(row: readonly number[]): number {
    return this.#trees.reduce((sum, tree) => sum + this.#rate * valueOf(tree, row), this.#base);
  }
}

function valueOf(tree: Node, row: readonly number[]): number {
  let node = tree;
  while (node.left !== undefined && node.right !== undefined) {
    node = row[node.column]! < node.below ? node.left : node.right;
  }
  return node.value;
}

/** Values between which a column may be split. */
function thresholds(values: readonly number[]): number[] {
  const distinct = [...new Set(values)].sort((a, b) => a - b);
  const cuts = distinct.slice(1).map((value, i) => (value + distinct[i]!) / 2);
  if (cuts.length <= BINS) return cuts;
  return Array.from({ length: BINS }, (_, i) => cuts[Math.floor(((i + 0.5) * cuts.length) / BINS)]!);
}

function grow(
  rows: readonly (readonly number[])[],
  residuals: readonly number[],
  seen: readonly number[],
  columns: readonly (readonly number[])[],
  options: BoostingOptions,
  depth: number,
): Node {
  const sum = seen.reduce((total, i) => total + residuals[i]!, 0);
  const leaf: Node = {
    column: 0,
    below: 0,
    value: soft(sum, options.l1) / (seen.length + options.l2),
    left: undefined,
    right: undefined,
  };
  if (depth === 0) return leaf;
  const split = bestSplit(rows, residuals, seen, columns, options, sum);
  if (split === undefined) return leaf;
  const { column, below } = split;
  const left = seen.filter((i) => rows[i]![column]! < below);
  const right = seen.filter((i) => rows[i]![column]! >= below);
  return {
    ...leaf,
    column,
    below,
    left: grow(rows, residuals, left, columns, options, depth - 1),
    right: grow(rows, residuals, right, columns, options, depth - 1),
  };
}

function bestSplit(
  rows: readonly (readonly number[])[],
  residuals: readonly number[],
  seen: readonly number[],
  columns: readonly (readonly number[])[],
  { leafRowsMin, gainMin, l1, l2 }: BoostingOptions,
  sum: number,
): { readonly column: number; readonly below: number } | undefined {
  const score = (total: number, count: number): number => soft(total, l1) ** 2 / (count + l2);
  const whole = score(sum, seen.length);
  let best: { readonly column: number; readonly below: number } | undefined;
  let bestGain = gainMin;
  for (const [column, cuts] of columns.entries()) {
    if (cuts.length === 0) continue;
    const order = seen.toSorted((a, b) => rows[a]![column]! - rows[b]![column]!);
    let [next, total] = [0, 0];
    for (const below of cuts) {
      while (next < order.length && rows[order[next]!]![column]! < below) total += residuals[order[next++]!]!;
      if (next < leafRowsMin) continue;
      if (order.length - next < leafRowsMin) break;
      const gain = (score(total, next) + score(sum - total, order.length - next) - whole) / 2;
      if (gain > bestGain) [best, bestGain] = [{ column, below }, gain];
    }
  }
  return best;
}

/** The L1 penalty: towards 0 by so much, and not past it. */
function soft(sum: number, by: number): number {
  return Math.sign(sum) * Math.max(0, Math.abs(sum) - by);
}
