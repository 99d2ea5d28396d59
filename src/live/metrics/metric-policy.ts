import type { Router } from "#core/router.ts";
import type { PolicyAdmin } from "../admin/policy-admin.ts";
import type { MetricFamily, MetricRow } from "./metric-family.ts";

type Row = (value: number, labels?: Readonly<Record<string, string>>) => MetricRow;
type Family = (type: MetricFamily["type"], name: string, help: string, rows: () => MetricRow[]) => void;

interface PolicySources {
  readonly router: Pick<Router, "policyVersion">;
  readonly policy?: Pick<PolicyAdmin, "counts">;
  /** How well orders are kept; left out where nothing is kept. */
  readonly orders?: (() => OrdersStatus) | undefined;
}

export interface OrdersStatus {
  /** Writes that the disk refused. */
  readonly failures: number;
  /** Something that holds is not on the disk. */
  readonly isUnwritten: boolean;
}

/** The policy in force, and what became of changes that were asked for. */
export function registerPolicy({ policy, router, orders }: PolicySources, family: Family, row: Row): void {
  family("gauge", "policy_version", "Version of the policy in force.", () => [row(router.policyVersion)]);
  family("counter", "policy_changes_total", "Requested policy changes, by outcome.", () =>
    (policy?.counts() ?? []).map(({ source, outcome, count }) => row(count, { source, outcome })),
  );
  const kept = (value: (status: OrdersStatus) => number) => () => (orders === undefined ? [] : [row(value(orders()))]);
  family(
    "gauge",
    "orders_unwritten",
    "1 while a change of policy or a rollout's step holds and is not on the disk.",
    kept(({ isUnwritten }) => Number(isUnwritten)),
  );
  family(
    "counter",
    "orders_write_failures_total",
    "Failed writes of policies and rollouts to policy.directory; each is tried again.",
    kept(({ failures }) => failures),
  );
}
