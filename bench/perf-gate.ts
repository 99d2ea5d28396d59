/**
 * Whether this commit takes more CPU time than its parent: both are run in turns, and the middle of the paired ratios
 * counts.
 *
 *     node bench/perf-gate.ts [--base HEAD^] [--rounds 9] [--limit 1.2] [--requests 15000]
 *
 * Ends with exit code 1 where some case's ratio is above the limit. Each round runs a case of the base and of this
 * checkout one right after the other, in changing order, and compares their CPU time (user and system), which another
 * program on the machine moves much less than the wall's; a ratio of pairs, and the middle of them, leaves what moves
 * both alike. It is no part of the tests: a machine that many share can still be off by some percent. The base is
 * checked out beside this one for as long as it takes, and uses its dependencies.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { median } from "#core/base/quantile.ts";
import { cpuSecondsOf } from "./child-cpu.ts";

const { values } = parseArgs({
  options: {
    base: { type: "string", default: "HEAD^" },
    rounds: { type: "string", default: "9" },
    limit: { type: "string", default: "1.2" },
    requests: { type: "string", default: "15000" },
  },
});
const limit = Number(values.limit);
const root = join(import.meta.dirname, "..");
const git = (...args: readonly string[]): string => execFileSync("git", args, { cwd: root }).toString().trim();

/** What is measured: the router's decisions, index and ledger, the engine model, gauges and events, and a start. */
const CASES: Readonly<Record<string, readonly string[]>> = {
  "simulate, gnomon": simulating("--profile", "gnomon", "--rate", "40"),
  "simulate, llm-d, 32 engines": simulating("--profile", "llm-d", "--num-instances", "32", "--rate", "160"),
  "simulate, long prompts": simulating("--workload-spec", "documents"),
  start: ["profiles"],
};

const folder = mkdtempSync(join(tmpdir(), "gnomon-perf-"));
const base = join(folder, "base");
try {
  git("worktree", "add", "--quiet", "--detach", base, values.base);
  symlinkSync(join(root, "node_modules"), join(base, "node_modules"));
  process.stdout.write(`${git("rev-parse", "--short", "HEAD")} beside ${git("rev-parse", "--short", values.base)}\n`);
  for (const [name, args] of Object.entries(CASES)) compare(name, args);
} finally {
  git("worktree", "remove", "--force", base);
  rmSync(folder, { recursive: true, force: true });
}

function simulating(...flags: readonly string[]): readonly string[] {
  return ["simulate", "--num-requests", values.requests, ...flags];
}

function compare(name: string, args: readonly string[]): void {
  cpuSeconds(base, args);
  cpuSeconds(root, args);
  const ratios = Array.from({ length: Number(values.rounds) }, (_, round) => {
    const before = round % 2 === 0 ? cpuSeconds(base, args) : NaN;
    const own = cpuSeconds(root, args);
    return own / (round % 2 === 0 ? before : cpuSeconds(base, args));
  });
  const middle = median(ratios);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const verdict = middle > limit ? `above ${limit}` : "ok";
  process.stdout.write(`${verdict.padEnd(10)} ${name}: ${middle.toFixed(3)} times the base's CPU time (${range})\n`);
  if (middle > limit) process.exitCode = 1;
}

function cpuSeconds(checkout: string, args: readonly string[]): number {
  return cpuSecondsOf([process.execPath, join(checkout, "src/main.ts"), ...args], checkout);
}
