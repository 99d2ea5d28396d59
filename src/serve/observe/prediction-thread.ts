import { setImmediate as turn } from "node:timers/promises";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import type { Config } from "#config/schema.ts";
import type { Input } from "#core/input/input.ts";
import { isRolloutUnderWay } from "#core/rollout/rollout-book.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { Intake, IntakeListener } from "#live/base/intake.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { RunHeader } from "#live/recorder/run-lines.ts";
import { TraceFeed } from "#live/recorder/trace-feed.ts";
import { awaitedRequests } from "#shadow/rollout/awaited-requests.ts";
import type { RolloutPredictions } from "#shadow/rollout/request-predictions.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import type { ShadowWork } from "#shadow/thread/shadow-message.ts";
import { FleetState } from "#trace/transform/fleet-state.ts";

export interface PredictionThreadOptions {
  readonly shadow: Config["shadow"];
  readonly scrapeMillis: ShadowWork["scrapeMillis"];
  readonly run: RunHeader;
  readonly intake: Intake;
  readonly report: (event: FaultEvent) => void;
}

/** Inputs that change a trace's header, and which endpoints may serve. */
const HEADER_KINDS: readonly Input["kind"][] = [
  "endpoint-joined",
  "endpoint-changed",
  "endpoint-left",
  "endpoint-cordoned",
  "endpoint-uncordoned",
  "endpoint-suspended",
  "endpoint-resumed",
  "endpoint-checked",
  "endpoint-slept",
  "profile-changed",
  "policy-changed",
  "block-size-changed",
];

const PREDICTED_AT_ONCE = 256;

/** Gives the router what was predicted, in pieces: each is one line of the trace, and requests are served between two. */
export async function takePredictions(intake: Intake, { rollout, requests }: RolloutPredictions): Promise<void> {
  for (let from = 0; from < requests.length; from += PREDICTED_AT_ONCE) {
    if (from > 0) await turn();
    const some = requests.slice(from, from + PREDICTED_AT_ONCE);
    intake.accept({ kind: "rollout-predicted", at: nowMicros(), rollout, requests: some });
  }
}

/**
 * Predicts the requests of rollouts where no shadow runs: a thread that is there while a rollout waits for predictions, and
 * does nothing but fit the engine model and predict.
 */
export class PredictionThread {
  readonly #options: PredictionThreadOptions;
  readonly #work: ShadowWork;
  readonly #fleet: FleetState<RunHeader>;
  #running: { readonly host: ShadowHost; readonly feed: IntakeListener & Pick<TraceFeed, "stop"> } | undefined;

  constructor(options: PredictionThreadOptions) {
    this.#options = options;
    const { shadow, scrapeMillis, run, intake } = options;
    const { calibrate, calibrateEvery: every, calibrateRequestsMax: requestsMax, engine } = shadow;
    const { cpuShareMax, intervalMillis, predictMillis, windowRequests, requestsMin } = shadow;
    this.#work = {
      ...loadCalibratedEngine(engine),
      calibrate: calibrate === "off" ? undefined : { every, requestsMax },
      candidates: [],
      onlyPredicts: true,
      cpuShareMax,
      intervalMillis,
      predictMillis,
      windowRequests,
      requestsMin,
      scrapeMillis,
    };
    const fleet = new FleetState(run);
    this.#fleet = fleet;
    intake.listen({ accepted: (input) => fleet.take(input) }, HEADER_KINDS);
  }

  /** Whether the thread is there. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Starts the thread once a rollout waits for predictions, ends it once none does, and hands it what waits now. */
  follow(rollouts: Rollouts): void {
    const isWanted = rollouts.book.some((state) => {
      const isToCome = isRolloutUnderWay(state) || state.phase === "planned";
      return isToCome && rollouts.spec(state.plan.name)?.rules.awaitsPredictions === true;
    });
    if (!isWanted) return void this.close();
    this.#running ??= this.#begun();
    this.#running.host.awaits(awaitedRequests(rollouts));
  }

  async close(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    this.#running = undefined;
    this.#options.intake.forget(running.feed);
    running.feed.stop();
    await running.host.close();
  }

  #begun() {
    const { shadow, run, intake, report } = this.#options;
    const host = new ShadowHost({
      work: this.#work,
      heapMegabytesMax: shadow.heapMegabytesMax,
      taken: (bytes) => feed.taken(bytes),
      predicted: (predictions) => void takePredictions(intake, predictions),
      restarted: () => feed.restart(),
      failed: (detail, done) => report({ kind: "shadow-failed", detail: `predictions of a rollout: ${detail}`, done }),
    });
    const feed: TraceFeed = new TraceFeed({
      run: { ...run, ...this.#fleet.about },
      bufferBytesMax: shadow.bufferBytesMax,
      candidatesMax: 0,
      send: (lines) => host.send(lines),
    });
    for (const input of this.#fleet.standing(intake.lastAt)) feed.accepted(input, undefined);
    intake.listen(feed);
    return { host, feed };
  }
}
