import { ArmTally, type SavedTally } from "./arm-tally.ts";
import {
  type GuardedRequests,
  type Guardrail,
  type GuardrailReading,
  guardrailReading,
  type OpenRequest,
} from "./guardrail.ts";
import type { RolloutOutcome } from "./outcome.ts";
import { evenSlices } from "./slice-counts.ts";

/** Stretches of an arm that are kept: the latest, and the one before it. */
const STRETCHES_KEPT = 2;

export interface SavedStretch {
  readonly number: number;
  readonly tally: SavedTally;
  /** Slice and requests of it that ended, in turn. */
  readonly slices: readonly (readonly [number, number])[];
}

export interface SavedGuard {
  /** Of each arm its stretches, oldest first. */
  readonly arms: readonly (readonly SavedStretch[])[];
  /** Of each arm, how many it has had. */
  readonly stretches: readonly number[];
}

interface Stretch {
  readonly number: number;
  readonly tally: ArmTally;
  readonly slices: Map<number, number>;
}

/**
 * Watches the limits of a rollout over all requests of its arms, so that with probability 1 - `level` no limit that is kept is
 * ever taken for crossed: limits and arms share the level, and of an arm's stretches the j-th has 1 / j (j + 1) of it, which
 * are 1 together. The control's own figure may be higher than measured, for which its standard error stands.
 *
 * Requests of a washout count too, and what the control routes before the start and in a pause: harm is harm, and the
 * control's figures are known before the first window.
 */
export class Guard {
  readonly #guardrails: readonly Guardrail[];
  readonly #level: number;
  readonly #arms: readonly Stretch[][];
  readonly #stretches: number[];

  constructor(arms: number, guardrails: readonly Guardrail[], level: number, saved?: SavedGuard) {
    this.#guardrails = guardrails;
    this.#level = level;
    this.#arms = Array.from({ length: arms }, (_, arm) =>
      (saved?.arms[arm] ?? []).map(({ number, tally, slices }) => {
        return { number, tally: new ArmTally(tally), slices: new Map(slices) };
      }),
    );
    this.#stretches = Array.from({ length: arms }, (_, arm) => saved?.stretches[arm] ?? 0);
  }

  observe(outcome: RolloutOutcome): void {
    const stretch = this.#stretch(outcome.arm, outcome.stretch);
    if (stretch === undefined) return;
    stretch.tally.add(outcome);
    stretch.slices.set(outcome.slice, (stretch.slices.get(outcome.slice) ?? 0) + 1);
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
      return stretches.map(({ number, tally, slices }): GuardedRequests => {
        const still = own.filter(({ stretch }) => stretch === number);
        const counts = new Map(slices);
        for (const { slice } of still) counts.set(slice, (counts.get(slice) ?? 0) + 1);
        return { ended: tally, open: still, independent: evenSlices(counts.values()) };
      });
    });
    const [control, ...others] = requests;
    return others.flatMap((stretches, i) => {
      const latest = stretches.at(-1);
      if (latest === undefined) return [];
      const evidence = this.#evidenceOf(i + 1);
      return this.#guardrails.map((guardrail) => guardrailReading(guardrail, i + 1, latest, control!, evidence));
    });
  }

  saved(): SavedGuard {
    const arms = this.#arms.map((stretches) =>
      stretches.map(({ number, tally, slices }) => ({ number, tally: tally.saved(), slices: [...slices] })),
    );
    return { arms, stretches: [...this.#stretches] };
  }

  #evidenceOf(arm: number): number {
    const stretch = this.#stretches[arm]!;
    const limits = this.#guardrails.length * (this.#arms.length - 1);
    return Math.log((limits * stretch * (stretch + 1)) / this.#level);
  }

  /** Undefined for one that is over and gone. */
  #stretch(arm: number, number: number): Stretch | undefined {
    const stretches = this.#arms[arm]!;
    const known = stretches.find((one) => one.number === number);
    if (known !== undefined) return known;
    if (number < (stretches.at(-1)?.number ?? -Infinity)) return undefined;
    const stretch = { number, tally: new ArmTally(), slices: new Map<number, number>() };
    this.#stretches[arm]!++;
    stretches.push(stretch);
    if (stretches.length > STRETCHES_KEPT) stretches.shift();
    return stretch;
  }
}
