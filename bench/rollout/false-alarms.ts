import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { TRAFFICS, workloadOf } from "./fleet.ts";
import { designsOf, LEVEL, rolloutRun, SECOND } from "./rollout-run.ts";

export const WINDOW_SECONDS = 6;
export const CONVERSATIONS_PER_SECOND = 6;

/** Blocks, windows or clusters that a run of that many seconds has. */
export function countIn(design: string, seconds: number): number {
  if (design === "switchback") return seconds / WINDOW_SECONDS / 2;
  if (design === "pools") return seconds / WINDOW_SECONDS;
  return seconds * CONVERSATIONS_PER_SECOND * (design === "split by session" ? 1 : 3);
}

/**
 * A profile rolled out against itself: whatever is found is a false alarm. Looked at twice in each window, from the first to
 * the last; one interval that leaves out 0 at one look is enough. Each figure has the level for itself.
 */
export function falseAlarms(runs: number, seconds: number): void {
  const figures = TIME_METRICS.map((metric) => `${metric}.mean`).join("  ");
  print(
    `A/A: ${runs} rollouts of gnomon against itself, ${seconds} s each, windows of ${WINDOW_SECONDS} s, level ${LEVEL}`,
  );
  print(`runs with an alarm at any look\ndesign             ${figures}  ttft.p99   requests failed`);
  for (const [name, design] of Object.entries(designsOf(WINDOW_SECONDS))) {
    const alarms = [0, 0, 0, 0];
    let failed = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const workload = workloadOf(TRAFFICS[0]!, CONVERSATIONS_PER_SECOND, seconds, seed);
      const found = [false, false, false, false];
      const plannedCount = countIn(name, seconds);
      const result = rolloutRun({
        control: "gnomon",
        other: "gnomon",
        design,
        workload,
        seed,
        plannedCount,
        looked: (at, judge) => {
          if (at > seconds * SECOND) return;
          const looks = TIME_METRICS.map((metric) => judge.difference(1, metric, "mean"));
          looks.push(judge.difference(1, "ttft", "p99"));
          looks.forEach(({ low, high }, i) => (found[i] ||= low > 0 || high < 0));
        },
      });
      failed += result.failed;
      found.forEach((one, i) => (alarms[i]! += one ? 1 : 0));
    }
    const cells = alarms.map((count) => `${((100 * count) / runs).toFixed(1)} %`.padStart(8));
    print(`${name.padEnd(16)} ${cells.map((cell) => cell.padStart(10)).join(" ")} ${failed}`);
  }
  const error = Math.sqrt((LEVEL * (1 - LEVEL)) / runs);
  print(
    `promised: at most ${100 * LEVEL} %; the standard error of a share that is exactly that: ${(100 * error).toFixed(1)} %`,
  );
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
