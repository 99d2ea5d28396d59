import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { shrunkMean } from "#core/rollout/verdict-line.ts";
import { outcomeRollout } from "./outcome-rollout.ts";
import { countIn, designsNamed, ownTraffic, SPEED, type TrustQuestion } from "./trust.ts";

const EFFECTS: readonly number[] = [0.05, 0.1, 0.3];

/** A known difference: found how often and when, intervals that hold it at every look, and what is shown at stopping. */
export function trustPower(question: TrustQuestion): void {
  const { runs, seconds } = question;
  print(
    `A/B of mean E2E, ${runs} rollouts of up to ${seconds} s: found, minutes until then (median), intervals that held the truth at`,
  );
  print("every look, and the difference at stopping: as measured, and as it is likely (percent of the truth)");
  for (const [name, design] of designsNamed(question)) {
    if (design.kind === "pools" || design.kind === "canary") continue;
    const cells = EFFECTS.map((effect) => {
      const [minutes, shown, likely]: [number[], number[], number[]] = [[], [], []];
      let held = 0;
      for (let seed = 1; seed <= runs; seed++) {
        let found = false;
        let holds = true;
        const plannedCount = countIn(design, seconds);
        outcomeRollout({
          traffic: ownTraffic(seed, seconds),
          design,
          seed,
          seconds,
          plannedCount,
          guardrails: [],
          speed: SPEED,
          effect: (outcome) => ({ ...outcome, ttft: (1 + effect) * outcome.ttft, tpot: (1 + effect) * outcome.tpot }),
          looked: ({ at, watch, verdict }) => {
            const one = verdict.differences.find(({ metric, figure }) => metric === "e2e" && figure === "mean")!;
            // Of all requests that are compared, those of both arms without the effect.
            const { history, totals } = watch.judge;
            const compared =
              design.kind === "switchback"
                ? history
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
            if (Number.isFinite(one.low)) holds &&= one.low <= truth && truth <= one.high;
            if (found || !(one.low > 0)) return;
            found = true;
            minutes.push((at / MICROS_PER_SECOND - 60) / 60);
            shown.push(one.mean / truth);
            likely.push(shrunkMean(one, plannedCount) / truth);
          },
        });
        if (holds) held++;
      }
      const mean = (of: readonly number[]) =>
        of.length === 0 ? "-" : ((100 * of.reduce((a, b) => a + b, 0)) / of.length).toFixed(0);
      const median = minutes.toSorted((a, b) => a - b)[Math.floor(minutes.length / 2)]?.toFixed(0) ?? "-";
      return `+${100 * effect} %: ${((100 * minutes.length) / runs).toFixed(0)} % in ${median}, held ${((100 * held) / runs).toFixed(0)} %, shown ${mean(shown)}, likely ${mean(likely)}`;
    });
    print(`${name.padEnd(17)} ${cells.join(" | ")}`);
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
