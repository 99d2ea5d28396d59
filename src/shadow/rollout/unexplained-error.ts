import { assignmentOf } from "#core/rollout/assignment.ts";
import { type TimeMetric, TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { plannedRollout, type RolloutState } from "#core/rollout/rollout-state.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import type { Micros } from "#core/base/units.ts";
import type { CandidateOutcome, Setting } from "../candidate/candidate.ts";
import type { Observed } from "../recorded/observed.ts";
import { twoArmPlan } from "../job/two-arm-plan.ts";

/** Draws of arms: their spread is known to within a twentieth. */
const DRAWS = 200;

/** By metric, microseconds; a design of which it is not known has none. */
export type UnexplainedErrors = Readonly<Partial<Record<TimeMetric, number>>>;

/**
 * What rollouts of the control against itself would differ by because of what the model does not explain: the
 * deviation, over draws of the design's arms, of the difference of the means of what was observed less what was
 * simulated, on the traffic that was recorded. Simulated rollouts know nothing of it; live ones have it beside what
 * they share with the simulated ones. With pools nothing was recorded that shows it.
 */
export function unexplainedErrors(
  design: Design,
  { workload, seed }: Pick<Setting, "workload" | "seed">,
  { simulated, observed }: { readonly simulated: CandidateOutcome; readonly observed: readonly Observed[] },
  startMicros: Micros,
): UnexplainedErrors {
  if (design.kind === "pools" || design.kind === "shadow") return {};
  const rows = [...workload].flatMap(({ session, tenant }, row) => {
    const at = simulated.arrivalMicros[row]!;
    return at >= startMicros ? [{ row, at, request: { id: String(row), session, tenant } }] : [];
  });
  const states = Array.from({ length: DRAWS }, (_, draw): RolloutState => {
    const plan = twoArmPlan(design, seed + 1 + draw);
    return { ...plannedRollout(plan, startMicros), phase: "running" };
  });
  const assigned = states.map((state) => rows.map(({ at, request }) => assignmentOf(request, at, state)));
  const entries = TIME_METRICS.flatMap((metric) => {
    const left = rows.map(({ row }) => observedTime(observed[row]!, metric) - simulated[`${metric}Micros`][row]!);
    const found = assigned.map((ofDraw) => {
      const blocks = new Map<number, [number, number, number, number]>();
      ofDraw.forEach(({ arm, window, counted }, i) => {
        const value = left[i]!;
        if (!counted || !Number.isFinite(value)) return;
        const block = design.kind === "switchback" ? Math.floor(window / 2) : 0;
        const sums = blocks.get(block) ?? [0, 0, 0, 0];
        blocks.set(block, sums);
        sums[2 * arm]! += value;
        sums[2 * arm + 1]!++;
      });
      return meanDifference(blocks.values());
    });
    const error = Math.sqrt(found.reduce((sum, one) => sum + one * one, 0) / DRAWS);
    return Number.isFinite(error) ? [[metric, error] as const] : [];
  });
  return Object.fromEntries(entries);
}

/** Weighted as the judge weighs blocks: as sure as a difference of means of so many requests is. */
function meanDifference(blocks: Iterable<readonly [number, number, number, number]>): number {
  let [sum, weights] = [0, 0];
  for (const [control, controls, other, others] of blocks) {
    if (controls === 0 || others === 0) continue;
    const weight = (controls * others) / (controls + others);
    sum += weight * (other / others - control / controls);
    weights += weight;
  }
  return sum / weights;
}

function observedTime({ ok, ttftMicros, e2eMicros, outputTokens }: Observed, metric: TimeMetric): number {
  if (!ok) return NaN;
  if (metric === "ttft") return ttftMicros;
  return metric === "e2e" ? e2eMicros : outputTokens > 1 ? (e2eMicros - ttftMicros) / (outputTokens - 1) : NaN;
}
