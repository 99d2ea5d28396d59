import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import type { Engine } from "./engine.ts";
import { emptyShape } from "./step-time/batch-shape.ts";
import { StepTimer } from "./step-timer.ts";

/**
 * Ranks of a mixture of experts, whose experts are spread over all of them: every step starts on all at once and ends when
 * the slowest has ended. A rank without requests computes an empty step meanwhile, so that what reaches it waits for the
 * step's end.
 */
export class Lockstep {
  readonly #ranks: readonly Engine[];
  readonly #timer: StepTimer;
  readonly #nothing = emptyShape();
  #readyAt: Micros = 0;

  /** The ranks are paced. */
  constructor(config: EngineConfig, ranks: readonly Engine[]) {
    this.#ranks = ranks;
    this.#timer = new StepTimer(config);
  }

  /** When the next step starts; Infinity while no rank has any work. */
  startAt(): Micros {
    let at = this.#readyAt;
    let wanted = false;
    for (const rank of this.#ranks) {
      wanted ||= rank.wantsStep;
      at = Math.max(at, rank.readyAt);
    }
    return wanted ? at : Infinity;
  }

  /** Starts a step on all ranks, which have been advanced to `at`. */
  start(at: Micros): void {
    const steps = this.#ranks.map((rank) => rank.composeStep(at));
    if (steps.every((step) => step === undefined)) return;
    const transfers = Math.max(...steps.map((step) => Math.trunc(step?.transferMicros ?? 0)));
    const shapes = steps.map((step) => step?.shape ?? this.#nothing);
    this.#readyAt = at + this.#timer.durationTogether(shapes, at) + transfers;
    this.#ranks.forEach((rank, i) => {
      if (steps[i] !== undefined) rank.beginStep(at, this.#readyAt);
    });
  }
}

/** The ranks of this engine start every step together: they are of a mixture of experts whose step times know of them. */
export function stepsTogether({ dataParallel, stepTime }: EngineConfig): boolean {
  if (dataParallel === 1) return false;
  if (stepTime.kind === "kernel-table") return stepTime.experts !== undefined;
  return "model" in stepTime && stepTime.model.experts !== undefined;
}
