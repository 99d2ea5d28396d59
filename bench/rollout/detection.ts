import { valuesToFind } from "#core/rollout/judge/confidence-sequence.ts";
import type { TimeMetric } from "#core/rollout/judge/outcome.ts";
import type { RouteRequest } from "#core/request.ts";
import { simulate } from "#sim/simulate.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { CONVERSATIONS_PER_SECOND, countIn, WINDOW_SECONDS } from "./false-alarms.ts";
import { arrivalsOf, clusterOf, profileNamed, TRAFFICS, workloadOf } from "./fleet.ts";
import { designsOf, LEVEL, rolloutRun } from "./rollout-run.ts";

const PILOT_SEEDS = 15;
/** Normal quantile of the power that is planned with: 80 %. */
const STANDARD_ERRORS = 0.84;
/** A prediction whose engines are a tenth slower than those that serve. */
const PREDICTED_SPEED = 1.1;
const METRIC: TimeMetric = "e2e";

/**
 * A known difference: planned from pilot runs (the effect, the deviation of a block), then run for as long as planned. With
 * predictions of the control's simulator, whose engines are wrong by a tenth, and without.
 */
export function detection(control: string, other: string, runs: number, pilotSeconds: number): void {
  print(
    `A/B: ${control} against ${other}, mean E2E, power 80 %, ${runs} runs each, pilot ${PILOT_SEEDS} x ${pilotSeconds} s`,
  );
  print("design             adjusted   effect ms   deviation ms   variance left   planned s   found by then");
  for (const [name, design] of Object.entries(designsOf(WINDOW_SECONDS))) {
    if (name === "split by request") continue;
    for (const adjusted of [false, true]) {
      const run = (seconds: number, seed: number, looked?: Parameters<typeof rolloutRun>[0]["looked"]) => {
        const workload = workloadOf(TRAFFICS[0]!, CONVERSATIONS_PER_SECOND, seconds, seed);
        const predictionOf = adjusted ? predictionsOf(workload, control, seed) : undefined;
        return rolloutRun({
          control,
          other,
          design,
          workload,
          seed,
          plannedCount: countIn(name, seconds),
          ...(predictionOf !== undefined && { predictionOf }),
          ...(looked !== undefined && { looked }),
        }).difference(METRIC, "mean");
      };
      const pilots = Array.from({ length: PILOT_SEEDS }, (_, i) => run(pilotSeconds, 1000 + 7919 * i));
      const effect = mean(pilots.map((pilot) => pilot.mean));
      const variance = mean(pilots.map(({ deviation }) => deviation ** 2));
      const options = { level: LEVEL, standardErrors: STANDARD_ERRORS, valuesMax: countIn(name, 3600) };
      const needed = valuesToFind(effect, Math.sqrt(variance), options);
      const head = [
        `${name.padEnd(18)} ${(adjusted ? "yes" : "no").padEnd(8)}`,
        (effect / 1000).toFixed(1).padStart(11),
        (Math.sqrt(variance) / 1000).toFixed(1).padStart(14),
        mean(pilots.map(({ varianceLeft }) => varianceLeft))
          .toFixed(2)
          .padStart(15),
      ].join(" ");
      if (needed === undefined) {
        print(`${head}   above an hour`);
        continue;
      }
      const seconds = Math.ceil(needed / countIn(name, 2 * WINDOW_SECONDS)) * 2 * WINDOW_SECONDS;
      let found = 0;
      for (let seed = 1; seed <= runs; seed++) {
        let seen = false;
        const last = run(seconds, seed, (_, judge) => {
          const { low, high } = judge.difference(1, METRIC, "mean");
          seen ||= effect > 0 ? low > 0 : high < 0;
        });
        if (seen || (effect > 0 ? last.low > 0 : last.high < 0)) found++;
      }
      print(`${head} ${String(seconds).padStart(11)} ${((100 * found) / runs).toFixed(0).padStart(13)} %`);
    }
  }
}

/** What the simulator says of each request if the control routes all. */
function predictionsOf(workload: readonly WorkloadRequest[], control: string, seed: number) {
  const arrivals = arrivalsOf(workload, seed);
  const { outcomes } = simulate(clusterOf({ control: profileNamed(control) }, arrivals, seed + 1, PREDICTED_SPEED));
  const rows = new Map(outcomes.ids.map((id, row) => [id, row]));
  return ({ id }: RouteRequest) => {
    const row = rows.get(id);
    return row === undefined ? undefined : { ttft: outcomes.ttft[row]!, tpot: undefined, e2e: outcomes.e2e[row]! };
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
