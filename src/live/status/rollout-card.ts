import type { TimeMetric } from "#core/rollout/judge/outcome.ts";
import type { RolloutCard, RolloutGuardrail, RolloutInterval, RolloutWindows } from "#page/status/overview.ts";
import type { TimeFigures } from "#page/status/time-figures.ts";
import type { RolloutArm } from "#page/status/rollout-arm.ts";
import { guardrailRule } from "../admin/guardrail-rule.ts";
import type { ArmView, GuardrailView, RolloutView, TimeView } from "../admin/rollout-view.ts";

const METRICS: readonly TimeMetric[] = ["ttft", "tpot", "e2e"];

/** What of a rollout the status page shows. */
export function rolloutCard(view: RolloutView): RolloutCard {
  const { name, model, phase, since, reason, verdict, health, scope, window, arms, guardrails, steps, cooldownEndsAt } =
    view;
  return {
    name,
    model,
    phase,
    design: designText(view),
    at: Date.parse(since),
    reason,
    verdict,
    health,
    scope,
    cooldownEndsAt: cooldownEndsAt === null ? null : Date.parse(cooldownEndsAt),
    window:
      window === null
        ? null
        : {
            number: window.number,
            endsAt: Date.parse(window.endsAt),
            arm: window.arm ?? "",
            isWashout: window.isWashout,
          },
    arms: arms.map((arm) => armCard(arm, view)),
    intervals: arms
      .filter(({ isControl }) => !isControl)
      .flatMap((arm) => METRICS.map((of) => intervalOf(arm, of, view))),
    windows: METRICS.map((of) => windowsOf(of, view)),
    guardrails: guardrails.map(guardrailCard),
    steps: steps.map(({ at, step, arm, by, reason: why }) => ({
      at: Date.parse(at),
      step: arm === "" ? step : `${step} ${arm}`,
      by,
      reason: why,
    })),
  };
}

function designText({ design, canary, arms }: RolloutView): string {
  const window = spanText(design.windowMillis);
  const keys = design.by === null ? "requests" : `${design.by}s`;
  switch (design.kind) {
    case "switchback": {
      const washout = spanText(design.washoutMillis ?? 0);
      return `Switchback: the whole fleet alternates between the arms in windows of ${window}, the first ${washout} of each left out.`;
    }
    case "pools":
      return `Pools: each arm has its own endpoints, by their label ${design.label}; ${keys} are spread over them.`;
    case "split":
      return `Split: ${keys} are spread over the arms, which share all endpoints; windows of ${window}.`;
    case "canary": {
      const { step = 0, stepPercents = [] } = canary ?? {};
      const now = `${stepPercents[step]} % of ${keys} are on ${arms[1]?.name}`;
      return `Canary: ${now}, step ${step + 1} of ${stepPercents.length} (${stepPercents.join(", ")} %), ${window} each.`;
    }
    case "shadow":
      return `Shadow: the control routes everything; the other arms also decide, without any effect.`;
  }
}

const MILLIS_PER_MINUTE = 60_000;

function spanText(millis: number): string {
  const minutes = millis / MILLIS_PER_MINUTE;
  return minutes >= 1 && Number.isInteger(minutes) ? `${minutes} min` : `${millis / 1_000} s`;
}

function armCard(
  { name, profile, pool, sharePercent, total, agreement }: ArmView,
  { design, phase }: RolloutView,
): RolloutArm {
  const { requests, failed, refused, hitRatio, goodput, imbalance, times } = total;
  const agreed = agreement === null || agreement.decisions === 0 ? NaN : agreement.agreed / agreement.decisions;
  const shares = [
    ...(phase === "running" && design.kind !== "switchback" && design.kind !== "shadow"
      ? [`${sharePercent} % now`]
      : []),
    ...(pool === null ? [] : [`pool ${pool}`]),
    ...(Number.isNaN(agreed) ? [] : [`agrees in ${(100 * agreed).toFixed(1)} % of decisions`]),
  ];
  return {
    name,
    profile: profile === "" ? "as the policy has it" : profile,
    share: shares.join(", "),
    requests,
    failed,
    refused,
    hitRatio,
    goodput,
    imbalance,
    ttft: figuresOf(times.ttft),
    tpot: figuresOf(times.tpot),
    e2e: figuresOf(times.e2e),
  };
}

function figuresOf({ meanMillis, p50Millis, p99Millis }: TimeView): TimeFigures | null {
  if (meanMillis === null || p50Millis === null || p99Millis === null) return null;
  return { mean: meanMillis, p50: p50Millis, p99: p99Millis };
}

function intervalOf({ name }: ArmView, metric: TimeMetric, { intervals, predictions }: RolloutView): RolloutInterval {
  const is = (one: { readonly arm: string; readonly metric: string; readonly figure: string }) =>
    one.arm === name && one.metric === metric && one.figure === "mean";
  const points = intervals.flatMap(({ at, differences }) =>
    differences.filter(is).flatMap(({ meanMillis, lowMillis, highMillis }) => {
      if (meanMillis === null || lowMillis === null || highMillis === null) return [];
      return [{ at: Date.parse(at), mean: meanMillis, low: lowMillis, high: highMillis }];
    }),
  );
  const prediction = predictions.find(is);
  if (prediction === undefined) return { arm: name, metric, points };
  const { lowMillis: low, highMillis: high, verdict } = prediction;
  return { arm: name, metric, points, predicted: { low, high, verdict } };
}

/** Each arm's times by window; windows that it had no requests in are left out. */
function windowsOf(metric: TimeMetric, { arms, windows }: RolloutView): RolloutWindows {
  return {
    metric,
    arms: arms.map(({ name }, arm) => ({
      name,
      points: windows.flatMap(({ endedAt, arms: measured }) => {
        const { meanMillis: mean, p50Millis: low, p90Millis: high } = measured[arm]!.times[metric];
        return mean === null || low === null || high === null ? [] : [{ at: Date.parse(endedAt), mean, low, high }];
      }),
    })),
  };
}

function guardrailCard(guardrail: GuardrailView): RolloutGuardrail {
  const { arm, figure, unit, value, limit, samples, samplesMin } = guardrail;
  const text = (one: number) => (unit === "share" ? `${(100 * one).toFixed(2)} %` : `${Number(one.toPrecision(3))} ms`);
  const isJudged = value !== null && limit !== null && samples >= samplesMin;
  return {
    figure,
    arm,
    limit: `at most ${guardrailRule(guardrail)}`,
    used: isJudged ? (limit > 0 ? value / limit : Number(value > 0)) : null,
    value: value === null ? "" : text(value),
  };
}
