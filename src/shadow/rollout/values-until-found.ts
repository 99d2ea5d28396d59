import { type Random, randomFor } from "#core/base/random.ts";
import { evidence, priorFor, valuesToFind } from "#core/rollout/judge/confidence-sequence.ts";

/** A difference that rollouts are to find, and what they measure it with. */
export interface Findable {
  readonly effect: number;
  /** Standard error of the effect, from few simulated rollouts: normal. */
  readonly effectError: number;
  /** What the traffic leaves open of it: Student's, with as many degrees of freedom as parts of the trace leave. */
  readonly trafficError: number;
  /** Standard deviation of one value, and with how many degrees of freedom traffic showed it; many where it is left out. */
  readonly deviation: number;
  readonly deviationDegrees?: number;
  readonly level: number;
  /** Degrees of freedom that the deviation of so many values has. */
  readonly degreesOf: (count: number) => number;
  /** The judge shows no interval of fewer values; a rollout of more is none. */
  readonly valuesMin: number;
  readonly valuesMax: number;
}

/** Normal values as a walk draws them one after the other: the same in each study, and so drawn once. */
class DrawnNormals {
  readonly #random: Random;
  /** A walk looks some 200 times, whatever it is to find, and draws 17 values for a look at most, and as many before. */
  readonly #drawn: number[] = [];
  #used = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  fromTheFirst(): this {
    this.#used = 0;
    return this;
  }

  next(): number {
    const i = this.#used++;
    if (i === this.#drawn.length) this.#drawn.push(normal(this.#random));
    return this.#drawn[i]!;
  }
}

const WALKS = 400;
const NORMALS = Array.from({ length: WALKS }, (_, walk) => new DrawnNormals(randomFor(29, walk)));
const TRAFFIC_DEGREES = 8;
/** Between two looks: that part more values. */
const LOOK_GROWTH = 1.04;
/** Of the values at which the effect is found half the time: how many the first look has, and the last. */
const FROM = 1 / 40;
const TO = 16;

/**
 * After how many values rollouts find the effect, ascending; Infinity for those that do not. Each is walked through with
 * drawn values and looked at all the way, since the interval holds at every look: whoever is lucky is done earlier than a
 * single look at the end lets expect. `plannedCount`: where intervals are narrowest; where it is left out as many as find
 * the effect half the time. Same arguments, same walks.
 */
export function valuesUntilFound(findable: Findable, plannedCount?: number): readonly number[] {
  const { effect, level, degreesOf, valuesMin, valuesMax } = findable;
  const half = valuesToFind(effect, findable.deviation, {
    level,
    standardErrors: 0,
    degreesOf,
    valuesMin: 3,
    valuesMax,
  });
  const planned = plannedCount ?? half;
  const never = () => Array.from({ length: WALKS }, () => Infinity);
  if (planned === undefined || !(effect !== 0) || !(findable.deviation > 0)) return never();
  const prior = priorFor(planned, level);
  const last = Math.min(valuesMax, TO * Math.max(planned, half ?? planned));
  const first = Math.max(valuesMin, Math.floor(FROM * Math.min(planned, half ?? planned)));
  return NORMALS.map((walk) => {
    const normals = walk.fromTheFirst();
    const value = effectOf(findable, normals);
    const deviation = deviationOf(findable, normals);
    let [count, mean, squares] = [0, 0, 0];
    for (let next = first; next <= last; next = Math.max(next + 1, Math.floor(next * LOOK_GROWTH))) {
      const more = next - count;
      const ofMore = value + (deviation * normals.next()) / Math.sqrt(more);
      squares += deviation ** 2 * chiSquared(normals, more - 1) + ((ofMore - mean) ** 2 * count * more) / next;
      mean += ((ofMore - mean) * more) / next;
      count = next;
      const estimate = { count, mean, deviation: Math.sqrt(squares / (count - 1)), degrees: degreesOf(count) };
      if (mean * effect > 0 && evidence(estimate, prior) >= 1 / level) return count;
    }
    return Infinity;
  }).toSorted((one, other) => one - other);
}

/** Share of them that need at most so many. */
export function shareFoundBy(counts: readonly number[], count: number): number {
  const more = counts.findIndex((one) => one > count);
  return (more < 0 ? counts.length : more) / counts.length;
}

/** How many of the walks' effects, over their deviations, are below a range, and above it. */
const OUTSIDE = 0.05;

/**
 * Between which shares of rollouts of `count` values find the effect, by what it and the deviation may be on other traffic:
 * each share is an average over rollouts on one traffic, while `shareFoundBy` is one over traffic as well.
 */
export function foundBetween(findable: Findable, count: number): { readonly low: number; readonly high: number } {
  const sign = Math.sign(findable.effect);
  const { deviation } = findable;
  const effects = NORMALS.map((walk) => {
    const normals = walk.fromTheFirst();
    return (sign * effectOf(findable, normals) * deviation) / deviationOf(findable, normals);
  });
  effects.sort((one, other) => one - other);
  const [low, high] = [OUTSIDE, 1 - OUTSIDE].map((q) => {
    // Of another sign the effect that is expected is not there to be found.
    const effect = Math.max(0, effects[Math.floor(q * WALKS)]!);
    const known = { ...findable, effect, effectError: 0, trafficError: 0, deviationDegrees: Infinity };
    return shareFoundBy(valuesUntilFound(known, count), count);
  });
  return { low: low!, high: high! };
}

function effectOf({ effect, effectError, trafficError }: Findable, normals: DrawnNormals): number {
  const student = normals.next() / Math.sqrt(chiSquared(normals, TRAFFIC_DEGREES) / TRAFFIC_DEGREES);
  return effect + effectError * normals.next() + trafficError * student;
}

/** Of a value on other traffic of the kind. */
function deviationOf({ deviation, deviationDegrees = Infinity }: Findable, normals: DrawnNormals): number {
  if (deviationDegrees === Infinity) return deviation;
  return deviation * Math.sqrt(deviationDegrees / chiSquared(normals, deviationDegrees));
}

/** Of many degrees of freedom by E. Wilson and M. Hilferty, "The distribution of chi-square" (1931). */
function chiSquared(normals: DrawnNormals, degrees: number): number {
  if (degrees <= 0) return 0;
  if (degrees > 16) {
    const ninth = 2 / (9 * degrees);
    return degrees * (1 - ninth + normals.next() * Math.sqrt(ninth)) ** 3;
  }
  let sum = 0;
  for (let i = 0; i < degrees; i++) sum += normals.next() ** 2;
  return sum;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
