/** Square, row by row. */
export type Matrix = readonly (readonly number[])[];

/** Below this part of 1 a pivot of a matrix with a diagonal of 1 is nothing but rounding. */
const PIVOT_MIN = 1e-10;

/** Inverse of a small matrix whose diagonal is about 1 (Gauss and Jordan, largest pivot); undefined where it has none. */
export function invert(matrix: Matrix): number[][] | undefined {
  const n = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...Array.from({ length: n }, (_, j) => (i === j ? 1 : 0))]);
  for (let column = 0; column < n; column++) {
    let pivot = column;
    for (let i = column + 1; i < n; i++) {
      if (Math.abs(rows[i]![column]!) > Math.abs(rows[pivot]![column]!)) pivot = i;
    }
    const top = rows[pivot]!;
    rows[pivot] = rows[column]!;
    rows[column] = top;
    const head = top[column]!;
    if (!(Math.abs(head) > PIVOT_MIN)) return undefined;
    for (let k = 0; k < 2 * n; k++) top[k]! /= head;
    for (const [i, row] of rows.entries()) {
      const factor = row[column]!;
      if (i === column || factor === 0) continue;
      for (let k = 0; k < 2 * n; k++) row[k]! -= factor * top[k]!;
    }
  }
  return rows.map((row) => row.slice(n));
}
