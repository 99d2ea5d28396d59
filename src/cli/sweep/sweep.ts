import { availableParallelism } from "node:os";
import { isAbsolute } from "node:path";
import { Command } from "commander";
import { addOutput } from "#drive/output-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { gnomonVersion } from "#serve/process/gnomon-version.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { whole } from "../flag/flag-number.ts";
import { jobManifest } from "./job-manifest.ts";
import { checkPoints } from "./run-point.ts";
import { runPoints } from "./run-points.ts";
import { readSweep, type Sweep } from "./sweep-file.ts";
import { mergedLines, pointsOf, readPart, type Shard, wholeText, writePart } from "./sweep-part.ts";
import { sweepTable } from "./sweep-table.ts";
import { writeOutput } from "#drive/output-file.ts";

interface SweepFlags {
  readonly out?: string;
  readonly threads?: number;
  readonly shards?: number;
  readonly shard?: number;
  readonly parts: string;
  readonly merge: boolean;
  readonly job?: string;
  readonly image: string;
  readonly claim: string;
  readonly name: string;
  readonly parallelism?: number;
}

const SHARDS_MAX = 100_000;
/** The number that an indexed Job gives each of its pods. */
const INDEX_VARIABLE = "JOB_COMPLETION_INDEX";

/** Runs a grid of questions or simulations: here, or a shard of it here and the others elsewhere. */
export function sweepCommand(): Command {
  const command = new Command("sweep")
    .description(
      "Run a grid of what-ifs or simulations, on all cores or in shards (for example as an indexed Kubernetes Job), with the same results.",
    )
    .argument("<file>", "YAML: command (what-if or simulate), trace, options, and grid: options with their values")
    .option("--threads <n>", "maximum number of threads (default: as many as there are cores)", whole(1, 256))
    .option("--shards <n>", "parts that the sweep is divided into", whole(1, SHARDS_MAX))
    .option(
      "--shard <index>",
      `run only this shard, counted from 0 (default: ${INDEX_VARIABLE})`,
      whole(0, SHARDS_MAX - 1),
    )
    .option("--parts <folder>", "where shards are written, and read by --merge", "parts")
    .option("--merge", "merge the parts instead of running anything", false)
    .option("--job <file>", "write an indexed Job that runs the shards, instead of running anything; - for stdout")
    .option("--image <name>", "image of the Job's pods", `gnomon:${gnomonVersion()}`)
    .option(
      "--claim <name>",
      "PersistentVolumeClaim with the sweep's files, which the Job mounts and writes to",
      "sweep",
    )
    .option("--name <name>", "name of the Job", "gnomon-sweep")
    .option("--parallelism <n>", "shards that the Job runs at once (default: all)", whole(1, SHARDS_MAX))
    .action(sweepOrPart);
  addOutput(command, "write the results there as JSON lines, in the points' order; - for stdout, without the table", {
    as: "out",
    before: ["--out"],
  });
  return command;
}

async function sweepOrPart(file: string, flags: SweepFlags): Promise<void> {
  checkOutputFile("--output", flags.out);
  checkOutputFile("--job", flags.job);
  const sweep = readSweep(file);
  checkPoints(sweep.command, sweep.points);
  if (flags.job !== undefined) return writeOutput(flags.job, manifestOf(file, flags));
  if (flags.merge) return finish(sweep, flags, mergedLines(flags.parts, sweep, shardsOf(flags, "--merge")));
  const shard = shardOf(flags);
  if (shard !== undefined) return runShard(sweep, shard, flags);
  return finish(sweep, flags, await run(sweep, sweep.points, flags));
}

async function run(sweep: Sweep, points: Sweep["points"], { threads }: SweepFlags): Promise<string[]> {
  const startedAt = performance.now();
  const lines = await runPoints(sweep, points, threads ?? availableParallelism(), (done) => {
    if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${points.length} points`);
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  process.stderr.write(`${points.length} points in ${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
  return lines;
}

async function runShard(sweep: Sweep, shard: Shard, flags: SweepFlags): Promise<void> {
  if (readPart(flags.parts, sweep, shard) !== undefined) {
    process.stderr.write(`shard ${shard.index} of ${shard.count} is there already\n`);
    return;
  }
  const lines = await run(sweep, pointsOf(sweep, shard), flags);
  process.stderr.write(`${writePart(flags.parts, sweep, shard, lines)}\n`);
}

/** Undefined where the sweep is not divided. */
function shardOf(flags: SweepFlags): Shard | undefined {
  const fromJob = process.env[INDEX_VARIABLE];
  if (flags.shards === undefined) {
    if (flags.shard !== undefined) throw new ConfigError(["--shard: expected together with --shards"]);
    return undefined;
  }
  const index = flags.shard ?? (fromJob === undefined || fromJob === "" ? Number.NaN : Number(fromJob));
  if (!Number.isSafeInteger(index) || index < 0 || index >= flags.shards) {
    const got = flags.shard ?? fromJob ?? "none";
    throw new ConfigError([
      `--shard: expected one of 0 to ${flags.shards - 1}, or it in ${INDEX_VARIABLE}, got ${got}`,
    ]);
  }
  return { index, count: flags.shards };
}

function shardsOf({ shards }: SweepFlags, flag: string): number {
  if (shards === undefined) throw new ConfigError([`${flag}: expected together with --shards`]);
  return shards;
}

function manifestOf(file: string, flags: SweepFlags): string {
  const shards = shardsOf(flags, "--job");
  for (const [what, path] of [
    ["<file>", file],
    ["--parts", flags.parts],
  ] as const) {
    if (isAbsolute(path) || path.split("/").includes(".."))
      throw new ConfigError([`--job: expected ${what} as a path in the claim, relative to its root, got ${path}`]);
  }
  const { image, claim, name, parts, parallelism = shards, threads: cpus = 1 } = flags;
  return jobManifest({ name, image, claim, file, parts, shards, parallelism, cpus });
}

/** The whole sweep's results and table. Points that cannot be run are among them; the command fails for them at its end. */
function finish(sweep: Sweep, { out }: SweepFlags, lines: readonly string[]): void {
  if (out !== undefined) writeOutput(out, wholeText(sweep, lines));
  if (out !== "-") process.stdout.write(sweepTable(lines));
  const failed = lines.filter((line) => "error" in (JSON.parse(line) as object)).length;
  if (failed > 0)
    throw new CommandFailure(`${failed} of ${lines.length} points could not be run; their errors are in the results`);
}
