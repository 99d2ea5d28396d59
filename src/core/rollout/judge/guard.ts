import { ArmTally, type SavedTally } from "./arm-tally.ts";
import {
  type GuardedRequests,
  type Guardrail,
  type GuardrailReading,
  guardrailReading,
  measuredOf,
  type OpenRequest,
} from "./guardrail.ts";
import type { RolloutOutcome } from "./outcome.ts";
import { evenSlices } from "./slice-counts.ts";
import { type SavedExcess, WindowExcess } from "./window-excess.ts";

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
  /** Of each arm, by limit, and the last stretch that they count; where arms have endpoints of their own. */
  readonly excess?: readonly (readonly SavedExcess[])[];
  readonly counted?: readonly number[];
}

interface Stretch {
  readonly number: number;
  readonly tally: ArmTally;
  readonly slices: Map<number, number>;
}

/**
 * Watches the limits of a rollout over all requests of its arms, so that with probability 1 - `level` no limit that is
 * kept is ever taken for crossed: limits and arms share the level, and of an arm's stretches the j-th has 1 / j (j + 1)
 * of it, which are 1 together. The control's own figure may be higher than measured, for which its standard error
 * stands.
 *
 * Requests of a washout count too, and what the control routes before the start and in a pause: harm is harm, and the
 * control's figures are known before the first window. Where arms have endpoints of their own (pools), a limit relative to
 * the control is judged by whole windows: endpoints differ by what they happen to have got, for longer than a second.
 */
export class Guard {
  readonly #guardrails: readonly Guardrail[];
  readonly #level: number;
  readonly #arms: readonly Stretch[][];
  readonly #stretches: number[];
  readonly #byWindow: boolean;
  readonly #excess: readonly (readonly WindowExcess[])[];
  readonly #counted: number[];

  constructor(
    arms: number,
    guardrails: readonly Guardrail[],
    { level, byWindow }: { readonly level: number; readonly byWindow: boolean },
    saved?: SavedGuard,
  ) {
    this.#guardrails = guardrails;
    this.#level = level;
    this.#arms = Array.from({ length: arms }, (_, arm) =>
      (saved?.arms[arm] ?? []).map(({ number, tally, slices }) => {
        return { number, tally: new ArmTally(tally), slices: new Map(slices) };
      }),
    );
    this.#stretches = Array.from({ length: arms }, (_, arm) => saved?.stretches[arm] ?? 0);
    this.#byWindow = byWindow;
    this.#excess = Array.from({ length: arms }, (_, arm) =>
      guardrails.map((_limit, i) => new WindowExcess(saved?.excess?.[arm]?.[i])),
    );
    this.#counted = Array.from({ length: arms }, (_, arm) => saved?.counted?.[arm] ?? Number.MIN_SAFE_INTEGER);
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
      return this.#guardrails.map((guardrail, place) => {
        const reading = guardrailReading(guardrail, i + 1, latest, control!, evidence);
        const { relativeMax, ...absolute } = guardrail;
        if (!this.#byWindow || relativeMax === undefined) return reading;
        const alone = guardrailReading(absolute, i + 1, latest, [], evidence);
        if (alone.crossed) return { ...alone, guardrail };
        const limits = this.#guardrails.length * (this.#arms.length - 1);
        const low = reading.limit * this.#excess[i + 1]![place]!.atLeast(this.#level / limits);
        return { ...reading, low, crossed: reading.samples >= guardrail.samplesMin && low > reading.limit };
      });
    });
  }

  /** Counts stretches that are over for an arm and the control, with what ended of them. */
  closeStretches(): void {
    if (!this.#byWindow) return;
    const control = this.#arms[0]!;
    for (const [arm, stretches] of this.#arms.entries()) {
      if (arm === 0) continue;
      for (const own of stretches.slice(0, -1)) {
        const beside = control.slice(0, -1).find(({ number }) => number === own.number);
        if (beside === undefined || own.number <= this.#counted[arm]!) continue;
        this.#counted[arm] = own.number;
        this.#guardrails.forEach((guardrail, i) => {
          const ratio = timesLimit(guardrail, own, beside);
          if (!Number.isNaN(ratio)) this.#excess[arm]![i]!.add(ratio);
        });
      }
    }
  }

  saved(): SavedGuard {
    const arms = this.#arms.map((stretches) =>
      stretches.map(({ number, tally, slices }) => ({ number, tally: tally.saved(), slices: [...slices] })),
    );
    const excess = this.#excess.map((limits) => limits.map((one) => one.saved()));
    return { arms, stretches: [...this.#stretches], ...(this.#byWindow && { excess, counted: [...this.#counted] }) };
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

/**
 * An arm's figure over its limit; NaN where one of them has too few samples, or the limit has nothing to do with the
 * control.
 */
function timesLimit(guardrail: Guardrail, own: Stretch, control: Stretch): number {
  const { relativeMax = NaN, samplesMin } = guardrail;
  const of = ({ tally }: Stretch) => measuredOf(guardrail, { ended: tally, open: [], independent: 1 });
  const [mine, other] = [of(own), of(control)];
  if (Math.min(mine.samples, other.samples) < samplesMin) return NaN;
  return other.value > 0 ? mine.value / (relativeMax * other.value) : NaN;
}
