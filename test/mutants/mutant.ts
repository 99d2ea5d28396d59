/** One small change of one file. */
export interface Mutant {
  /** From the repository's root. */
  readonly file: string;
  /** Where it is made, counted from 1. */
  readonly line: number;
  /** The text replaced: [start, end) in UTF-16 units, and what is there instead. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** What was changed, for a person. */
  readonly change: string;
}

export function mutated(text: string, { start, end, replacement }: Mutant): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** A mutant by the range that it replaces. */
export function mutantAt(file: string, text: string, start: number, end: number, replacement: string): Mutant {
  const line = text.slice(0, start).split("\n").length;
  const change = `${shortened(text.slice(start, end))}  →  ${shortened(replacement)}`;
  return { file, line, start, end, replacement, change };
}

const CHANGE_CHARS_MAX = 90;

function shortened(code: string): string {
  const line = code.replaceAll(/\s+/g, " ").trim();
  if (line === "") return "(nothing)";
  return line.length > CHANGE_CHARS_MAX ? `${line.slice(0, CHANGE_CHARS_MAX)}…` : line;
}
