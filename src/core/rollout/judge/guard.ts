import { ArmTally, type SavedTally } from "./arm-tally.ts";
import {
  type GuardedRequests,
  type Guardrail,
  type GuardrailReading,
  guardrailReading,
  type OpenRequest,
} from "./guardrail.ts";
import type { RolloutOutcome } from "./outcome.ts";

/** Stretches of an arm that are kept: the latest, and the one before it. */
const STRETCHES_KEPT = 2;

export interface SavedGuard {
  /** Of each arm its stretches, oldest first. */
  readonly arms: readonly (readonly (readonly [number, SavedTally])[])[];
}

interface Stretch {
  readonly number: number;
  readonly tally: ArmTally;
}

/**
 * Watches the limits of a rollout over all requests of its arms: those of a washout and what the control routes before the
 * start and in a pause included, since harm is harm, and the control's figures are known before the first window.
 */
export class Guard {
  readonly #guardrails: readonly Guardrail[];
  readonly #arms: readonly Stretch[][];

  constructor(arms: number, guardrails: readonly Guardrail[], saved?: SavedGuard) {
    this.#guardrails = guardrails;
    this.#arms = Array.from({ length: arms }, (_, arm) =>
      (saved?.arms[arm] ?? []).map(([number, tally]) => ({ number, tally: new ArmTally(tally) })),
    );
  }

  observe(outcome: RolloutOutcome): void {
    this.#stretch(outcome.arm, outcome.stretch)?.tally.add(outcome);
  }

  /** Limits that an arm is beyond, with what has not ended yet. */
  crossings(open: readonly OpenRequest[]): GuardrailReading[] {
    return this.readings(open).filter(({ crossed }) => crossed);
  }

  /** Each arm's latest stretch against every limit. */
  readings(open: readonly OpenRequest[]): GuardrailReading[] {
    if (this.#guardrails.length === 0) return [];
    for (const { arm, stretch } of open) this.#stretch(arm, stretch);
    const requests = this.#arms.map((stretches, arm) => {
      const own = open.filter((one) => one.arm === arm);
      return stretches.map(({ number, tally }): GuardedRequests => {
        return { ended: tally, open: own.filter(({ stretch }) => stretch === number) };
      });
    });
    const [control, ...others] = requests;
    return others.flatMap((stretches, i) => {
      const latest = stretches.at(-1);
      if (latest === undefined) return [];
      return this.#guardrails.map((guardrail) => guardrailReading(guardrail, i + 1, latest, control!));
    });
  }

  saved(): SavedGuard {
    return { arms: this.#arms.map((stretches) => stretches.map(({ number, tally }) => [number, tally.saved()])) };
  }

  /** Undefined for one that is over and gone. */
  #stretch(arm: number, number: number): Stretch | undefined {
    const stretches = this.#arms[arm]!;
    const known = stretches.find((one) => one.number === number);
    if (known !== undefined) return known;
    if (number < (stretches.at(-1)?.number ?? -Infinity)) return undefined;
    const stretch = { number, tally: new ArmTally() };
    stretches.push(stretch);
    if (stretches.length > STRETCHES_KEPT) stretches.shift();
    return stretch;
  }
}
