import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { TRAFFICS, workloadOf } from "./fleet.ts";
import { designsOf, rolloutRun, SECOND, START_MICROS } from "./rollout-run.ts";

const WINDOW_SECONDS = 10;
const CONVERSATIONS_PER_SECOND = 14;

/**
 * A worse profile under load, with guardrails: whether it is taken back, in which window, and a profile as good as the
 * control never.
 */
export function harm(runs: number, seconds: number, only?: string): void {
  print(`The guardrails that a rollout has by default, ${runs} runs of ${seconds} s, windows of ${WINDOW_SECONDS} s`);
  print("design             other            taken back   windows until then (mean, most)   requests failed");
  for (const [name, design] of Object.entries(designsOf(WINDOW_SECONDS))) {
    if (only !== undefined && !name.startsWith(only)) continue;
    for (const other of ["always-busiest", "gnomon"]) {
      const windows: number[] = [];
      let failed = 0;
      for (let seed = 1; seed <= runs; seed++) {
        const workload = workloadOf(TRAFFICS[0]!, CONVERSATIONS_PER_SECOND, seconds, seed);
        const guardrails = defaultGuardrails();
        const run = rolloutRun({ control: "gnomon", other, design, workload, seed, plannedCount: 20, guardrails });
        const back = run.steps.find(({ step }) => step === "rollback");
        if (back !== undefined) windows.push((back.at - START_MICROS) / (WINDOW_SECONDS * SECOND));
        failed += run.failed;
      }
      const mean = windows.reduce((sum, value) => sum + value, 0) / windows.length;
      const times = windows.length === 0 ? "-" : `${mean.toFixed(1)}, ${Math.max(...windows).toFixed(1)}`;
      print(
        `${name.padEnd(18)} ${other.padEnd(16)} ${`${windows.length} of ${runs}`.padStart(10)} ${times.padStart(20)} ${failed}`,
      );
    }
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
