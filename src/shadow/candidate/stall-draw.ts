import { nameHash, type Random, randomFor } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import type { Stalls, StepResiduals } from "#engine/step-drift.ts";
import { normal } from "../figure/normal.ts";

/** Stalls of one endpoint in one replica at most; later ones are left out. */
const STALLS_MAX = 4096;

/**
 * The stalls of a replica's endpoints over so much time; undefined where none were looked for or none were seen. How often
 * they come is drawn anew, since a few that were seen show little of that: a gamma variate of count + 1/2 (Jeffreys's
 * posterior of a Poisson rate), and by what another run differs in (betweenRuns.noise). Of those that several endpoints had
 * at once, all have their part.
 */
export function stallDraw(
  { stalls, betweenRuns }: StepResiduals,
  spanMicros: Micros,
  seed: number,
  replica: number,
): ((endpoint: number) => Stalls) | undefined {
  if (stalls === undefined || stalls.count === 0) return undefined;
  const random = randomFor(seed, nameHash("stalls") + replica);
  const noise = Math.exp((betweenRuns?.noise ?? 0) * normal(random));
  const perMicro = (noise * gamma(stalls.count + 0.5, random)) / stalls.watchedMicros;
  const shared = drawn(stalls.shared * perMicro, stalls.micros, spanMicros, random);
  return (endpoint) => {
    const own = randomFor(seed, nameHash(`stalls of ${endpoint}`) + replica);
    const all = [...shared, ...drawn((1 - stalls.shared) * perMicro, stalls.micros, spanMicros, own)];
    return apart(all.sort((a, b) => a.at - b.at));
  };
}

interface Stall {
  readonly at: Micros;
  readonly micros: Micros;
}

function drawn(perMicro: number, lengths: readonly Micros[], spanMicros: Micros, random: Random): Stall[] {
  const made: Stall[] = [];
  const pause = () => -Math.log(1 - random.next()) / perMicro;
  for (let at = pause(); at < spanMicros && made.length < STALLS_MAX; at += pause()) {
    made.push({ at: Math.floor(at), micros: lengths[random.below(lengths.length)]! });
  }
  return made;
}

/** One that would begin in another begins after it. */
function apart(stalls: readonly Stall[]): Stalls {
  const at = new Float64Array(stalls.length);
  let free = 0;
  stalls.forEach((stall, i) => {
    at[i] = Math.max(free, stall.at);
    free = Math.max(free, stall.at) + stall.micros + 1;
  });
  return { at, micros: Float64Array.from(stalls, ({ micros }) => micros) };
}

/** Gamma variate of that shape, at least 1/2, and scale 1, for shapes of counts: Wilson and Hilferty's cube (1931). */
function gamma(shape: number, random: Random): number {
  const ninth = 1 / (9 * shape);
  return shape * Math.max(0, 1 - ninth + normal(random) * Math.sqrt(ninth)) ** 3;
}
