import type { Cascades } from "../cascade/cascades.ts";
import type { Family, Row } from "./metric-state.ts";

/** What answers of cascades came to; nothing where there is no cascade. */
export function registerCascades(cascades: () => Cascades | undefined, family: Family, row: Row): void {
  family("counter", "cascade_answers_total", "Answers of cascades, by outcome.", () =>
    [...(cascades()?.counts ?? [])].flatMap(([cascade, counts]) =>
      Object.entries(counts).map(([verdict, count]) => row(count, { cascade, verdict })),
    ),
  );
  family(
    "gauge",
    "cascade_escalations_in_flight",
    "Requests under way at a later model of their cascade than the first.",
    () => rowsOf(cascades()?.desk.escalationsInFlight, row),
  );
  family("gauge", "cascade_held_bytes", "Bytes of streams held back until they are judged.", () =>
    rowsOf(cascades()?.desk.heldBytes, row),
  );
}

function rowsOf(value: number | undefined, row: Row) {
  return value === undefined ? [] : [row(value)];
}
