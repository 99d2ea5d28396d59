import type { Intake } from "#live/base/intake.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { type LossCount, StateWatch } from "#live/keeper/state-watch.ts";
import type { Recorder } from "#live/recorder/recorder.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import type { LiveShadow } from "./live-shadow.ts";
import { part } from "../assembly/part.ts";

interface Watched {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly keeper: FleetKeeper;
  readonly settings: TraceRouter;
  readonly recorder: Recorder | undefined;
  readonly shadow: LiveShadow | undefined;
  readonly logs: { readonly faults: FaultLog };
}

function stateWatch({ intake, directory, keeper, settings, recorder, shadow, logs }: Watched): StateWatch {
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
    rows: (at) => intake.router.endpointRows(at),
    directory,
    keeper,
    staleAfterMicros: settings.staleAfterMicros,
    losses,
    report: logs.faults.report,
    now: nowMicros,
  });
}

/** Watches over the endpoints, the recorder and the shadow for the log. */
export const stateWatchPart = part({
  name: "stateWatch",
  needs: ["intake", "directory", "keeper", "settings", "recorder", "shadow", "logs"],
  start: (watched: Watched) => stateWatch(watched),
  stop: (watch) => watch.stop(),
});
