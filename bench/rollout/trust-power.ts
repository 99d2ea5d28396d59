import type { WindowFigures } from "#core/rollout/judge/arm-figures.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { shrunkMean } from "#core/rollout/verdict-line.ts";
import { type OutcomeRollout, outcomeRollout } from "./outcome-rollout.ts";
import { countIn, designsNamed, keptAs, ownTraffic, SPEED, type TrustQuestion } from "./trust.ts";

const EFFECTS: readonly number[] = [0.05, 0.1, 0.3];

/** A known difference: found how often and when, intervals that hold it at every look, and what is shown at stopping. */
export function trustPower(question: TrustQuestion & { readonly only?: string | undefined }): void {
  const { runs, seconds, only = "", kept, trafficOf = ownTraffic, predicts = false } = question;
  print(
    `A/B of mean E2E, rollouts of up to ${seconds} s: found, minutes until then (median), intervals that held the truth at`,
  );
  print("every look, and the difference at stopping: as measured, and as it is likely (percent of the truth)");
  for (const [name, design] of designsNamed(question)) {
    if (design.kind === "pools" || design.kind === "canary") continue;
    const cells = EFFECTS.filter((effect) => `+${100 * effect} %`.startsWith(only)).map((effect) => {
      const all: Compared[] = [];
      for (let seed = 1; seed <= runs; seed++) {
        const one = kept.result(`ab ${effect} ${seconds} ${name} ${seed}${keptAs(question)}`, () =>
          comparedBy({ traffic: trafficOf(seed, seconds), design, seed, seconds, predicts }, effect),
        );
        if (one !== undefined) all.push(one);
      }
      const found = all.flatMap(({ found: one }) => (one === null ? [] : [one]));
      const mean = (of: (one: Found) => number) =>
        found.length === 0 ? "-" : ((100 * found.reduce((sum, one) => sum + of(one), 0)) / found.length).toFixed(0);
      const median = found.map(({ minutes }) => minutes).sort((one, other) => one - other)[found.length >> 1];
      return (
        `+${100 * effect} %: ${found.length} of ${all.length} in ${median?.toFixed(0) ?? "-"}, ` +
        `held ${all.filter(({ held }) => held).length}, shown ${mean(({ shown }) => shown)}, likely ${mean(({ likely }) => likely)}`
      );
    });
    print(`${name.padEnd(17)} ${cells.join(" | ")}`);
  }
}

/** When a difference was found, and what was shown and is likely of it then, over the true one. */
interface Found {
  readonly minutes: number;
  readonly shown: number;
  readonly likely: number;
}

interface Compared {
  readonly found: Found | null;
  /** Whether the interval held the truth at every look. */
  readonly held: boolean;
}

function comparedBy(
  run: Pick<OutcomeRollout, "traffic" | "design" | "seed" | "seconds" | "predicts">,
  effect: number,
): Compared {
  const { design, seconds } = run;
  let found: Found | null = null;
  let held = true;
  const plannedCount = countIn(design, seconds);
  // The judge keeps the last ones alone.
  const windows = new Map<number, WindowFigures>();
  outcomeRollout({
    ...run,
    plannedCount,
    guardrails: [],
    speed: SPEED,
    effect: (outcome) => ({ ...outcome, ttft: (1 + effect) * outcome.ttft, tpot: (1 + effect) * outcome.tpot }),
    looked: ({ at, watch, verdict }) => {
      const one = verdict.differences.find(({ metric, figure }) => metric === "e2e" && figure === "mean")!;
      // Of all requests that are compared, those of both arms without the effect.
      const { history, compared: totals } = watch.judge;
      for (const closed of history) windows.set(closed.window, closed);
      const compared =
        design.kind === "switchback"
          ? [...windows.values()]
              .slice(0, 2 * one.count)
              .map(({ arms }) => arms.map(({ requests, times }) => [requests, times.e2e.mean]))
          : [totals.map((tally) => [tally.samples("e2e"), tally.time("e2e", "mean")])];
      let [sum, requests] = [0, 0];
      for (const arms of compared) {
        arms.forEach(([count, mean], arm) => {
          sum += (count! * (mean ?? 0)) / (arm === 1 ? 1 + effect : 1);
          requests += count!;
        });
      }
      const truth = (effect * sum) / requests;
      if (Number.isFinite(one.low)) held &&= one.low <= truth && truth <= one.high;
      if (found !== null || !(one.low > 0)) return;
      const minutes = (at / MICROS_PER_SECOND - 60) / 60;
      found = { minutes, shown: one.mean / truth, likely: shrunkMean(one) / truth };
    },
  });
  return { found, held };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
