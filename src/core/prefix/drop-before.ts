/**
 * Drops the entries before `first` once they are the larger part: constant work per entry. Returns where the first one
 * stands from then on.
 */
export function dropBefore(entries: unknown[], first: number): number {
  if (first === 0 || 2 * first < entries.length) return first;
  entries.splice(0, first);
  return 0;
}
