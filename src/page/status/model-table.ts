import { dataTable } from "../part/data-table.ts";
import { compact, count, duration, percent } from "../part/format.ts";
import type { Markup } from "../part/markup.ts";
import type { TrafficCard } from "./overview.ts";
import type { TimeFigures } from "./time-figures.ts";

/** What each model's requests did over the last minute. */
export function modelTable({ models, lastMinute }: TrafficCard): Markup {
  const pair = (times: TimeFigures | null) => `${duration(times?.p50)}, ${duration(times?.p99)}`;
  return dataTable({
    caption: "The last minute by model",
    columns: [
      { name: "Model", style: "text wrap" },
      { name: "Requests" },
      { name: "A second" },
      { name: "Failed" },
      { name: "Refused" },
      { name: "TTFT p50, p99" },
      { name: "TPOT p50, p99" },
      { name: "E2E p50, p99" },
      { name: "Hit ratio" },
    ],
    rows: models.map(({ model, requests, failed, refused, ttft, tpot, e2e, hitRatio }) => ({
      key: model,
      cells: [
        model === "" ? "none that is served" : model,
        count(requests),
        compact(requests / lastMinute.seconds),
        count(failed),
        count(refused),
        pair(ttft),
        pair(tpot),
        pair(e2e),
        percent(hitRatio ?? NaN),
      ],
    })),
    folds: true,
  });
}
