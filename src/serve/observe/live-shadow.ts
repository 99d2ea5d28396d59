import { loadCalibratedEngine } from "#config/engine-file.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Config } from "#config/schema.ts";
import { ConfigError } from "#config/config-error.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { Intake } from "#live/base/intake.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { RunHeader } from "#live/recorder/run-lines.ts";
import type { ShadowStatus } from "#live/metrics/shadow-status.ts";
import { TraceFeed } from "#live/recorder/trace-feed.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { awaitedRequests } from "#shadow/rollout/awaited-requests.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import type { ShadowWork } from "#shadow/thread/shadow-message.ts";
import type { LiveTuning } from "../autopilot/live-autopilot.ts";
import { calibrationOf } from "./live-calibration.ts";
import { FittedStepTimes } from "./fitted-step-times.ts";
import { evaluationOf } from "./live-evaluation.ts";
import { takePredictions } from "./prediction-thread.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { Scraped } from "../policy/live-scrape.ts";

/** The shadow of a running gateway. */
export interface LiveShadow {
  readonly status: () => ShadowStatus;
  /** Who gets the fitted step times, where the configuration wants that. */
  feeds(keeper: Pick<FleetKeeper, "setStepTimes">): void;
  /** What waits for a prediction now. */
  awaits(rollouts: Rollouts): void;
  close(): Promise<void>;
}

/** Starts the shadow's thread and attaches it to the intake; undefined where the configuration has none. */
function startShadow(
  { shadow, scrapeMillis }: Pick<Config, "shadow"> & Pick<ShadowWork, "scrapeMillis">,
  run: RunHeader,
  intake: Intake,
  { report }: FaultLog,
  tuning?: Pick<LiveTuning, "work" | "tuned">,
): LiveShadow | undefined {
  if (!shadow.enabled) return undefined;
  if (shadow.stepTimes && shadow.calibrate === "off")
    throw new ConfigError(["shadow.stepTimes: expected together with shadow.calibrate: continuous, which fits them"]);
  const fitted = shadow.stepTimes ? new FittedStepTimes() : undefined;
  const host = new ShadowHost({
    work: { ...workOf(shadow), scrapeMillis, tune: tuning?.work },
    ...(tuning && { tuned: tuning.tuned }),
    ...(fitted && { fitted: ({ engine }) => fitted.take(engine) }),
    heapMegabytesMax: shadow.heapMegabytesMax,
    taken: (bytes) => feed.taken(bytes),
    predicted: (predictions) => void takePredictions(intake, predictions),
    restarted: () => feed.restart(),
    failed: (detail, done) => report({ kind: "shadow-failed", detail, done }),
  });
  const feed: TraceFeed = new TraceFeed({
    run,
    bufferBytesMax: shadow.bufferBytesMax,
    candidatesMax: 0,
    send: (lines) => host.send(lines),
  });
  intake.listen(feed);
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
        ...(shadow.why && { why: now.why ?? null }),
      };
    },
    feeds: (keeper) => fitted?.attach(keeper),
    awaits: (rollouts) => host.awaits(awaitedRequests(rollouts)),
    close: async () => {
      feed.stop();
      await host.close();
    },
  };
}

function workOf(shadow: Config["shadow"]): Omit<ShadowWork, "scrapeMillis" | "tune"> {
  const { calibrate, calibrateEvery: every, calibrateRequestsMax: requestsMax } = shadow;
  const { cpuShareMax, intervalMillis, predictMillis, windowRequests, requestsMin } = shadow;
  return {
    ...loadCalibratedEngine(shadow.engine),
    calibrate: calibrate === "off" ? undefined : { every, requestsMax },
    candidates: shadow.profiles.map(candidateOf),
    ...(shadow.why && { why: candidateOf(DEFAULT_PROFILE) }),
    cpuShareMax,
    intervalMillis,
    predictMillis,
    windowRequests,
    requestsMin,
  };
}

function candidateOf(nameOrPath: string): Candidate {
  const { name, spec } = loadProfile(nameOrPath);
  return { name, spec };
}

/** What the policy in force is held against in explanations. */
const DEFAULT_PROFILE = "gnomon";

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly state: Scraped;
  readonly run: RunHeader;
  readonly intake: Intake;
  readonly logs: { readonly faults: FaultLog };
  readonly tuning: LiveTuning | undefined;
}

export const shadowPart = part({
  name: "shadow",
  needs: ["plan", "state", "run", "intake", "logs", "tuning"],
  start: ({ plan: { config }, state: { scrapeMillis }, run, intake, logs, tuning }: Needed) =>
    startShadow({ ...config, scrapeMillis }, run, intake, logs.faults, tuning),
  stop: (shadow) => shadow?.close(),
});
