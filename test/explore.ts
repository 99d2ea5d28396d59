/**
 * `npm run explore [MINUTES]`: tries all properties on new cases, drawn from one seed after the other, for so many minutes
 * (10). Prints what reproduces a failure, and ends with 1 where there was one.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { AT_ONCE, failuresOf, runAll } from "./process-runner.ts";
import { eachAlone, testProcesses } from "./processes.ts";

const ROOT = resolve(import.meta.dirname, "..");
const DRAWS = ["fast-check", "drawn-seeds.ts"];
const IMPORTED = /^(?:import|export)\b[^;]*?\bfrom "([^"]+)";/gms;
const SEEDS = 0x7fff_ffff;
const MILLIS_PER_MINUTE = 60_000;

const [minutesText = "10"] = process.argv.slice(2);
const minutes = Number(minutesText);
if (!(minutes > 0)) throw new RangeError(`expected minutes, more than 0, got ${minutesText}`);
const until = performance.now() + minutes * MILLIS_PER_MINUTE;

/** Whether a file of tests draws cases, itself or in a file that it shares with others. */
function draws(file: string, seen: Set<string> = new Set()): boolean {
  if (seen.has(file)) return false;
  seen.add(file);
  const names = [...readFileSync(join(ROOT, file), "utf8").matchAll(IMPORTED)].map(([, name]) => name!);
  return names.some((name) => {
    if (DRAWS.some((one) => name.endsWith(one))) return true;
    return name.startsWith(".") && draws(relative(ROOT, resolve(ROOT, dirname(file), name)), seen);
  });
}

let files = globSync("test/**/*.test.ts", { cwd: ROOT })
  .sort()
  .filter((file) => draws(file));
process.stdout.write(`${files.length} files whose tests draw cases, ${minutes} minutes\n`);
let seeds = 0;
const found: string[] = [];
do {
  const seed = Math.floor(Math.random() * SEEDS);
  const how = { environment: { TEST_PROPERTY_SEED: String(seed) }, isQuiet: true };
  const outcomes = await runAll(testProcesses(files), AT_ONCE, how);
  for (const failed of outcomes.filter((outcome) => failuresOf(outcome) !== "")) {
    // Alone, each: which of them it was, and whether it was only short of time beside others.
    const again = await runAll(eachAlone(failed.files), 1, how);
    const failing = again.filter((outcome) => failuresOf(outcome) !== "");
    if (failing.length === 0)
      process.stdout.write(`seed ${seed}: passed when run again alone: ${failed.name}\n${failuresOf(failed)}`);
    for (const outcome of failing) {
      const command = `TEST_PROPERTY_SEED=${seed} npm test ${outcome.name}`;
      found.push(command);
      process.stdout.write(`\n${failuresOf(outcome)}\nreproduced by: ${command}\n`);
      // It has been found; the others are tried on.
      files = files.filter((file) => file !== outcome.name);
    }
  }
  seeds++;
  process.stdout.write(`seed ${seed} tried\n`);
} while (performance.now() < until && files.length > 0);

process.stdout.write(
  `\n${seeds} seeds, ${found.length} files failed${found.map((command) => `\n${command}`).join("")}\n`,
);
process.exitCode = found.length > 0 ? 1 : 0;
