import type { Router } from "#core/router.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { type LossCount, StateWatch } from "#live/keeper/state-watch.ts";
import type { Recorder } from "#live/recorder/recorder.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import type { LiveShadow } from "./live-shadow.ts";

export interface Watched {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: FleetKeeper;
  readonly settings: TraceRouter;
  readonly recorder: Recorder | undefined;
  readonly shadow: LiveShadow | undefined;
  readonly faults: FaultLog;
}

/** Watches over a running gateway for the log; the caller stops it. */
export function stateWatch({ router, directory, keeper, settings, recorder, shadow, faults }: Watched): StateWatch {
  const losses: LossCount[] = [];
  if (recorder !== undefined) {
    losses.push({
      kind: "recorder-dropped",
      total: () => recorder.status().dropped,
      detail: "its buffer or the disk was full",
      done: "whole records were left out; the trace states where, and requests are not affected",
    });
  }
  if (shadow !== undefined) {
    losses.push({
      kind: "shadow-dropped",
      total: () => shadow.status().dropped,
      detail: "its buffer was full",
      done: "it begins anew behind the gap; requests are not affected",
    });
  }
  return new StateWatch({
    rows: (at) => router.endpointRows(at),
    directory,
    keeper,
    staleAfterMicros: settings.staleAfterMicros,
    losses,
    report: faults.report,
    now: nowMicros,
  });
}
