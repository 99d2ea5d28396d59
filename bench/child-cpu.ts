import { spawnSync } from "node:child_process";

/** User and system time of a command and what it starts, in seconds; throws where it fails. */
export function cpuSecondsOf(command: readonly string[], cwd: string): number {
  const line = ["TIMEFORMAT='%U %S'; time \"$@\" >/dev/null 2>&1"];
  const run = spawnSync("bash", ["-c", ...line, "bash", ...command], { cwd });
  const [user = NaN, system = NaN] = run.stderr.toString().trim().split(/\s+/).map(Number);
  if (run.status !== 0 || Number.isNaN(user)) throw new Error(`${command.join(" ")} failed: ${run.stderr.toString()}`);
  return user + system;
}
