import Table from "cli-table3";
import type { DistributionSummary } from "./distribution-summary.ts";
import type { HitEstimate } from "./hit-estimate.ts";
import type { DriveReport } from "./report.ts";

/** The report for people. */
export function reportTable(report: DriveReport): string {
  const parts = [headline(report), latencyTable(report), figures(report), endpointTable(report), ...notes(report)];
  return `${parts.filter((part) => part !== "").join("\n")}\n`;
}

function headline(report: DriveReport): string {
  const { requests, seconds, workload } = report;
  const end = report.interrupted ? ", interrupted" : "";
  const others = [
    [requests.expectedFailures, "failed as expected"],
    [requests.aborted, "aborted on purpose"],
    [requests.cancelled, "cancelled at the end"],
    [requests.notSent, "read but not sent"],
  ] as const;
  const rest = others.filter(([count]) => count > 0).map(([count, what]) => `, ${count} ${what}`);
  const counts = `${requests.sent} sent, ${requests.ok} ok, ${requests.failed} failed${rest.join("")}`;
  return `${workload.format} workload in ${seconds.toFixed(1)} s${end}: ${counts}`;
}

function latencyTable(report: DriveReport): string {
  const table = plainTable(["ms", "mean", "p50", "p90", "p99", "max", "count"]);
  const row = (name: string, { mean, p50, p90, p99, max, count }: DistributionSummary) =>
    table.push([name, fixed(mean), fixed(p50), fixed(p90), fixed(p99), fixed(max), String(count)]);
  row("TTFT", report.ttftMillis);
  row("TPOT", report.tpotMillis);
  row("E2E", report.e2eMillis);
  row("sent late by", report.drift.millis);
  return table.toString();
}

function figures(report: DriveReport): string {
  const { throughput, tokens, hitRatio, hitEstimate, imbalance, driver } = report;
  const hits = [
    hitRatio.engine === null ? "not reported by engines" : `${percent(hitRatio.engine)} by engines`,
    hitRatio.gateway === null ? "" : `, ${percent(hitRatio.gateway)} by the gateway`,
  ].join("");
  const rows = [
    [
      "throughput",
      `${throughput.requestsPerSecond.toFixed(2)} requests/s, ${throughput.outputTokensPerSecond.toFixed(1)} output tokens/s, ` +
        `${throughput.promptTokensPerSecond.toFixed(0)} prompt tokens/s`,
    ],
    ["tokens", `${tokens.prompt} prompt, ${tokens.cached} of them cached, ${tokens.output} output`],
    ["prefix hits", hits],
    ...(hitEstimate === null ? [] : [["hit estimate", hitEstimateText(hitEstimate)]]),
    [
      "imbalance",
      imbalance.mean === null
        ? "-"
        : `${imbalance.mean.toFixed(2)} mean, ${fixed(imbalance.max)} max (most in flight at one endpoint over the mean)`,
    ],
    [
      "driver",
      `${driver.cpuMicrosPerRequest.toFixed(0)} us CPU a request, stalls p99 ${driver.eventLoopDelayMillisP99.toFixed(1)} ms`,
    ],
  ];
  const failures = Object.entries(report.outcomes).filter(([outcome]) => outcome !== "ok");
  if (failures.length > 0) rows.push(["not ok", failures.map(([outcome, count]) => `${count} ${outcome}`).join(", ")]);
  return rows.map(([name = "", value = ""]) => `${name.padEnd(12)} ${value}`).join("\n");
}

function hitEstimateText({ sumError, tokensErrorMean, exactShare, requests }: HitEstimate): string {
  const sum = sumError === null ? "" : `${sumError > 0 ? "+" : ""}${percent(sumError)} in sum, `;
  return (
    `the gateway is off by ${sum}${tokensErrorMean.toFixed(1)} tokens a request; ` +
    `${percent(exactShare)} of ${requests} exact`
  );
}

function endpointTable(report: DriveReport): string {
  if (report.endpoints.length === 0) return "";
  const table = plainTable(["endpoint", "requests", "share", "failed", "TTFT ms", "E2E ms", "prefix hits"]);
  for (const row of report.endpoints)
    table.push([
      row.endpoint,
      String(row.requests),
      percent(row.share),
      String(row.failed),
      fixed(row.ttftMillisMean),
      fixed(row.e2eMillisMean),
      row.hitRatio === null ? "-" : percent(row.hitRatio),
    ]);
  return table.toString();
}

/** What a reader of the figures must know before believing them. */
function notes(report: DriveReport): string[] {
  const { drift, workload } = report;
  const lines = Object.entries(report.failureMessages).map(([outcome, message]) => `${outcome}: ${message}`);
  if (drift.behind)
    lines.push(
      `the driver fell behind: one request in a hundred was sent ${fixed(drift.millis.p99)} ms late or more; ` +
        `${drift.heldByConcurrency} were held by --concurrency`,
    );
  if (drift.sessionsHeld > 0)
    lines.push(`${drift.sessionsHeld} conversations waited for another to end (--active-sessions)`);
  if (report.outputsShorterThanAsked > 0)
    lines.push(`${report.outputsShorterThanAsked} answers were shorter than asked`);
  for (const [what, count] of Object.entries(workload.adjusted)) lines.push(`${count} records: ${what}`);
  for (const [why, count] of Object.entries(workload.refused))
    lines.push(`${count} of ${workload.records} records left out: ${why}`);
  for (const place of workload.refusedPlaces.slice(0, 3)) lines.push(`  ${place}`);
  const fits = [
    [workload.promptsTruncated, "prompts truncated to --max-input-tokens"],
    [workload.promptsSkipped, "prompts longer than --max-input-tokens left out"],
    [workload.outputsCut, "answers cut to --max-output-tokens"],
    [workload.thinkTimesCut, "think times cut to --think-seconds-max"],
  ] as const;
  for (const [count, what] of fits) if (count > 0) lines.push(`${count} ${what}`);
  return lines.map((line) => (line.startsWith(" ") ? line : `note: ${line}`));
}

function plainTable(head: string[]): Table.Table {
  return new Table({
    head,
    style: { head: [], border: [], compact: true },
    colAligns: head.map((_, i) => (i === 0 ? "left" : "right")),
  });
}

function fixed(value: number | null): string {
  return value === null ? "-" : value.toFixed(value >= 100 ? 0 : 2);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
