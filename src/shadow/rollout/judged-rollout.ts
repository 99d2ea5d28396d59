import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { ArmTally } from "#core/rollout/judge/arm-tally.ts";
import { type TimeMetric, TIME_FIGURES, TIME_METRICS, type Times } from "#core/rollout/judge/outcome.ts";
import type { Difference } from "#core/rollout/judge/verdict.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { type CandidateOutcome, runCandidate, type Setting } from "../candidate/candidate.ts";
import type { Metric } from "../figure/metric.ts";
import { type ReplayedRollouts, replayedRollouts } from "./replayed-rollouts.ts";

/** What a recorded rollout came to. */
export interface JudgedRollout {
  readonly name: string;
  /** The control first. */
  readonly arms: readonly { readonly name: string; readonly profile: string; readonly tally: ArmTally }[];
  readonly phase: string;
  readonly level: number;
  /** Every figure of every arm but the control, as measured and adjusted by predictions. */
  readonly differences: readonly { readonly measured: Difference; readonly adjusted: Difference }[];
}

/** A rollout of a trace, and the policy of its control. */
export interface RecordedControl {
  readonly replayed: ReplayedRollouts;
  readonly rollout: string;
  readonly control: ProfileSpec;
}

/** The named rollout of a trace, or the last one; a text states why there is none. */
export async function recordedControl(
  items: AsyncIterable<TraceItem>,
  name: string | undefined,
): Promise<RecordedControl | string> {
  const replayed = await replayedRollouts(items);
  const { header, rollouts } = replayed;
  const known = rollouts.book.map(({ plan }) => plan.name);
  const state = name === undefined ? rollouts.book.at(-1) : rollouts.book.find(({ plan }) => plan.name === name);
  if (state === undefined) return known.length === 0 ? "the trace has no rollout" : `expected ${known.join(", ")}`;
  const [arm] = state.plan.arms;
  const own = rollouts.spec(state.plan.name)?.profiles[arm!.profile];
  const control = own ?? header.router.profiles[arm!.profile] ?? header.router.profiles[header.router.defaultProfile]!;
  return { replayed, rollout: state.plan.name, control };
}

/**
 * Judges a recorded rollout with what the simulator predicts of each request if the control had routed all: known without
 * the draw of arms, it takes away what traffic differs in from window to window and from session to session. `requestIds`
 * are those of the setting's workload, in its order; `items` is the trace once more.
 */
export async function judgedRollout(
  { replayed, rollout, control }: RecordedControl,
  setting: Setting,
  requestIds: readonly string[],
  items: AsyncIterable<TraceItem>,
): Promise<JudgedRollout> {
  const again = setting.workload.length === 0 ? replayed : await predictedRollouts(setting, control, requestIds, items);
  const [plain, adjusted] = [replayed, again].map(({ rollouts }) => rollouts.watch(rollout)!);
  const { plan, phase } = plain!.state;
  const others = plan.arms.map((_, arm) => arm).slice(1);
  return {
    name: rollout,
    arms: plan.arms.map(({ name, profile }, arm) => ({ name, profile, tally: plain!.judge.totals[arm]! })),
    phase,
    level: replayed.rollouts.spec(rollout)!.rules.level,
    differences: others.flatMap((arm) =>
      TIME_METRICS.flatMap((metric) =>
        TIME_FIGURES.map((figure) => ({
          measured: plain!.judge.difference(arm, metric, figure),
          adjusted: adjusted!.judge.difference(arm, metric, figure),
        })),
      ),
    ),
  };
}

/** The rollouts once more, with what the simulator predicts of each request if the control routes all. */
async function predictedRollouts(
  setting: Setting,
  control: ProfileSpec,
  requestIds: readonly string[],
  items: AsyncIterable<TraceItem>,
): Promise<ReplayedRollouts> {
  const outcome = runCandidate(setting, { name: "control", spec: control });
  const rows = new Map(requestIds.map((id, row) => [id, row]));
  return replayedRollouts(items, ({ id }) => timesOf(outcome, rows.get(id)));
}

function timesOf(outcome: CandidateOutcome, row: number | undefined): Times | undefined {
  if (row === undefined) return undefined;
  const of = (metric: TimeMetric) => {
    const value = outcome[`${metric}Micros` satisfies Metric][row]!;
    return Number.isNaN(value) ? undefined : value;
  };
  return { ttft: of("ttft"), tpot: of("tpot"), e2e: of("e2e") };
}
