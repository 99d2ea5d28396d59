import type { PlannedFigureKey } from "#shadow/job/rollout-sample.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { predictedTimes, predictingCandidate } from "#shadow/rollout/prediction.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { simulatedRollout } from "#shadow/job/simulated-rollout.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { candidateNamed, madeSetting } from "./study-setting.ts";

const POWER = 0.8;
const LEVEL = 0.05;
const KEY: PlannedFigureKey = "e2e.mean";
const CONVERSATIONS_PER_SECOND = 6;
const PILOT_SEED = 5001;
const PILOT_SECONDS = 600;
/** About as many as a plan simulates of a trace as long. */
const PILOT_RUNS = 12;
const WINDOW_SECONDS: readonly number[] = [10, 20];
/** Before the rollout caches fill, as in the plan. */
const START_SECONDS = 30;
/** A plan beyond it is not run. */
const SECONDS_MAX = 1800;

/**
 * A known difference: planned from one trace of ten minutes, as `gnomon rollout plan` does, then run on other traffic
 * of the same kind for as long as planned, without and with predictions of a simulator whose engines are a tenth too
 * slow.
 */
export async function detection(control: string, other: string, runs: number, design?: string): Promise<void> {
  print(
    `A/B: ${control} against ${other}, mean E2E, power ${100 * POWER} %, ${runs} runs each, planned from ${PILOT_SECONDS} s`,
  );
  print("design               predictions   truth ms   shows ms   variance left   planned s   found by then");
  const setting = madeSetting(CONVERSATIONS_PER_SECOND, PILOT_SECONDS, PILOT_SEED);
  const arms = [candidateNamed(control), candidateNamed(other)] as const;
  const all = namedDesigns({
    spanMicros: PILOT_SECONDS * MICROS_PER_SECOND,
    requests: setting.workload.length,
    endpoints: setting.endpoints.length,
    hasSessions: true,
    hasTenants: true,
    canarySteps: [25],
    windowMicros: WINDOW_SECONDS.map((seconds) => seconds * MICROS_PER_SECOND),
  });
  const designs = all.filter(({ name }) => design === undefined || name.startsWith(design));
  const asked = { power: POWER, level: LEVEL, figure: KEY, hours: [1] };
  const study = await rolloutStudy({
    setting,
    control: arms[0],
    other: arms[1],
    designs: () => designs,
    runs: PILOT_RUNS,
    ...asked,
  });
  for (const one of study.designs) {
    for (const adjusted of [false, true]) {
      const { truth, estimate, varianceLeft, hours, hoursAdjusted } = one.figures[KEY];
      const seconds = 3600 * ((adjusted ? hoursAdjusted : hours) ?? Infinity);
      const cells = [ms(truth), ms(estimate), (adjusted ? (varianceLeft ?? NaN) : 1).toFixed(3).padStart(15)];
      const head = `${one.name.padEnd(20)} ${(adjusted ? "with" : "without").padEnd(11)} ${cells.join(" ")}`;
      if (!(seconds <= SECONDS_MAX))
        print(`${head} ${Number.isFinite(seconds) ? seconds.toFixed(0).padStart(11) : "   too long"}   not run`);
      else
        print(
          `${head} ${seconds.toFixed(0).padStart(11)} ${foundShare(one, arms, { seconds, adjusted, runs }).toFixed(0).padStart(13)} %`,
        );
    }
  }
}

interface Plan {
  readonly seconds: number;
  readonly adjusted: boolean;
  readonly runs: number;
}

/** Of so many rollouts, the percentage that found what the design shows by then. */
function foundShare(
  { design, figures }: DesignStudy,
  arms: Parameters<typeof simulatedRollout>[1]["arms"],
  { seconds, adjusted, runs }: Plan,
): number {
  const { estimate, valuesPerHour } = figures[KEY];
  let found = 0;
  for (let seed = 1; seed <= runs; seed++) {
    const setting = madeSetting(CONVERSATIONS_PER_SECOND, START_SECONDS + seconds, seed);
    const predicted = adjusted
      ? predictedTimes(runCandidate(setting, predictingCandidate(setting, arms[0])))
      : undefined;
    const startMicros = START_SECONDS * MICROS_PER_SECOND;
    const plannedCount = Math.max(3, (valuesPerHour * seconds) / 3600);
    let seen = false;
    simulatedRollout(
      setting,
      { arms, design, seed, replica: 0, startMicros, predicted, level: LEVEL, plannedCount },
      (_, judge) => {
        const { low, high } = judge.difference(1, "e2e", "mean");
        seen ||= estimate > 0 ? low > 0 : high < 0;
      },
    );
    if (seen) found++;
  }
  return (100 * found) / runs;
}

function ms(micros: number): string {
  return (micros / 1000).toFixed(1).padStart(10);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
