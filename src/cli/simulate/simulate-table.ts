import { SIMULATED_COUNTS, SIMULATED_TOTALS } from "#core/stages.ts";
import Table from "cli-table3";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Counterfactual } from "#sim/counterfactual.ts";
import type { TraceSummary } from "#sim/result/decision-trace.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import type { Fitness } from "#sim/result/fitness.ts";
import type { Metrics } from "#sim/result/metrics.ts";
import type { ScalingFigures } from "#sim/setting/scaling-options.ts";
import type { SimulationResult } from "#sim/simulate.ts";
import { percentOf, rateOf } from "../output/figure-text.ts";
import { plainTableChars } from "../output/plain-table-chars.ts";
import { stageFigureRows } from "./stage-options.ts";

/** What was asked for beside the figures. */
export interface Extras {
  readonly fitness: Fitness;
  readonly summary?: TraceSummary;
  readonly counterfactuals?: readonly Counterfactual[];
}

/** The results for people. */
export function simulationTable(result: SimulationResult, extras: Extras): string {
  const parts = [
    headline(result),
    latencies(result),
    figures(result),
    endpoints(result),
    scalingText(result.scaling),
    ...more(extras),
    plot(result),
  ];
  return `${parts.filter((part) => part !== "").join("\n")}\n`;
}

function more({ fitness, summary, counterfactuals }: Extras): string[] {
  const lines: string[] = [];
  const values = Object.entries(fitness.values).map(([key, value]) => `${key} ${value.toFixed(4)}`);
  if (values.length > 0) lines.push(`${"fitness".padEnd(12)} ${fitness.score.toFixed(6)} (${values.join(", ")})`);
  if (summary !== undefined) {
    const reasons = Object.entries(summary.reasons).map(([reason, count]) => `${count} ${reason}`);
    lines.push(`${"decisions".padEnd(12)} ${summary.totalDecisions}, by ${reasons.join(", ")}`);
    // Whoever takes the best score has none, whatever the outcome is.
    if (summary.maxScoreRegret > 0) {
      const { meanScoreRegret: mean, maxScoreRegret: most } = summary;
      lines.push(`${"score regret".padEnd(12)} ${mean.toFixed(4)} mean, ${most.toFixed(4)} max`);
    }
  }
  if (counterfactuals !== undefined && counterfactuals.length > 0) {
    const worse = counterfactuals.filter(({ regretMicros }) => regretMicros > 0).length;
    const mean = counterfactuals.reduce((sum, { regretMicros }) => sum + regretMicros, 0) / counterfactuals.length;
    lines.push(
      `${"regret".padEnd(12)} ${millis(mean)} ms mean of E2E over ${counterfactuals.length} counterfactual decisions, ` +
        `${worse} had a better alternative`,
    );
  }
  return lines;
}

/** What an autoscaler did; "" without one. */
function scalingText(scaling: ScalingFigures | undefined): string {
  if (scaling === undefined) return "";
  const { ups, downs, oscillations, replicaSeconds, replicasMean, replicasMax, actions } = scaling;
  const lines = [
    `${"replicas".padEnd(12)} ${replicasMean.toFixed(2)} on average, ${replicasMax} at most; ` +
      `${(replicaSeconds / SECONDS_PER_HOUR).toFixed(3)} replica-hours`,
    `${"scaling".padEnd(12)} ${ups} up, ${downs} down, ${oscillations} back within cooldown or stabilization`,
  ];
  const shown = actions.slice(0, ACTIONS_SHOWN);
  for (const { at, from, to, reason } of shown) {
    lines.push(`${"".padEnd(12)} ${(at / MICROS_PER_SECOND).toFixed(0).padStart(6)} s  ${from} -> ${to}  ${reason}`);
  }
  if (actions.length > shown.length) lines.push(`${"".padEnd(12)} and ${actions.length - shown.length} more`);
  return lines.join("\n");
}

const SECONDS_PER_HOUR = 3_600;
const ACTIONS_SHOWN = 12;

function headline({ requests, endedAt, outcomes }: SimulationResult): string {
  const counts = Object.entries(requests).filter(([, count]) => count > 0);
  const ends = counts.map(([status, count]) => `${count} ${status}`).join(", ");
  return `${outcomes.length} requests in ${(endedAt / MICROS_PER_SECOND).toFixed(1)} simulated seconds: ${ends}`;
}

function latencies({ metrics }: SimulationResult): string {
  const table = plainTable(["ms", "class", "mean", "p50", "p90", "p95", "p99", "max", "count"]);
  const rows = [
    ["TTFT", metrics.ttftMicros],
    ["TPOT", metrics.tpotMicros],
    ["E2E", metrics.e2eMicros],
    ["queued", metrics.queueDelayMicros],
  ] as const;
  for (const [name, byClass] of rows) {
    const classes = Object.entries(byClass).filter(
      ([sloClass]) => Object.keys(byClass).length > 2 || sloClass === "all",
    );
    for (const [sloClass, values] of classes) table.push([name, sloClass === "" ? "-" : sloClass, ...row(values)]);
  }
  if (metrics.sessionMicros !== undefined) table.push(["session", "all", ...row(metrics.sessionMicros)]);
  if (metrics.itlMicros !== undefined) table.push(["ITL", "all", ...row(metrics.itlMicros)]);
  return table.toString();
}

function row({ mean, p50, p90, p95, p99, max, count }: Distribution): string[] {
  return [...[mean, p50, p90, p95, p99, max].map(millis), String(count)];
}

function figures(result: SimulationResult): string {
  const { metrics, rejections, stranded } = result;
  const slo = Object.entries(metrics.sloAttainment).map(
    ([name, share]) => `${name === "" ? "-" : name} ${percentOf(share)}`,
  );
  const refused = Object.entries(rejections).map(([reason, count]) => `${count} ${reason}`);
  const rows: readonly (readonly [string, string])[] = [
    ["throughput", `${rateOf(metrics.requestsPerSec)} requests/s, ${metrics.tokensPerSec.toFixed(1)} output tokens/s`],
    ["prefix hits", tierText(metrics)],
    ["preemptions", `${metrics.preemptionRate.toFixed(4)} a request`],
    ["fairness", `${metrics.jainFairnessIndex.toFixed(4)} (Jain over tenants)`],
    ...(slo.length > 0
      ? [["SLO met", `${slo.join(", ")}; ${metrics.goodputPerSec?.toFixed(2)} good requests/s`] as const]
      : []),
    ...faultRows(result),
    ...stageFigureRows(result.stages),
    ...(refused.length > 0 ? [["refused", refused.join(", ")] as const] : []),
    ...(metrics.priorityInversions + metrics.holBlockingEvents > 0
      ? [
          [
            "anomalies",
            `${metrics.priorityInversions} priority inversions, ${metrics.holBlockingEvents} blocked at the head of the line`,
          ] as const,
        ]
      : []),
    ...(stranded > 0 ? [["stranded", `${stranded} turns whose conversation did not get to them`] as const] : []),
  ];
  return rows.map(([name, value]) => `${name.padEnd(12)} ${value}`).join("\n");
}

/** What became of attempts, where any failed. */
function faultRows({ path }: SimulationResult): [string, string][] {
  const { faults, retries, retriesDenied, cuts } = path;
  const totals = SIMULATED_TOTALS.map(([key, { total = "" }]) => `${path[key]} ${total}, `).join("");
  const went = SIMULATED_TOTALS.reduce((sum, [key]) => sum + path[key], 0);
  const rows = stageRows(path);
  const failed = Object.entries(faults).map(([fault, count]) => `${count} ${fault}`);
  if (failed.length === 0 && went + cuts === 0) return rows;
  const attempts = failed.length === 0 ? "no attempt failed" : `attempts failed: ${failed.join(", ")}`;
  const again = `${retries} retried, ${retriesDenied} denied by the budget`;
  return [...rows, ["faults", `${attempts}; ${again}, ${totals}${cuts} cut`]];
}

/** What stages counted, where they counted anything. */
function stageRows(path: SimulationResult["path"]): [string, string][] {
  const rows = new Map<string, string[]>();
  for (const [key, { row = "", before = "" }] of SIMULATED_COUNTS) {
    const texts = Object.entries(path[key]).map(([value, count]) => `${count} ${before}${value}`);
    if (texts.length > 0) rows.set(row, [...(rows.get(row) ?? []), ...texts]);
  }
  return [...rows].map(([row, texts]) => [row, texts.join(", ")]);
}

function tierText({ cacheHitRate, offloadedBlocks, offloadRate, kvThrashingRate }: Metrics): string {
  const gpu = percentOf(cacheHitRate.gpu);
  if (offloadedBlocks === 0) return gpu;
  return `${gpu}, ${percentOf(cacheHitRate.cpu)} from the host; ${offloadedBlocks} blocks copied out (${percentOf(offloadRate)} of those filled), ${percentOf(kvThrashingRate)} thrashed`;
}

function endpoints(result: SimulationResult): string {
  const table = plainTable(["endpoint", "requests", "share", "TTFT ms", "E2E ms", "prefix hits", "steps", "preempted"]);
  const shown = result.endpoints.slice(0, ENDPOINTS_SHOWN);
  for (const one of shown) {
    table.push([
      one.endpoint,
      String(one.requests),
      percentOf(one.requests / Math.max(1, result.outcomes.length)),
      millis(one.ttftMicrosMean),
      millis(one.e2eMicrosMean),
      percentOf(one.cacheHitRate),
      String(one.steps),
      String(one.preemptions),
    ]);
  }
  const more = result.endpoints.length - shown.length;
  return more > 0 ? `${table.toString()}\n${more} more endpoints` : table.toString();
}

/** TTFT over the course of the run: the mean of each of a line's stretches of time. */
function plot({ outcomes, endedAt }: SimulationResult): string {
  const sums = new Float64Array(PLOT_WIDTH);
  const counts = new Uint32Array(PLOT_WIDTH);
  for (let row = 0; row < outcomes.length; row++) {
    const ttft = outcomes.ttft[row]!;
    if (Number.isNaN(ttft)) continue;
    const place = Math.min(PLOT_WIDTH - 1, Math.floor((outcomes.arrivalAt[row]! / Math.max(1, endedAt)) * PLOT_WIDTH));
    sums[place]! += ttft;
    counts[place]!++;
  }
  const means = Array.from(sums, (sum, place) => sum / Math.max(1, counts[place]!));
  const most = Math.max(...means);
  if (most === 0) return "";
  const bars = means.map((mean) => BARS[Math.ceil((mean / most) * (BARS.length - 1))]).join("");
  return `TTFT by arrival, 0 to ${millis(most)} ms\n${bars}`;
}

const BARS = " ▁▂▃▄▅▆▇█";
const PLOT_WIDTH = 72;
const ENDPOINTS_SHOWN = 32;

function plainTable(head: readonly string[]): Table.Table {
  return new Table({
    head: [...head],
    chars: plainTableChars("  "),
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    colAligns: head.map((_, column) => (column === 0 ? "left" : "right")),
  });
}

function millis(micros: number | undefined): string {
  return micros === undefined ? "-" : (micros / MICROS_PER_MILLI).toFixed(2);
}
