import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import { type NamedDesign, namedDesigns } from "#shadow/job/rollout-design.ts";
import { simulatedRollout } from "#shadow/job/simulated-rollout.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { candidateNamed } from "./study-setting.ts";

const LEVEL = 0.05;
/** Steps of the canary, each as long as a tenth of the rollout. */
const STEPS: readonly number[] = [1, 5, 25, 50];

export interface AaQuestion {
  readonly about: string;
  /** The traffic of a run, the same or another one each time. */
  readonly settingOf: (run: number) => Setting;
  readonly spanSeconds: number;
  readonly windowSeconds: number;
  readonly runs: number;
  /** Of all where it is left out. */
  readonly design?: string | undefined;
}

/**
 * A profile rolled out against itself: whatever is found is a false alarm. Looked at twice in each window, from the
 * first to the last; one interval that leaves out 0 at one look is enough. Each figure has the level for itself, and so
 * have all guardrails together, those that a rollout has by default, looked at every second; a rollout that one takes
 * back ends there.
 */
export function falseAlarms({ about, settingOf, spanSeconds, windowSeconds, runs, design }: AaQuestion): void {
  print(
    `A/A on ${about}: ${runs} rollouts of gnomon against itself, ${spanSeconds} s each, windows of ${windowSeconds} s, level ${LEVEL}`,
  );
  const keys = [...TIME_METRICS.map((metric) => [metric, "mean"] as const), ["ttft", "p99"] as const];
  print(
    `runs with an alarm at any look\ndesign              ${keys.map((key) => key.join(".").padStart(10)).join("")} taken back   any`,
  );
  for (const named of designs(settingOf(1), spanSeconds, windowSeconds)) {
    if (design !== undefined && !named.name.startsWith(design)) continue;
    const alarms = keys.map(() => 0);
    let [back, any] = [0, 0];
    for (let run = 1; run <= runs; run++) {
      const found = keys.map(() => false);
      const arms = [candidateNamed("gnomon"), candidateNamed("gnomon")] as const;
      const rollout = {
        arms,
        design: named.design,
        seed: run,
        replica: 0,
        startMicros: 0,
        predicted: undefined,
        level: LEVEL,
        plannedCount: countIn(named, spanSeconds),
        guardrails: defaultGuardrails(),
      };
      const { takenBack } = simulatedRollout(settingOf(run), rollout, (_, judge) => {
        keys.forEach(([metric, figure], i) => {
          const { low, high } = judge.difference(1, metric, figure);
          found[i] ||= low > 0 || high < 0;
        });
      });
      if (takenBack) back++;
      if (takenBack || found.includes(true)) any++;
      found.forEach((one, i) => (alarms[i]! += one ? 1 : 0));
    }
    const cells = [...alarms, back, any].map((count) => `${((100 * count) / runs).toFixed(1)} %`.padStart(10));
    print(`${named.name.padEnd(20)}${cells.join("")}`);
  }
  const error = Math.sqrt((LEVEL * (1 - LEVEL)) / runs);
  print(
    `promised: at most ${100 * LEVEL} %; the standard error of a share that is exactly that: ${(100 * error).toFixed(1)} %`,
  );
}

/** Every design, the canary with all its steps. */
function designs(setting: Setting, spanSeconds: number, windowSeconds: number): NamedDesign[] {
  const rows = [...setting.workload];
  const all = namedDesigns({
    spanMicros: spanSeconds * MICROS_PER_SECOND,
    requests: rows.length,
    endpoints: setting.endpoints.length,
    hasSessions: rows.some(({ session, blockIds }) => session !== "" || blockIds !== undefined),
    hasTenants: new Set(rows.map(({ tenant }) => tenant)).size > 1,
    canarySteps: STEPS,
    windowMicros: [windowSeconds * MICROS_PER_SECOND],
  });
  const canary = all.find(({ design }) => design.kind === "canary")!;
  const dwell = Math.round((spanSeconds / (STEPS.length + 1)) * MICROS_PER_SECOND);
  const stepped: NamedDesign = {
    name: `canary ${STEPS.join(" ")} %`,
    design: { ...canary.design, windowMicros: dwell, stepPercents: STEPS } as NamedDesign["design"],
    stages: STEPS.length,
  };
  return [...all.filter(({ design }) => design.kind !== "canary"), stepped];
}

/** Blocks or clusters that the plan counts with; that a guess is wrong widens intervals, and nothing else. */
function countIn({ design }: NamedDesign, seconds: number): number {
  const windows = (seconds * MICROS_PER_SECOND) / design.windowMicros;
  if (design.kind === "switchback") return windows / 2;
  return design.kind === "pools" ? windows : 20 * windows;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
