import type { Router } from "#core/router.ts";
import type { PolicyDesk } from "../policy/policy-desk.ts";
import type { MetricFamily, MetricRow } from "./metric-family.ts";

type Row = (value: number, labels?: Readonly<Record<string, string>>) => MetricRow;
type Family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) => void;

interface PolicySources {
  readonly router: Pick<Router, "policyVersion">;
  readonly policy?: Pick<PolicyDesk, "counts">;
}

/** The policy in force, and what became of changes that were asked for. */
export function registerPolicy({ policy, router }: PolicySources, family: Family, row: Row): void {
  family("gauge", "policy_version", "Version of the policy in force.", () => [row(router.policyVersion)]);
  family("counter", "policy_changes_total", "Requested policy changes, by outcome.", () =>
    (policy?.counts() ?? []).map(({ source, outcome, count }) => row(count, { source, outcome })),
  );
}
