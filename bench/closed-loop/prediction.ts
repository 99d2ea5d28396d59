import { loadCalibratedEngine } from "#config/engine-file.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { imbalanceOf } from "#drive/imbalance.ts";
import type { CandidateOutcome } from "#shadow/candidate/candidate.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { type WhatIfAnswer, whatIf } from "#shadow/question/what-if.ts";
import { TraceReader } from "#trace/reader.ts";
import { Program } from "./program.ts";

export interface Prediction {
  readonly answer: WhatIfAnswer;
  /** By profile: most in flight at one endpoint over the mean, weighted by time, as `drive` measures it. */
  readonly imbalance: ReadonlyMap<string, number | null>;
}

export interface PredictionOptions {
  /** Recorded under one profile: the only thing that is known. */
  readonly trace: string;
  /** Fitted engine, written here. */
  readonly engineFile: string;
  /** What a user reads off the engines' command lines. */
  readonly batchTokensMax: number;
  readonly modelTokensMax: number;
  readonly profiles: readonly string[];
  /** Simulations of each profile on engines drawn from what the fit leaves to chance, for intervals. */
  readonly replicas: number;
}

/**
 * Fits the engine to a trace, then asks what the trace's exogenous part would have met under other profiles: `gnomon
 * calibrate` and `gnomon what-if`.
 */
export async function predict(options: PredictionOptions): Promise<Prediction> {
  const { trace, engineFile, batchTokensMax, modelTokensMax } = options;
  const flags = { output: engineFile, "batch-tokens-max": batchTokensMax, "model-tokens-max": modelTokensMax };
  await Program.run({ command: "calibrate", operands: [trace], flags: { ...flags, json: `${engineFile}.json` } });
  // The driver waits within the sessions that it names, and sends all else by the clock.
  const run = await readRecordedRun(new TraceReader(trace).items(), "named");
  const { engine, residuals } = loadCalibratedEngine(engineFile);
  const imbalance = new Map<string, number | null>();
  const answer = await whatIf({
    setting: recordedSetting(run, { engine, residuals, signals: scrapedEvery(MICROS_PER_SECOND) }),
    inForce: inForceOf(run.header, run.fleetEvents),
    candidates: options.profiles.map((name) => loadProfile(name)),
    observed: run.observed,
    replicas: options.replicas,
    onOutcomes: (outcomes) => {
      for (const outcome of outcomes) imbalance.set(outcome.name, imbalanceIn(outcome, run.endpoints.length));
    },
  });
  return { answer, imbalance };
}

function imbalanceIn({ arrivalMicros, e2eMicros, endpoint }: CandidateOutcome, endpoints: number): number | null {
  return imbalanceOf({
    size: arrivalMicros.length,
    endpoints,
    sent: arrivalMicros,
    ended: arrivalMicros.map((at, row) => at + e2eMicros[row]!),
    endpointOf: (row) => endpoint[row]!,
  }).mean;
}
