import type { Micros } from "#core/base/units.ts";
import type { EmulatedSequence } from "../generation/sequence.ts";
import type { EngineMetrics } from "../metrics/engine-metrics.ts";

/** Tokens of each step: the answers' tokens, and with a prompt's first token what of the prompt was not in the cache. */
export class StepTokens {
  readonly #metrics: Pick<EngineMetrics, "step">;
  #at: Micros = -1;
  #tokens = 0;

  constructor(metrics: Pick<EngineMetrics, "step">) {
    this.#metrics = metrics;
  }

  add(at: Micros, sequence: EmulatedSequence, tokens: number): void {
    if (at !== this.#at) this.count();
    this.#at = at;
    this.#tokens += tokens;
    if (sequence.firstTokenAt < 0) this.#tokens += sequence.prompt.length - sequence.cachedTokens;
  }

  /** The step is over. */
  count(): void {
    if (this.#tokens > 0) this.#metrics.step(this.#tokens);
    this.#tokens = 0;
  }
}
