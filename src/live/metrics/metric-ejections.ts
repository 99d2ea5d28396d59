import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { CheckCounts } from "../keeper/health-checker.ts";
import type { Family, Row } from "./metric-state.ts";

const EJECTED = { "": 0, unhealthy: 1, failures: 2, slow: 3 } as const;

/** Which endpoints are left alone, or get less than their share, and why. `rows` are those of the page under way. */
export function registerEjections(
  rows: () => readonly EndpointRow[],
  checks: () => Readonly<CheckCounts> | undefined,
  family: Family,
  row: Row,
): void {
  const why = "0 not ejected, 1 its health checks fail, 2 its requests fail, 3 its tokens are slow.";
  family("gauge", "endpoint_ejected", why, () =>
    rows().map(({ id, ejected }) => row(EJECTED[ejected], { endpoint: id })),
  );
  family(
    "gauge",
    "endpoint_share",
    "Share of its usual requests that the endpoint gets; below 1 during slow start.",
    () => rows().map(({ id, share }) => row(share, { endpoint: id })),
  );
  family("counter", "endpoint_ejections_total", "Endpoints ejected because they did worse than the others.", () =>
    rows().flatMap(({ id, ejections }) =>
      Object.entries(ejections)
        .filter(([, count]) => count > 0)
        .map(([reason, count]) => row(count, { endpoint: id, reason })),
    ),
  );
  family(
    "counter",
    "health_checks_total",
    "Active health checks by result, and the changes of verdict that followed.",
    () => Object.entries(checks() ?? {}).map(([result, count]) => row(count, { result })),
  );
}
