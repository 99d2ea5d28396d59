import { type CalibrateOptions, type Calibration, CannotIdentify, calibrateInSteps } from "./calibrate.ts";
import type { Evidence } from "./evidence.ts";
import { fitLoss } from "./fit-loss.ts";

/** A calibration where nobody stated how the engine composes its steps, and why it was taken to do so as it has it. */
export interface FoundScheduling {
  readonly calibration: Calibration;
  readonly note: string;
}

/** The other scheduling must be so much nearer, as a part of the error, or the engine's own is kept. */
const GAIN_MIN = 0.05;

/**
 * Calibrates with async scheduling and without, and has what is nearer on the requests held out. With it a request
 * waits for up to two steps before its prompt is computed, and without it for one; taken for the other, the fit puts
 * that wait into what a prompt costs a step, which is as wrong as anything can be for an engine that answers prompts
 * computed elsewhere. Yields after every replay of the trace. Throws CannotIdentify where neither can be fitted.
 */
export function* calibrateUnstated(evidence: Evidence, options: CalibrateOptions): Generator<void, FoundScheduling> {
  const { sizes } = options;
  const other = { ...options, sizes: { ...sizes, asyncScheduling: !sizes.asyncScheduling } };
  const first = yield* tried(evidence, options);
  const second = yield* tried(evidence, other);
  if (second instanceof CannotIdentify && first instanceof CannotIdentify) throw first;
  if (second instanceof CannotIdentify) return alone(first as Calibration);
  if (first instanceof CannotIdentify) return alone(second);
  const [loss, otherLoss] = [fitLoss(first.heldOut), fitLoss(second.heldOut)];
  const calibration = otherLoss < (1 - GAIN_MIN) * loss ? second : first;
  const [own, apart] = calibration === first ? [loss, otherLoss] : [otherLoss, loss];
  return {
    calibration,
    note: `${words(calibration)}: not stated; held out ${percent(own)} off, else ${percent(apart)}`,
  };
}

function alone(calibration: Calibration): FoundScheduling {
  return { calibration, note: `${words(calibration)}: not stated; nothing can be fitted else` };
}

function* tried(evidence: Evidence, options: CalibrateOptions): Generator<void, Calibration | CannotIdentify> {
  try {
    return yield* calibrateInSteps(evidence, options);
  } catch (error) {
    if (error instanceof CannotIdentify) return error;
    throw error;
  }
}

function words({ engine }: Calibration): string {
  return `asyncScheduling ${engine.asyncScheduling}`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
