/**
 * Mutation testing: small changes of the source, one at a time, and whether some test fails because of it.
 *
 *     npm run mutants -- [--folder core|engine|live|sim|trace|config|named|all] [--sample 40] [--seed 1]
 *       [--files-max 15] [--files-far 15] [--only FILE:LINE]... [--minutes 4.5]
 *
 * Each mutant is tried in a copy of the tree on the test files that load its file, nearest first, at most --files-max of
 * them; what survives these on the next ones, up to --files-far, and is counted apart. A sample is drawn per folder from
 * all its mutants; the same seed draws the same, and --only tries those of the sample at these places alone. No mutant is
 * begun after --minutes. What survives is printed with its place: a hole of the tests, or a change that changes nothing.
 * The exit code is 1 where one of the named mutants, which every run of the tests must kill, survives.
 */
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { Mutant } from "./mutant.ts";
import { namedMutants } from "./named.ts";
import { mutantsOf } from "./operators.ts";
import { type Verdict, Workshop } from "./workshop.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS: readonly string[] = ["core", "engine", "live", "sim", "trace", "config"];
const NAMED = "named";
const RUN_MILLIS_MAX = 60_000;

interface Settings {
  readonly folders: readonly string[];
  readonly sample: number;
  readonly seed: number;
  readonly filesMax: number;
  readonly filesFar: number;
  /** Beginnings of places, all where there are none. */
  readonly only: readonly string[];
  readonly minutes: number;
}

interface Tried {
  readonly mutant: Mutant;
  /** Of the named ones. */
  readonly name: string;
  readonly verdict: Verdict;
}

interface Tally {
  readonly folder: string;
  /** Mutants of the folder, of which some are tried. */
  readonly all: number;
  readonly tried: readonly Tried[];
}

function settings(): Settings {
  const { values } = parseArgs({
    options: {
      folder: { type: "string", default: "all" },
      sample: { type: "string", default: "40" },
      seed: { type: "string", default: "1" },
      "files-max": { type: "string", default: "15" },
      "files-far": { type: "string" },
      only: { type: "string", multiple: true, default: [] },
      minutes: { type: "string", default: "4.5" },
    },
  });
  const { folder } = values;
  if (folder !== "all" && folder !== NAMED && !FOLDERS.includes(folder)) {
    throw new RangeError(`--folder: expected one of all, ${NAMED}, ${FOLDERS.join(", ")}, got ${folder}`);
  }
  const filesMax = numberOf("files-max", values["files-max"]);
  return {
    folders: folder === "all" ? [NAMED, ...FOLDERS] : [folder],
    sample: numberOf("sample", values.sample),
    seed: numberOf("seed", values.seed),
    filesMax,
    filesFar: Math.max(filesMax, numberOf("files-far", values["files-far"] ?? String(filesMax))),
    only: values.only,
    minutes: numberOf("minutes", values.minutes),
  };
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new RangeError(`--${name}: expected a number above 0, got ${text}`);
  return value;
}

/** The mutants of a folder in an order that the seed draws. */
function drawn(root: string, folder: string, seed: number): Mutant[] {
  const files = globSync(`src/${folder}/**/*.ts`, { cwd: root }).sort();
  const all = files.flatMap((file) => mutantsOf(file, readFileSync(join(root, file), "utf8")));
  const random = randomFor(seed, nameHash(folder));
  for (let i = all.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [all[i], all[other]] = [all[other]!, all[i]!];
  }
  return all;
}

async function tally(workshop: Workshop, folder: string, chosen: Settings, until: number): Promise<Tally> {
  const named = folder === NAMED ? namedMutants(workshop.folder) : undefined;
  const all = named ?? drawn(workshop.folder, folder, chosen.seed).map((mutant) => ({ name: "", mutant }));
  const tried: Tried[] = [];
  for (const { name, mutant } of (named ?? all.slice(0, chosen.sample)).filter((one) => isAmong(one, chosen.only))) {
    if (performance.now() > until) break;
    const start = performance.now();
    const verdict = await workshop.judge(mutant);
    tried.push({ name, mutant, verdict });
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    process.stdout.write(`${seconds.padStart(6)} s  ${verdictText(verdict)}\n          ${placed(mutant, name)}\n`);
  }
  return { folder, all: all.length, tried };
}

function isAmong({ mutant, name }: Omit<Tried, "verdict">, only: readonly string[]): boolean {
  return only.length === 0 || only.some((place) => placed(mutant, name).startsWith(`${place} `));
}

function verdictText(verdict: Verdict): string {
  switch (verdict.kind) {
    case "killed":
      return `killed${verdict.isFar ? " far off" : ""} by: ${verdict.by}`;
    case "survived":
      return `SURVIVED ${verdict.files} of ${verdict.reaching} test files that load it`;
    case "timeout":
      return "killed: the tests did not end";
    case "unreached":
      return "SURVIVED: no test loads it";
  }
}

function placed({ file, line, change }: Mutant, name: string): string {
  return `${file}:${line}  ${name === "" ? "" : `${name}:  `}${change}`;
}

const lives = ({ verdict }: Tried): boolean => verdict.kind === "survived" || verdict.kind === "unreached";

function report(tallies: readonly Tally[]): void {
  const table = new Table({
    head: ["folder", "mutants", "tried", "killed", "far off", "timeouts", "survived", "score"],
    style: { head: [], border: [], compact: true },
  });
  for (const { folder, all, tried } of tallies) {
    const count = (kind: Verdict["kind"]) => tried.filter(({ verdict }) => verdict.kind === kind).length;
    const far = tried.filter(({ verdict }) => verdict.kind === "killed" && verdict.isFar).length;
    const survived = tried.filter(lives).length;
    const score = tried.length === 0 ? "-" : `${((100 * (tried.length - survived)) / tried.length).toFixed(0)} %`;
    table.push([folder, all, tried.length, count("killed") - far, far, count("timeout"), survived, score]);
  }
  for (const { folder, tried } of tallies) {
    const survivors = tried.filter(lives).map(({ mutant, name }) => placed(mutant, name));
    if (survivors.length > 0) process.stdout.write(`\nsurvivors of ${folder}:\n  ${survivors.sort().join("\n  ")}\n`);
  }
  process.stdout.write(`\n${table.toString()}\n`);
}

const chosen = settings();
const until = performance.now() + chosen.minutes * 60_000;
const testFiles = globSync("test/**/*.test.ts", { cwd: ROOT }).sort();
const { filesMax, filesFar } = chosen;
const workshop = new Workshop({ root: ROOT, testFiles, filesMax, filesFar, runMillisMax: RUN_MILLIS_MAX });
process.on("exit", () => workshop.close());
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const tallies: Tally[] = [];
for (const folder of chosen.folders) tallies.push(await tally(workshop, folder, chosen, until));
report(tallies);
if (workshop.broken.size > 0) {
  process.stdout.write(`\nnot asked, since they fail without any change: ${[...workshop.broken].join(", ")}\n`);
}
process.exitCode = tallies.some(({ folder, tried }) => folder === NAMED && tried.some(lives)) ? 1 : 0;
