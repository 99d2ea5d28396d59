import type { RouteRequest } from "#core/request/request.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { routerOf } from "../recorded/replay.ts";

export interface ReplayedRollouts {
  readonly header: TraceHeader;
  readonly rollouts: Rollouts;
}

/**
 * The rollouts of a trace's last run as they stand at its end: the same inputs to a fresh router, whose judges may be given
 * predictions that the live ones did not have. Every window is closed, unless `closes` is false.
 */
export async function replayedRollouts(
  items: AsyncIterable<TraceItem>,
  predictionOf?: (request: RouteRequest) => Times | undefined,
  closes = true,
): Promise<ReplayedRollouts> {
  let header: TraceHeader | undefined;
  let router: ReturnType<typeof routerOf> | undefined;
  for await (const item of items) {
    if (item.kind === "run") {
      ({ header } = item);
      router = routerOf(header, predictionOf);
      for (const endpoint of header.endpoints) router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    } else if (item.kind === "record") router?.accept(item.input);
  }
  if (header === undefined || router === undefined) throw new Error("expected a trace with a header, got none");
  const { rollouts } = router;
  for (const { plan } of closes ? rollouts.book : []) rollouts.watch(plan.name)?.judge.advance(Infinity);
  return { header, rollouts };
}
