import { writeWholeFile } from "#trace/export/whole-file.ts";

/** Writes what a command made; "-" is standard output. */
export function writeOutput(file: string, text: string): void {
  if (file === "-") process.stdout.write(text);
  else writeWholeFile(file, text);
}

/** The answer of a command, wherever `--json` and `--output` want it: in each place once. */
export function writeOutputs(
  { json, output }: { readonly json?: string; readonly output?: string },
  text: string,
): void {
  for (const file of new Set([json, output])) if (file !== undefined) writeOutput(file, text);
}
