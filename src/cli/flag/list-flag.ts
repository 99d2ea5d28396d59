/**
 * Parsers of options that take several values. None is variadic (`<name...>`): it would take the arguments behind it, in
 * the very order that usage lines show.
 */

/** Values after commas, of an option that may be repeated. */
export function listFlag<T>(parse: (text: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => [...before, ...text.split(",").map(parse)];
}

/** Names, paths or addresses after commas, of an option that may be repeated. */
export const names = listFlag((text) => text.trim());

/** A value each time, which may have commas of its own, of an option that may be repeated. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
