import { simulate } from "#sim/simulate.ts";
import { arrivalsOf, clusterOf, profileNamed, TRAFFICS, workloadOf } from "./fleet.ts";
import { designsOf, rolloutRun } from "./rollout-run.ts";

const PAIRS: readonly (readonly [string, string])[] = [
  ["gnomon", "round-robin"],
  ["round-robin", "prefix-affinity"],
  ["gnomon", "always-busiest"],
];
/** New conversations a second, light and heavy. */
const LOADS: readonly number[] = [5, 14];
const WINDOW_SECONDS = 20;

/**
 * What each design would say the second profile changes, beside the truth: the whole fleet by one against the whole fleet by
 * the other on the same arrivals. Arms that share engines share queues and caches: a split lets one arm eat what the other
 * saves.
 */
export function bias(seeds: number, seconds: number): void {
  print(
    `Change of mean TTFT, ms (mean of ${seeds} runs of ${seconds} s, +- its standard error): truth, and each design less the truth`,
  );
  const designs = designsOf(WINDOW_SECONDS);
  print(`traffic          load  pair                              truth  ${Object.keys(designs).join("   ")}`);
  for (const traffic of TRAFFICS) {
    for (const load of LOADS) {
      for (const [control, other] of PAIRS) {
        const truths: number[] = [];
        const errors = Object.values(designs).map((): number[] => []);
        for (let seed = 1; seed <= seeds; seed++) {
          const workload = workloadOf(traffic, load, seconds, seed);
          const ttft = (profile: string) => {
            const { metrics } = simulate(
              clusterOf({ profile: profileNamed(profile) }, arrivalsOf(workload, seed), seed),
            );
            return metrics.ttftMicros["all"]!.mean;
          };
          const truth = ttft(other) - ttft(control);
          truths.push(truth);
          Object.values(designs).forEach((design, i) => {
            const { judge } = rolloutRun({ control, other, design, workload, seed, plannedCount: 100 });
            const [before, after] = judge.totals.map((tally) => tally.time("ttft", "mean"));
            errors[i]!.push(after! - before! - truth);
          });
        }
        const pair = `${control} -> ${other}`;
        const cells = [truths, ...errors].map((values) => meanAndError(values).padStart(15));
        print(`${traffic.name.padEnd(16)} ${String(load).padStart(4)}  ${pair.padEnd(28)} ${cells.join(" ")}`);
      }
    }
  }
}

function meanAndError(micros: readonly number[]): string {
  const mean = micros.reduce((sum, value) => sum + value, 0) / micros.length;
  const squares = micros.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const error = Math.sqrt(squares / Math.max(1, micros.length - 1) / micros.length);
  return `${(mean / 1000).toFixed(1)} +- ${(error / 1000).toFixed(1)}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
