import type { RouteRequest } from "#core/request/request.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { LastRun } from "../recorded/last-run.ts";
import { routerOf } from "../recorded/replay.ts";

export interface ReplayedRollouts {
  readonly header: TraceHeader;
  readonly rollouts: Rollouts;
}

/**
 * The rollouts of a trace's last run as they stand at its end, or of the last one with a request where that had some: the
 * same inputs to a fresh router, whose judges may be given predictions that the live ones did not have. Every window is
 * closed, unless `closes` is false.
 */
export async function replayedRollouts(
  items: AsyncIterable<TraceItem>,
  predictionOf?: (request: RouteRequest) => Times | undefined,
  closes = true,
): Promise<ReplayedRollouts> {
  const runs = new LastRun<{ readonly header: TraceHeader; readonly router: ReturnType<typeof routerOf> }>();
  for await (const item of items) {
    if (item.kind === "run") {
      const { header } = item;
      const router = routerOf(header, predictionOf);
      for (const endpoint of header.endpoints) router.accept({ kind: "endpoint-joined", at: 0, endpoint });
      runs.begin({ header, router });
      continue;
    }
    runs.take(item);
    if (item.kind === "record") runs.now?.router.accept(item.input);
  }
  const { used, now } = runs;
  const chosen = used !== undefined && used.router.rollouts.book.length > 0 ? used : now;
  if (chosen === undefined) throw new Error("expected a trace with a header, got none");
  const { header } = chosen;
  const { rollouts } = chosen.router;
  for (const { plan } of closes ? rollouts.book : []) rollouts.watch(plan.name)?.judge.advance(Infinity);
  return { header, rollouts };
}
