import { ArmTally, type SavedTally } from "./arm-tally.ts";
import {
  type GuardedRequests,
  type Guardrail,
  type GuardrailReading,
  guardrailReading,
  type OpenRequest,
} from "./guardrail.ts";
import type { MemberTallies } from "./member-tallies.ts";
import type { RolloutOutcome } from "./outcome.ts";
import { type ComparedArms, type GuardSetting, RelativeLimits, type SavedRelative } from "./relative-limits.ts";
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
  /** Absent where limits are none or clusters are compared. */
  readonly relative?: SavedRelative;
}

interface Stretch {
  readonly number: number;
  readonly tally: ArmTally;
  readonly slices: Map<number, number>;
}

/**
 * Watches the limits of a rollout, so that with probability 1 - `level` none that is kept is ever taken for crossed.
 * Absolute ones are judged by an arm's latest stretch, washout included, since harm is harm; limits and arms share the
 * level, and of an arm's stretches the j-th has 1 / j (j + 1) of it, which are 1 together. Those relative to the control
 * (`RelativeLimits`) are judged by what is compared: a window that meets a burst shows nothing of its arm.
 */
export class Guard {
  readonly #absolute: readonly Guardrail[];
  readonly #relative: RelativeLimits;
  readonly #level: number;
  readonly #arms: readonly Stretch[][];
  readonly #stretches: number[];

  constructor(arms: number, guardrails: readonly Guardrail[], { level, pools }: GuardSetting, saved?: SavedGuard) {
    this.#absolute = guardrails.filter(({ absoluteMax }) => absoluteMax !== undefined);
    const relative = guardrails.filter(({ relativeMax }) => relativeMax !== undefined).length;
    // Each kind has of the level as its part of the limits is.
    const all = Math.max(1, this.#absolute.length + relative);
    this.#level = (level * this.#absolute.length) / all;
    this.#relative = new RelativeLimits(arms, guardrails, { level: (level * relative) / all, pools }, saved?.relative);
    this.#arms = Array.from({ length: arms }, (_, arm) =>
      (saved?.arms[arm] ?? []).map(({ number, tally, slices }) => {
        return { number, tally: new ArmTally(tally), slices: new Map(slices) };
      }),
    );
    this.#stretches = Array.from({ length: arms }, (_, arm) => saved?.stretches[arm] ?? 0);
  }

  observe(outcome: RolloutOutcome): void {
    if (this.#absolute.length === 0) return;
    const stretch = this.#stretch(outcome.arm, outcome.stretch);
    if (stretch === undefined) return;
    stretch.tally.add(outcome);
    stretch.slices.set(outcome.slice, (stretch.slices.get(outcome.slice) ?? 0) + 1);
  }

  /** A block of windows is whole. */
  compareBlock(tallies: readonly ArmTally[], members: MemberTallies): void {
    this.#relative.compareBlock(tallies, members);
  }

  /** Every limit, with the requests that have not ended. */
  readings(open: readonly OpenRequest[], compared: ComparedArms): GuardrailReading[] {
    return [...this.#absoluteReadings(open), ...this.#relative.readings(compared, open)];
  }

  #absoluteReadings(open: readonly OpenRequest[]): GuardrailReading[] {
    if (this.#absolute.length === 0) return [];
    for (const { arm, stretch } of open) this.#stretch(arm, stretch);
    return this.#arms.slice(1).flatMap((stretches, i) => {
      const latest = stretches.at(-1);
      if (latest === undefined) return this.#absolute.map((guardrail) => unreadOf(guardrail, i + 1));
      const { number, tally, slices } = latest;
      const still = open.filter(({ arm, stretch }) => arm === i + 1 && stretch === number);
      const counts = new Map(slices);
      for (const { slice } of still) counts.set(slice, (counts.get(slice) ?? 0) + 1);
      const requests: GuardedRequests = { ended: tally, open: still, independent: evenSlices(counts.values()) };
      return this.#absolute.map((guardrail) => guardrailReading(guardrail, i + 1, requests, this.#evidenceOf(i + 1)));
    });
  }

  saved(): SavedGuard {
    const arms = this.#arms.map((stretches) =>
      stretches.map(({ number, tally, slices }) => ({ number, tally: tally.saved(), slices: [...slices] })),
    );
    return { arms, stretches: [...this.#stretches], relative: this.#relative.saved() };
  }

  #evidenceOf(arm: number): number {
    const stretch = this.#stretches[arm]!;
    const limits = this.#absolute.length * (this.#arms.length - 1);
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

/** Of an arm that has had no request: what is watched is to be seen before. */
function unreadOf(guardrail: Guardrail, arm: number): GuardrailReading {
  const { absoluteMax = Infinity } = guardrail;
  return { arm, guardrail, value: NaN, low: NaN, control: NaN, limit: absoluteMax, samples: 0, crossed: false };
}
