import { linearStepTimes } from "#config/linear-step-times.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";

/**
 * A fit whose times are all nearer to those in use than this changes nothing: the router would forget what it learned
 * since.
 */
const CHANGE_MIN = 0.05;
const TIMES = ["stepMicros", "prefillTokenMicros", "sequenceMicros", "contextTokenMicros"] as const;

/** Hands the step times of a shadow's fits to the keeper of endpoints, which makes inputs of the router of them. */
export class FittedStepTimes {
  #inUse: StepTimes | undefined;
  #keeper: Pick<FleetKeeper, "setStepTimes"> | undefined;

  attach(keeper: Pick<FleetKeeper, "setStepTimes">): void {
    this.#keeper = keeper;
    if (this.#inUse !== undefined) keeper.setStepTimes(this.#inUse);
  }

  /** A fit is in use. One that is a record of steps, from which no others follow, is passed over. */
  take(engine: EngineConfig): void {
    const times = linearStepTimes(engine);
    if (times === undefined || !differs(this.#inUse, times)) return;
    this.#inUse = times;
    this.#keeper?.setStepTimes(times);
  }
}

/** By what a batch of usual size takes: a coefficient that hardly counts may change as it likes. */
function differs(before: StepTimes | undefined, now: StepTimes): boolean {
  if (before === undefined || before.stepTokensMax !== now.stepTokensMax) return true;
  return USUAL.some((batch) => {
    const [was, is] = [before, now].map((times) => TIMES.reduce((sum, name) => sum + times[name] * batch[name], 0));
    return Math.abs(is! - was!) > CHANGE_MIN * was!;
  });
}

/** A decode-only batch of half a dozen conversations, a full one, and a step of a long prompt. */
const USUAL: readonly Readonly<Record<(typeof TIMES)[number], number>>[] = [
  { stepMicros: 1, prefillTokenMicros: 0, sequenceMicros: 6, contextTokenMicros: 6_000 },
  { stepMicros: 1, prefillTokenMicros: 0, sequenceMicros: 64, contextTokenMicros: 128_000 },
  { stepMicros: 1, prefillTokenMicros: 2_048, sequenceMicros: 1, contextTokenMicros: 2_048 },
];
