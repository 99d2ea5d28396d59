import type { Decision } from "#core/input/decision.ts";
import type { Router } from "#core/router.ts";
import { routerOf } from "#shadow/recorded/replay.ts";
import type { RecordedDecision, TraceHeader, TraceItem } from "#trace/codec/record.ts";
import type { CapacityOf } from "./engine-caches.ts";
import { TokenLedger } from "./token-ledger.ts";

/**
 * The ledger of a recorded trace. Of large fleets a trace holds the best few candidates of each decision alone: from there
 * on a fresh router decides again, and what it saw of all candidates counts as long as it decides the same.
 */
export async function recordedLedger(
  items: AsyncIterable<TraceItem>,
  capacityOf: CapacityOf,
  rowsMax: number,
): Promise<TokenLedger> {
  const ledger = new TokenLedger(capacityOf, { first: rowsMax });
  let router: Router | undefined;
  for await (const item of items) {
    if (item.kind !== "record") router = item.kind === "run" ? routerFrom(item.header) : undefined;
    if (item.kind !== "record" || router === undefined) {
      ledger.takeItem(item);
      continue;
    }
    const { input, decision } = item;
    let again: Decision | undefined;
    try {
      again = router.accept(input);
      if (decision !== undefined && !isSame(again, decision)) router = undefined;
    } catch {
      router = undefined;
    }
    ledger.take(input, router === undefined ? decision : (again ?? decision));
  }
  return ledger;
}

/** Undefined where the header has what this version has not: what the trace itself holds is all there is. */
function routerFrom(header: TraceHeader): Router | undefined {
  try {
    const router = routerOf(header);
    for (const endpoint of header.endpoints) router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    return router;
  } catch {
    return undefined;
  }
}

function isSame(again: Decision | undefined, recorded: RecordedDecision): boolean {
  if (again?.kind !== recorded.kind || again.requestId !== recorded.requestId) return false;
  return again.kind !== "routed" || (recorded.kind === "routed" && again.endpoint === recorded.endpoint);
}
