import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { TapListener } from "../base/router-tap.ts";

/** A decision and what of its request may be shown. */
export interface KeptDecision {
  readonly decision: Decision;
  /** Undefined for a retry, whose first decision has it. */
  readonly model: string | undefined;
  readonly promptTokens: number | undefined;
  readonly promptTokensExact?: boolean | undefined;
  readonly decisionMicros: number;
}

/** Remembers the last decisions, at most `max` of them. */
export class DecisionRing implements TapListener {
  readonly #kept: KeptDecision[] = [];
  readonly #max: number;
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#kept.length;
  }

  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void {
    if (decision === undefined || this.#max === 0) return;
    const request = input.kind === "request-arrived" ? input.request : undefined;
    const { model, promptTokens, promptTokensExact } = request ?? {};
    this.#kept[this.#next] = { decision, model, promptTokens, promptTokensExact, decisionMicros };
    this.#next = (this.#next + 1) % this.#max;
  }

  /** The last `count` decisions, newest first. */
  last(count: number): KeptDecision[] {
    const { length } = this.#kept;
    const taken = Math.min(count, length);
    return Array.from({ length: taken }, (_, i) => this.#kept[(this.#next - 1 - i + 2 * length) % length]!);
  }

  find(sequence: number): KeptDecision | undefined {
    return this.#kept.find(({ decision }) => decision.sequence === sequence);
  }
}
