import { Judge } from "#core/rollout/judge/judge.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import type { Micros } from "#core/base/units.ts";
import type { CandidateOutcome } from "../candidate/candidate.ts";
import type { RolloutSample } from "../job/rollout-sample.ts";
import { sampleOf } from "../job/sample-of.ts";
import { judgeOptions, twoArmPlan } from "../job/two-arm-plan.ts";

/**
 * What a design would find if arms had no effect on one another: the whole fleet by the control against the whole fleet by
 * the other, on the same requests, counted as the design counts (its windows and washout; p99 of windows). What a design
 * finds less this is its bias.
 */
export function rolloutTruth(
  outcomes: readonly [control: CandidateOutcome, other: CandidateOutcome],
  design: Design,
  startMicros: Micros,
): RolloutSample {
  const { windowMicros } = design;
  // Every window has both arms, as with pools; where clusters are compared all requests are, as in a split.
  const byCluster = design.kind === "split" || design.kind === "canary";
  const plan = twoArmPlan(
    byCluster
      ? { kind: "split", windowMicros, by: "request" }
      : { kind: "pools", windowMicros, by: "request", label: "none" },
    0,
  );
  const judge = new Judge({ ...judgeOptions(plan, 0.05, 100), windowSamplesMin: 1 });
  const [control] = outcomes;
  control.arrivalMicros.forEach((at, row) => {
    const since = at - startMicros;
    // A conversation's later turn comes when its last one has ended, which is another time under each; it counts where it
    // came under the control.
    if (!(since >= 0)) return;
    const window = Math.floor(since / windowMicros);
    if (design.kind === "switchback" && since - window * windowMicros < design.washoutMicros) return;
    outcomes.forEach(({ ttftMicros, tpotMicros, e2eMicros, arrivalMicros }, arm) => {
      if (Number.isNaN(arrivalMicros[row]!)) return;
      const known = (column: Float64Array) => (Number.isNaN(column[row]!) ? undefined : column[row]!);
      judge.arrived(window, startMicros + (window + 1) * windowMicros);
      judge.observe({
        arm,
        window,
        counted: true,
        stretch: window,
        slice: 0,
        cluster: String(row),
        status: Number.isNaN(e2eMicros[row]!) ? "failed" : "ok",
        times: { ttft: known(ttftMicros), tpot: known(tpotMicros), e2e: known(e2eMicros) },
        endpoint: "",
        promptTokens: 0,
        cachedTokens: undefined,
      });
    });
  });
  judge.advance(Infinity);
  return { ...sampleOf(judge, plan), takenBack: false };
}
