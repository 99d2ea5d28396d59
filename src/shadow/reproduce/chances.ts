import type { DecisionView } from "#core/router.ts";
import { randomFor, type Random } from "#core/base/random.ts";
import type { Profile } from "#core/profile/profile.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";

/** What a policy would do with a request: nothing left to chance, one of several alike, or as it was drawn so often. */
export type Chances =
  | { readonly kind: "one"; readonly index: number }
  | { readonly kind: "alike"; readonly among: readonly number[] }
  | { readonly kind: "drawn"; readonly counts: Float64Array };

/** Draws of a choice whose chances no formula has. */
const DRAWS = 32;
const TOTALS_EPSILON = 1e-9;

/** What `profile`, built of `spec`, would do. Changes nothing. */
export function chancesOf(profile: Profile, spec: ProfileSpec, view: DecisionView, seed: number): Chances {
  const random = new CountedDraws(seed);
  const { index, breakdown } = choose(profile, view, random);
  if (random.draws === 0 || index < 0) return { kind: "one", index };
  if (random.draws === 1) {
    const { plugin, parameters } = spec.picker;
    const left = (least: number): number[] =>
      Array.from(breakdown.totals.keys()).filter((i) => breakdown.totals[i]! >= least);
    // The only draw was the picker's where it had one to make.
    if (plugin === "random" && spec.filters.length === 0) return { kind: "alike", among: left(-Infinity) };
    if (plugin === "max-score" && parameters["tieBreak"] === "random") {
      const best = breakdown.totals.reduce((most, total) => (total > most ? total : most), -Infinity);
      const among = left(best - Math.max(TOTALS_EPSILON, Number(parameters["epsilon"] ?? 0)));
      if (among.length > 1) return { kind: "alike", among };
    }
  }
  const counts = new Float64Array(view.states.length);
  for (let draw = 0; draw < DRAWS; draw++) {
    const drawn = draw === 0 ? index : choose(profile, view, randomFor(seed, draw)).index;
    if (drawn >= 0) counts[drawn]!++;
  }
  return { kind: "drawn", counts };
}

/** The chance that `index` had, and the sum of the squares of all chances, as without the draws' own noise. */
export function chanceOf(chances: Chances, index: number): { readonly chance: number; readonly squares: number } {
  switch (chances.kind) {
    case "one":
      return { chance: chances.index === index ? 1 : 0, squares: chances.index < 0 ? 0 : 1 };
    case "alike": {
      const each = 1 / chances.among.length;
      return { chance: chances.among.includes(index) ? each : 0, squares: each };
    }
    case "drawn": {
      const sum = chances.counts.reduce((all, count) => all + count * (count - 1), 0);
      return { chance: chances.counts[index]! / DRAWS, squares: sum / (DRAWS * (DRAWS - 1)) };
    }
  }
}

/** The likeliest one; -1 for a refusal. */
export function likeliest(chances: Chances): number {
  if (chances.kind === "one") return chances.index;
  if (chances.kind === "alike") return chances.among[0]!;
  return chances.counts.indexOf(Math.max(...chances.counts));
}

function choose(profile: Profile, { request, states, ids, ineligible }: DecisionView, random: Random) {
  return profile.choose(request, states, ids, ineligible, random);
}

class CountedDraws implements Random {
  readonly #random: Random;
  draws = 0;

  constructor(seed: number) {
    this.#random = randomFor(seed, 0);
  }

  next(): number {
    this.draws++;
    return this.#random.next();
  }

  below(bound: number): number {
    this.draws++;
    return this.#random.below(bound);
  }
}
