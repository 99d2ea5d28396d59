/**
 * All figures of the pages, on one commit of one machine: runs the command of each marked block in bench/pages, one after
 * another, and writes what it prints into the block, with commit, date and machine.
 *
 *     npm run bench -- release [--only NAME]... [--again] [--list] [--pages FOLDER]
 *
 * What is there of this commit already stays unless --again is given, so that the same command goes on where it was ended;
 * all of it takes hours. A block whose command ends with another code than 0, or needs a variable that is not set, stays as
 * it was and is named at the end, with exit code 1. Sources that differ from the commit make it COMMIT-dirty. The sentences
 * around a block are written by hand: read them again afterwards.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { BENCHES } from "./catalogue.ts";
import { blocksOf, commitOf, type Origin, type PageBlock, withFigures } from "./release/page-block.ts";

const ROOT = resolve(import.meta.dirname, "..");

interface Asked extends PageBlock {
  readonly page: string;
  readonly commit: string | undefined;
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [] },
    again: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    pages: { type: "string", default: join(ROOT, "bench/pages") },
  },
});

async function main(): Promise<number> {
  const unknown = values.only.filter((name) => name !== "gnomon" && !Object.hasOwn(BENCHES, name));
  if (unknown.length > 0) {
    const known = ["gnomon", ...Object.keys(BENCHES)].join(", ");
    process.stderr.write(`release: --only ${unknown.join(", ")}: expected some of ${known}\n`);
    return 2;
  }
  const asked = globSync("*.md", { cwd: values.pages })
    .sort()
    .map((file) => join(values.pages, file))
    .flatMap((page): Asked[] =>
      blocksOf(readFileSync(page, "utf8")).map((block) => ({ page, ...block, commit: commitOf(block) })),
    )
    .filter(({ words: [name = ""] }) => values.only.length === 0 || values.only.includes(name));
  const commit = commitNow();
  const left: string[] = [];
  for (const one of asked) {
    const where = `${basename(one.page)}: ${one.command}`;
    if (values.list) {
      process.stdout.write(`${where}: ${one.commit ?? "never measured"}\n`);
      continue;
    }
    if (one.commit === commit && !values.again) continue;
    const missing = missingFor(one.words);
    if (missing.length > 0) {
      left.push(`${where}: set ${missing.join(", ")}`);
      continue;
    }
    process.stdout.write(`\n# ${where}\n`);
    const origin = originNow(commit);
    const { code, printed } = await run(one.words);
    if (code === 0) writeFileSync(one.page, withFigures(readFileSync(one.page, "utf8"), one.command, printed, origin));
    else left.push(`${where}: ended with ${code}`);
  }
  for (const line of left) process.stderr.write(`release: left as it was: ${line}\n`);
  return left.length > 0 ? 1 : 0;
}

function missingFor(words: readonly string[]): string[] {
  const named = words.flatMap((word) => [...word.matchAll(/\$(\w+)/g)].map(([, name]) => name!));
  const needed = new Set([...named, ...(BENCHES[words[0]!]?.needs ?? [])]);
  return [...needed].filter((name) => (process.env[name] ?? "") === "");
}

/** Runs a bench, or a command of the program; what it prints is shown, too. */
async function run(words: readonly string[]): Promise<{ readonly code: number; readonly printed: string }> {
  const [name, ...args] = words.map((word) =>
    word.replaceAll(/\$(\w+)/g, (_, variable: string) => process.env[variable] ?? ""),
  );
  const file = name === "gnomon" ? "src/main.ts" : `bench/${name}.ts`;
  // What a bench keeps beside its output is not kept, and does not count as a change of the checkout.
  const cwd = mkdtempSync(join(tmpdir(), "gnomon-release-"));
  const child = spawn(process.execPath, [join(ROOT, file), ...args], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    process.stdout.write(text);
  });
  const [code] = (await once(child, "close")) as [number | null];
  rmSync(cwd, { recursive: true, force: true });
  return { code: code ?? 1, printed };
}

function originNow(commit: string): Origin {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const load = loadavg()[0]!.toFixed(0);
  const machine = `${availableParallelism()} cores (${model}), Node ${process.versions.node}, load ${load} before`;
  return { commit, date: new Date().toISOString().slice(0, 10), machine };
}

/** The pages themselves do not count: they change with each figure. */
function commitNow(): string {
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).trim();
  const changed = git("status", "--porcelain", "--", ".", ":!bench/pages");
  return git("rev-parse", "--short=8", "HEAD") + (changed === "" ? "" : "-dirty");
}

process.exitCode = await main();
