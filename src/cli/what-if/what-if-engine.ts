import { type CalibratedEngine, engineOfParameters, loadCalibratedEngine, loadEngine } from "#config/engine-file.ts";
import type { LongWork } from "../long-work/long-work.ts";
import {
  calibrate,
  type CalibrateOptions,
  calibrateInSteps,
  type Calibration,
  CannotIdentify,
  inOneGo,
} from "#shadow/calibrate/calibrate.ts";
import { type Evidence, evidenceOf } from "#shadow/calibrate/evidence.ts";
import { calibrateUnstated } from "#shadow/calibrate/found-scheduling.ts";
import { sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { ConfigError } from "#config/config-error.ts";
import { signedPercentOf } from "../output/figure-text.ts";
import { sizedEngine } from "../calibrate/engine-sizes.ts";
import type { TrafficFlags } from "./what-if-flags.ts";

/** The engine that a question is simulated on, and why it is that one. */
export interface ChosenEngine extends CalibratedEngine {
  /** As people know it. */
  readonly name: string;
  /** No evidence that the traffic's engines are like it. */
  readonly isGuess: boolean;
  /** Whether it composes steps ahead was found by the fit to this traffic, and stated by nobody. */
  readonly isSchedulingFound?: boolean;
  readonly notes: readonly string[];
}

const GUESS = "emulated-default";
const HOW_TO_SAY = "name one with --engine, best one that calibrate wrote of a trace of these engines";

/**
 * That of --engine, else what the trace's header states about its emulated fleet, else one that is calibrated from the
 * trace itself, else a guess that is called one. Throws ConfigError.
 */
export async function engineOfRun(run: RecordedRun, flags: TrafficFlags, work?: LongWork): Promise<ChosenEngine> {
  const [named] = flags.engine;
  if (named !== undefined) return chosen(named, loadCalibratedEngine(named));
  const { emulated } = run.header;
  if (emulated !== undefined) {
    const engine = engineOfParameters(emulated.parameters, "the trace's header, emulated.parameters");
    const notes = [`engine: ${emulated.engine}, as the trace's header states of its emulated engines`];
    return { ...chosen(emulated.engine, engine), notes };
  }
  try {
    return await calibrated(run, flags, work);
  } catch (error) {
    const reasons = error instanceof CannotIdentify ? error.reasons : error instanceof ConfigError ? error.lines : [];
    if (reasons.length === 0) throw error;
    return guessed([
      "the trace does not state what its engines are, and does not show it:",
      ...reasons.map((one) => `  ${one}`),
    ]);
  }
}

/** That of --engine, else a guess: a workload from elsewhere states nothing about engines. */
export function engineOfWorkload({ engine: [named] }: TrafficFlags): ChosenEngine {
  return named === undefined ? guessed([]) : chosen(named, loadCalibratedEngine(named));
}

function chosen(name: string, engine: CalibratedEngine): ChosenEngine {
  return { ...engine, name, isGuess: false, notes: [] };
}

function guessed(why: readonly string[]): ChosenEngine {
  const notes = [...why, `engine: ${GUESS}, which is a guess; ${HOW_TO_SAY}`];
  return { ...loadCalibratedEngine(GUESS), name: GUESS, isGuess: true, notes };
}

async function calibrated(run: RecordedRun, flags: TrafficFlags, work?: LongWork): Promise<ChosenEngine> {
  const { engine: sizes, statesScheduling } = sizedEngine(loadEngine(GUESS), run, flags, true);
  const evidence = evidenceOf(run, sizes.blockTokens);
  const options = { sizes, memory: work?.memory };
  const { calibration, note } = await (statesScheduling
    ? stated(evidence, options, work)
    : unstated(evidence, options, work));
  const { engine, residuals, heldOut } = calibration;
  const { ttftMicros, tpotMicros, e2eMicros } = heldOut;
  const errors = [ttftMicros, tpotMicros, e2eMicros].map((one) =>
    one === undefined ? "-" : signedPercentOf(one.meanRelative),
  );
  const notes = [
    `engine: calibrated from this trace, since no --engine named one; on its last ${heldOut.requests} requests, held out, ` +
      `TTFT ${errors[0]}, TPOT ${errors[1]}, E2E ${errors[2]} of the mean`,
    ...(note === undefined ? [] : [note]),
  ];
  return {
    ...loadCalibratedEngine(GUESS),
    engine,
    residuals,
    source: { runs: [sourceRunOf(run.header)] },
    name: "calibrated from this trace",
    isGuess: false,
    isSchedulingFound: !statesScheduling,
    notes,
  };
}

interface Fitted {
  readonly calibration: Calibration;
  readonly note?: string;
}

async function stated(evidence: Evidence, options: CalibrateOptions, work: LongWork | undefined): Promise<Fitted> {
  if (work === undefined) return { calibration: calibrate(evidence, options) };
  return { calibration: await work.inTurns(calibrateInSteps(evidence, options), REPLAYS) };
}

async function unstated(evidence: Evidence, options: CalibrateOptions, work: LongWork | undefined): Promise<Fitted> {
  const steps = calibrateUnstated(evidence, options);
  return work === undefined ? inOneGo(steps) : work.inTurns(steps, REPLAYS);
}

const REPLAYS = "replays of the trace";
