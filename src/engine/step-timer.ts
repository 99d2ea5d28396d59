import type { Micros } from "#core/base/units.ts";
import type { EngineConfig, StepGap } from "./config.ts";
import { driftAt, stalledMicros, type StepDrift } from "./step-drift.ts";
import type { BatchShape } from "./step-time/batch-shape.ts";
import { createStepTime } from "./step-time/create-step-time.ts";
import type { StepTime } from "./step-time/step-time.ts";

/** Whole microseconds for steps and for the idle time after them. */
export class StepTimer {
  readonly #stepTime: StepTime;
  readonly #gap: StepGap;
  readonly #drift: StepDrift | undefined;

  constructor(config: EngineConfig) {
    this.#stepTime = createStepTime(config.stepTime);
    this.#gap = config.stepGap;
    this.#drift = config.stepDrift;
  }

  /** False when a duration depends on what was asked before, so that no step may be computed ahead. */
  get stateless(): boolean {
    return this.#stepTime.stateless;
  }

  /** Of a step that starts at `at`; at least 1. */
  duration(shape: Readonly<BatchShape>, at: Micros): number {
    return this.#drifted(this.#stepTime.micros(shape), at);
  }

  /** Of a step that starts on several ranks at once, a shape each. */
  durationTogether(shapes: readonly Readonly<BatchShape>[], at: Micros): number {
    const micros =
      this.#stepTime.together?.(shapes) ?? Math.max(...shapes.map((shape) => this.#stepTime.micros(shape)));
    return this.#drifted(micros, at);
  }

  #drifted(micros: number, at: Micros): number {
    if (this.#drift === undefined) return Math.max(1, Math.trunc(micros));
    const drifted = micros * driftAt(this.#drift, at);
    return Math.max(1, Math.trunc(drifted + stalledMicros(this.#drift, at, drifted)));
  }

  /** When the engine is ready for the first step. */
  firstReadyAt(): Micros {
    return this.#stepTime.nextStartAt?.() ?? 0;
  }

  /** When the engine is ready for the next step after one of this shape. */
  readyAfter(endAt: Micros, shape: Readonly<BatchShape>): Micros {
    const recorded = this.#stepTime.nextStartAt?.();
    return recorded === undefined ? endAt + this.gapAfter(shape) : Math.max(endAt, recorded);
  }

  gapAfter(shape: Readonly<BatchShape>): number {
    const { baseMicros, afterPrefillMicros, perDecodeMicros } = this.#gap;
    const prefill = shape.prefillSequences > 0 ? afterPrefillMicros : 0;
    return Math.trunc(baseMicros + prefill + perDecodeMicros * shape.decodeSequences);
  }
}
