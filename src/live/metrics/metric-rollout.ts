import type { Registry } from "prom-client";
import type { Phase } from "#core/rollout/rollout-state.ts";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import type { RolloutAdmin } from "../admin/rollout-admin.ts";
import type { DifferenceView, RolloutView } from "../admin/rollout-view.ts";
import { type MetricFamily, type MetricRow, NO_LABELS, registerFamily } from "./metric-family.ts";
import { type AutopilotAdmin, PROPOSAL_STATES } from "../admin/autopilot-admin.ts";

const PHASES: readonly Phase[] = ["planned", "running", "paused", "promoted", "rolled-back"];
/** Rollouts with lines of their own: those under way, and the newest of the others. */
const ROLLOUTS_MAX = 8;
/** A page asks for each family by itself; what is there holds for all of them. */
const VIEW_MILLIS = 500;

type Labels = Readonly<Record<string, string>>;
type Rows = (rollout: RolloutView) => readonly (readonly [value: number | null, labels: Labels])[];

const ENDS = [
  ["mean", "Difference of an arm's mean from the control's", (one: DifferenceView) => one.meanMillis],
  [
    "low",
    "Lower end of that difference's confidence interval, valid at any time of looking",
    (one: DifferenceView) => one.lowMillis,
  ],
  ["high", "Upper end of that difference's confidence interval", (one: DifferenceView) => one.highMillis],
] as const;

export interface RolloutSources extends AutopilotSource {
  /** Left out where there can be no rollout. */
  readonly rollouts?: Pick<RolloutAdmin, "view">;
}

/** Rollouts in numbers, and what is proposed; none where there is no desk. */
export function registerRollouts(registry: Registry, { rollouts: desk, ...proposed }: RolloutSources): void {
  registerAutopilot(registry, proposed);
  const rollouts = remembered(() => desk?.view().rollouts.slice(0, ROLLOUTS_MAX) ?? []);
  const family = (type: MetricFamily["type"], name: string, help: string, rowsOf: Rows): void => {
    const rows = () => rollouts().flatMap((one) => rowsOf(one).flatMap(([value, labels]) => line(one, value, labels)));
    registerFamily(registry, { name: `gnomon_rollout_${name}`, help, type, rows });
  };
  family("gauge", "phase", "1 for the phase the rollout is in, 0 for the others.", ({ phase }) =>
    PHASES.map((one) => [one === phase ? 1 : 0, { phase: one }]),
  );
  family("gauge", "arm_share_ratio", "Share of arriving requests that an arm gets now.", ({ arms }) =>
    arms.map(({ name, sharePercent }) => [sharePercent / 100, { arm: name }]),
  );
  family("counter", "requests_total", "Requests counted for an arm.", ({ arms }) =>
    arms.map(({ name, total }) => [total.requests, { arm: name }]),
  );
  family("counter", "failures_total", "Requests counted for an arm whose answer broke.", ({ arms }) =>
    arms.map(({ name, total }) => [total.failed, { arm: name }]),
  );
  for (const [end, help, of] of ENDS) {
    family("gauge", `difference_${end}_seconds`, `${help}.`, ({ differences }) =>
      differences
        .filter(({ figure }) => figure === "mean")
        .map((one) => [seconds(of(one)), { arm: one.arm, metric: one.metric }]),
    );
  }
  family(
    "counter",
    "predictions_total",
    "Finished requests, by whether the simulator had predicted them.",
    ({ adjustment }) =>
      adjustment === null
        ? []
        : [
            [adjustment.predicted, { prediction: "made" }],
            [adjustment.unpredicted, { prediction: "none" }],
          ],
  );
  family("gauge", "contradicted", "1 if a measured mean contradicts its prediction.", ({ predictions }) =>
    predictions
      .filter(({ figure }) => figure === "mean")
      .map(({ arm, metric, verdict }) => [verdict === "contradicted" ? 1 : 0, { arm, metric }]),
  );
  family(
    "gauge",
    "guardrail_used_ratio",
    "An arm's figure divided by its limit; above 1 the guardrail trips once the interval confirms it.",
    ({ guardrails }) =>
      guardrails.map(({ arm, figure, value, limit }) => [
        value === null || limit === null || limit <= 0 ? null : value / limit,
        { arm, figure },
      ]),
  );
}

function line({ name }: RolloutView, value: number | null, labels: Labels): MetricRow[] {
  return value === null ? [] : [{ value, labels: { rollout: name, ...labels }, sharedLabels: NO_LABELS }];
}

function seconds(millis: number | null): number | null {
  return millis === null ? null : millis / MILLIS_PER_SECOND;
}

function remembered<T>(of: () => T): () => T {
  let known: { readonly value: T; readonly at: number } | undefined;
  return () => {
    const at = performance.now();
    if (known === undefined || at - known.at > VIEW_MILLIS) known = { value: of(), at };
    return known.value;
  };
}

interface AutopilotSource {
  /** Undefined where no better policy is searched. */
  readonly autopilot?: Pick<AutopilotAdmin, "view"> | undefined;
}

/** Searches and proposals in numbers; none where there is no autopilot. */
function registerAutopilot(registry: Registry, { autopilot: desk }: AutopilotSource): void {
  registerFamily(registry, {
    name: "gnomon_autopilot_searches_total",
    help: "Searches for a better policy, by outcome.",
    type: "counter",
    rows: () =>
      Object.entries(desk?.view().searches ?? {}).map(([outcome, value]) => ({
        value,
        sharedLabels: NO_LABELS,
        labels: { outcome },
      })),
  });
  registerFamily(registry, {
    name: "gnomon_autopilot_proposals",
    help: "Proposals kept, by state.",
    type: "gauge",
    rows: () => {
      const proposals = desk?.view().proposals;
      if (proposals === undefined) return [];
      return PROPOSAL_STATES.map((state) => ({
        value: proposals.filter((one) => one.state === state).length,
        sharedLabels: NO_LABELS,
        labels: { state },
      }));
    },
  });
  registerFamily(registry, {
    name: "gnomon_autopilot_rollouts_started_total",
    help: "Rollouts started from proposals.",
    type: "counter",
    rows: () =>
      desk === undefined ? [] : [{ value: desk.view().started, sharedLabels: NO_LABELS, labels: NO_LABELS }],
  });
}
