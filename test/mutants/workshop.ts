import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { testProcesses } from "../processes.ts";
import { ImportGraph } from "./import-graph.ts";
import { type Mutant, mutated } from "./mutant.ts";

export type Verdict =
  | { readonly kind: "killed"; readonly by: string; readonly isFar: boolean }
  | { readonly kind: "timeout" }
  | { readonly kind: "survived"; readonly files: number; readonly reaching: number }
  | { readonly kind: "unreached" };

export interface WorkshopOptions {
  readonly root: string;
  readonly testFiles: readonly string[];
  /** Test files tried on one mutant, nearest first. */
  readonly filesMax: number;
  /** What survives these is tried on further ones, up to so many in all. */
  readonly filesFar: number;
  /** Bound on one run of test files. */
  readonly runMillisMax: number;
}

/** What a run of test files came to: the first failure, nothing, or no end. */
type Ran = { readonly failed: string } | "passed" | "timeout";

/** Files of a mutant's first run, which most mutants do not outlive; each later run has more. */
const FILES_FIRST = 3;
const FILES_GROWTH = 4;
/** So that a run ends within its bound. */
const FILES_BATCH_MAX = 12;
/** One test, or one file with a process of its own; a promise that never settles would end its file without a word. */
const TEST_MILLIS_MAX = 40_000;
/** A line of TAP. */
const FAILED = /^\s*not ok \d+ - (.*)$/;
const HEAP_MIB_MAX = 1_536;
const COPIED = [
  "src",
  "test",
  "bench",
  "bin",
  "config",
  "deploy",
  "k8s",
  "docs",
  "package.json",
  "README.md",
  "ARCHITECTURE.md",
  "LICENSE",
];

/** A copy of the tree in which mutants are tried, one after another. */
export class Workshop {
  readonly #options: WorkshopOptions;
  /** Where the copy is. */
  readonly folder: string;
  readonly #near: (file: string) => readonly string[];
  /** What runs of unchanged files came to, by their names. */
  readonly #unchanged = new Map<string, Ran>();
  /** Test files that fail without any change; they say nothing of a mutant. */
  readonly broken = new Set<string>();
  /** Test files that pass, but not in one run with the others of their batch: they are run one by one. */
  readonly #apart = new Set<string>();

  constructor(options: WorkshopOptions) {
    this.#options = options;
    this.folder = mkdtempSync(join(tmpdir(), "gnomon-mutants-"));
    for (const one of COPIED) cpSync(join(options.root, one), join(this.folder, one), { recursive: true });
    symlinkSync(join(options.root, "node_modules"), join(this.folder, "node_modules"));
    this.#near = nearness(options);
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs the tests that reach the mutant's file, nearest first, until one fails. */
  async judge(mutant: Mutant): Promise<Verdict> {
    const reaching = this.#near(mutant.file).filter((file) => !this.broken.has(file));
    if (reaching.length === 0) return { kind: "unreached" };
    const { filesMax, filesFar } = this.#options;
    const near = batches(reaching.slice(0, filesMax), this.#apart);
    const far = batches(reaching.slice(filesMax, filesFar), this.#apart);
    for (const [i, batch] of [...near, ...far].entries()) {
      const ran = await this.#mutatedRun(mutant, batch);
      if (ran === "passed") continue;
      // A failure counts where the same files pass without the change.
      if ((await this.#unchangedRun(batch)) !== "passed") {
        await this.#findBroken(batch);
        return this.judge(mutant);
      }
      return ran === "timeout" ? { kind: "timeout" } : { kind: "killed", by: ran.failed, isFar: i >= near.length };
    }
    return { kind: "survived", files: Math.min(filesFar, reaching.length), reaching: reaching.length };
  }

  async #mutatedRun(mutant: Mutant, files: readonly string[]): Promise<Ran> {
    const path = join(this.folder, mutant.file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, mutated(text, mutant));
    try {
      return await this.#run(files);
    } finally {
      writeFileSync(path, text);
    }
  }

  async #unchangedRun(files: readonly string[]): Promise<Ran> {
    const key = files.join(" ");
    const known = this.#unchanged.get(key);
    if (known !== undefined) return known;
    const ran = await this.#run(files);
    this.#unchanged.set(key, ran);
    return ran;
  }

  /** A file alone that fails unchanged is broken; where each passes alone, none is. */
  async #findBroken(files: readonly string[]): Promise<void> {
    const before = this.broken.size;
    for (const file of files) if ((await this.#unchangedRun([file])) !== "passed") this.broken.add(file);
    if (this.broken.size > before) return;
    for (const file of files) this.#apart.add(file);
  }

  async #run(files: readonly string[]): Promise<Ran> {
    for (const { files: some, isShared } of testProcesses(files)) {
      const ran = await this.#spawn(some, isShared ? "none" : "process");
      if (ran !== "passed") return ran;
    }
    return "passed";
  }

  #spawn(files: readonly string[], isolation: "none" | "process"): Promise<Ran> {
    const argv = [
      `--max-old-space-size=${HEAP_MIB_MAX}`,
      "--import",
      "./test/property-seed.ts",
      "--test",
      `--test-isolation=${isolation}`,
      "--test-concurrency=1",
      `--test-timeout=${TEST_MILLIS_MAX}`,
      "--test-reporter=tap",
      ...files,
    ];
    const env = { ...process.env, NODE_COMPILE_CACHE: join(this.folder, ".compiled") };
    // A group of its own, so that what the tests started ends with them.
    const child = spawn(process.execPath, argv, {
      cwd: this.folder,
      env,
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    return new Promise((resolve) => {
      let output = "";
      const end = (ran: Ran): void => {
        clearTimeout(timer);
        endGroup(child.pid);
        resolve(ran);
      };
      const timer = setTimeout(() => end("timeout"), this.#options.runMillisMax);
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = (output + text).split("\n");
        output = lines.pop() ?? "";
        const failed = lines.map((line) => FAILED.exec(line)?.[1]).find((name) => name !== undefined);
        if (failed !== undefined) end({ failed });
      });
      child.once("close", (code) => end(code === 0 ? "passed" : { failed: "a process that ended early" }));
    });
  }
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nobody is left of it.
  }
}

/**
 * Test files that reach a file: those that load it themselves first, then those that name it, as plugins are named in
 * profiles, those of the same folder, fewest imports away, the lightest.
 */
function nearness({ root, testFiles }: WorkshopOptions): (file: string) => readonly string[] {
  const graph = new ImportGraph(root);
  const reached = new Map(testFiles.map((test) => [test, graph.reachedFrom(test)]));
  const texts = new Map(testFiles.map((test) => [test, readFileSync(join(root, test), "utf8")]));
  return (file) => {
    const mirrored = file.replace(/^src/, "test").replace(/[^/]*$/, "");
    const name = new RegExp(`\\b${basename(file, ".ts")}\\b`);
    const rank = (test: string): readonly number[] => {
      const distance = reached.get(test)!.get(file)!;
      const order = [distance === 1, name.test(texts.get(test)!), test.startsWith(mirrored)];
      return [...order.map((isNear) => (isNear ? 0 : 1)), distance, reached.get(test)!.size];
    };
    return testFiles
      .filter((test) => reached.get(test)!.has(file))
      .map((test) => ({ test, rank: rank(test) }))
      .sort((a, b) => compare(a.rank, b.rank))
      .map(({ test }) => test);
  };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at < 0 ? 0 : a[at]! - b[at]!;
}

/** Few files first, since most mutants die there; those that stand apart come last, each alone. */
function batches(files: readonly string[], apart: ReadonlySet<string>): string[][] {
  const together = files.filter((file) => !apart.has(file));
  const all: string[][] = [];
  let size = FILES_FIRST;
  for (let from = 0; from < together.length; size = Math.min(FILES_BATCH_MAX, size * FILES_GROWTH)) {
    all.push(together.slice(from, from + size));
    from += size;
  }
  return [...all, ...files.filter((file) => apart.has(file)).map((file) => [file])];
}
