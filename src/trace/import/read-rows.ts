import type { ImportReport } from "./import-report.ts";
import { readLines } from "./line-reader.ts";

/**
 * The rows of a file that has one on each line. `parse` makes a row of a line, or returns the reason why it cannot:
 * such a line is counted as refused, with its place, and left out, and so is one that is too long.
 */
export async function* readRows<Row extends object>(
  path: string,
  report: ImportReport,
  parse: (text: string) => Row | string,
): AsyncGenerator<Row> {
  for await (const line of readLines(path)) {
    report.records++;
    const row = line.tooLong ? "line too long" : parse(line.text);
    if (typeof row === "string") report.refuse(`${path}:${line.number}`, row);
    else yield row;
  }
}
