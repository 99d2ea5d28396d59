import { loadCalibratedEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Config } from "#config/schema.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { nowMicros } from "#live/clock.ts";
import type { RouterTap } from "#live/router-tap.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Run } from "#live/recorder/run-lines.ts";
import type { ShadowStatus } from "#live/status/shadow-status.ts";
import { TraceFeed } from "#live/recorder/trace-feed.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import type { LiveAutopilot } from "./autopilot/live-autopilot.ts";
import { calibrationOf } from "./live-calibration.ts";
import { evaluationOf } from "./live-evaluation.ts";

/** The shadow of a running gateway. */
export interface LiveShadow {
  readonly status: () => ShadowStatus;
  close(): Promise<void>;
}

const PREDICTED_AT_ONCE = 256;

/** Starts the shadow's thread and attaches it to the tap; undefined where the configuration has none. */
export function startShadow(
  { shadow, scrape }: Config,
  run: Run,
  tap: RouterTap,
  { report }: FaultLog,
  autopilot?: Pick<LiveAutopilot, "work" | "tuned">,
): LiveShadow | undefined {
  if (!shadow.enabled) return undefined;
  const candidates = shadow.profiles.map((name) => {
    const { name: known, spec } = loadProfile(name);
    return { name: known, spec };
  });
  const host = new ShadowHost({
    work: {
      ...loadCalibratedEngine(shadow.engine),
      calibrate:
        shadow.calibrate === "off"
          ? undefined
          : { every: shadow.calibrateEvery, requestsMax: shadow.calibrateRequestsMax },
      candidates,
      cpuShareMax: shadow.cpuShareMax,
      intervalMillis: shadow.intervalMillis,
      predictMillis: shadow.predictMillis,
      windowRequests: shadow.windowRequests,
      requestsMin: shadow.requestsMin,
      scrapeMillis: scrape.intervalMillis,
      tune: autopilot?.work,
    },
    ...(autopilot && { tuned: autopilot.tuned }),
    heapMegabytesMax: shadow.heapMegabytesMax,
    taken: (chars) => feed.taken(chars),
    predicted: ({ rollout, requests }) => {
      // In pieces: each is one line of the trace.
      for (let from = 0; from < requests.length; from += PREDICTED_AT_ONCE) {
        const some = requests.slice(from, from + PREDICTED_AT_ONCE);
        tap.accept({ kind: "rollout-predicted", at: nowMicros(), rollout, requests: some });
      }
    },
    restarted: () => feed.restart(),
    failed: (detail, done) => report({ kind: "shadow-failed", detail, done }),
  });
  const feed: TraceFeed = new TraceFeed({
    run,
    bufferBytesMax: shadow.bufferBytesMax,
    candidatesMax: 0,
    send: (text) => host.send(text),
  });
  tap.listen(feed);
  return {
    status: () => {
      const now = host.status();
      const { state, detail, restarts, lagMillis, parity, evaluated } = now;
      return {
        state,
        detail,
        restarts,
        lagMillis,
        parity,
        dropped: feed.dropped,
        bufferedBytes: feed.bufferedBytes,
        cpuSeconds: now.cpuMicros / MICROS_PER_SECOND,
        calibration: calibrationOf(now, shadow.calibrate),
        evaluation: evaluated && evaluationOf(evaluated),
      };
    },
    close: async () => {
      feed.stop();
      await host.close();
    },
  };
}
