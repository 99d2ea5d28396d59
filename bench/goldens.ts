import { globSync } from "node:fs";
import { join } from "node:path";
import { differences } from "./golden/compare.ts";
import type { GoldenCase } from "./golden/golden-case.ts";
import { readCases } from "./golden/read-cases.ts";
import { runCase } from "./golden/run-case.ts";

const LINES_MAX = 40;

const OWN = join(import.meta.dirname, "../test/golden/blis");

/**
 * `npm run goldens -- FILE.json ...`: runs the files' cases, a line each and one per difference; exit code 1 on any.
 * Without files: those of test/golden/blis, single engines and clusters.
 */
function main(given: readonly string[]): number {
  const files =
    given.length > 0
      ? given
      : globSync("*.json", { cwd: OWN })
          .sort()
          .map((file) => join(OWN, file));
  let failed = 0;
  for (const file of files) {
    for (const golden of readCases(file)) {
      const lines = "problem" in golden ? [golden.problem] : compared(golden);
      if (lines.length > 0) failed++;
      process.stdout.write(`${lines.length === 0 ? "equal" : "DIFFERS"} ${golden.name}\n`);
      for (const line of lines.slice(0, LINES_MAX)) process.stdout.write(`  ${line}\n`);
      if (lines.length > LINES_MAX) process.stdout.write(`  and ${lines.length - LINES_MAX} more\n`);
    }
  }
  return failed > 0 ? 1 : 0;
}

/** A case that cannot be run to its end differs by that. */
function compared(golden: GoldenCase): string[] {
  try {
    return differences(golden, runCase(golden));
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

process.exitCode = main(process.argv.slice(2));
