import type { Router } from "#core/router.ts";

import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { Family, Row } from "./metric-state.ts";

/** Who waits, and whom limits refuse. Classes and limits are those of the policy. */
export function registerAdmission(
  router: Router,
  counters: () => Pick<GatewayCounters, "queued" | "limited"> | undefined,
  family: Family,
  row: Row,
): void {
  family("gauge", "queue_requests", "Requests waiting in the gateway's queue, by the score of their class.", () =>
    [...router.admission.waitingByBand()].map(([band, count]) => row(count, { class: String(band) })),
  );
  family("counter", "queued_total", "Requests that were queued, by reason.", () =>
    Object.entries(counters()?.queued ?? {}).map(([reason, count]) => row(count, { reason })),
  );
  family("counter", "limited_total", "Requests refused by a limit, by the limit's name.", () =>
    Object.entries(counters()?.limited ?? {}).map(([limit, count]) => row(count, { limit })),
  );
}
