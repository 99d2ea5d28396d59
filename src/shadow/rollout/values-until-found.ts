import { type Random, randomFor } from "#core/base/random.ts";
import {
  evidence,
  type MeanEstimate,
  priorFor,
  squaredReach,
  valuesToFind,
} from "#core/rollout/judge/confidence-sequence.ts";

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

/** How far walks are looked at: up to so many values, or until so many walks have found the effect. */
interface Until {
  readonly countMax?: number;
  readonly walks?: number;
}

/**
 * After how many values rollouts find the effect, ascending; Infinity for those that do not, by then. Each is walked
 * through with drawn values and looked at all the way, since the interval holds at every look: whoever is lucky is done
 * earlier than a single look at the end lets expect. `plannedCount`: where intervals are narrowest; where it is left out as
 * many as find the effect half the time. Same arguments, same walks, which are at the same look together.
 */
export function valuesUntilFound(
  findable: Findable,
  plannedCount?: number,
  { countMax = Infinity, walks = WALKS }: Until = {},
): readonly number[] {
  const { effect, level, degreesOf, valuesMin, valuesMax } = findable;
  const counts = Array.from({ length: WALKS }, () => Infinity);
  const half = valuesToFind(effect, findable.deviation, {
    level,
    standardErrors: 0,
    degreesOf,
    valuesMax,
  });
  const planned = plannedCount ?? half;
  if (planned === undefined || !(effect !== 0) || !(findable.deviation > 0)) return counts;
  const prior = priorFor(planned, level);
  const last = Math.min(valuesMax, TO * Math.max(planned, half ?? planned), countMax);
  const first = Math.max(valuesMin, Math.floor(FROM * Math.min(planned, half ?? planned)));
  let walking = NORMALS.map((walk) => new Walk(findable, walk.fromTheFirst()));
  let count = 0;
  let found = 0;
  for (let next = first; next <= last; next = Math.max(next + 1, Math.floor(next * LOOK_GROWTH))) {
    const degrees = degreesOf(next);
    const squared = squaredReach(next, degrees, level, prior);
    const squaredMin = squared < SQUARED_MAX ? (1 - NEARLY) * squared : 0;
    for (const walk of walking) {
      walk.goOn(count, next);
      if (!(walk.mean * effect > 0) || walk.squared(next, degrees) < squaredMin) continue;
      walk.isDone = evidence(walk.estimate(next, degrees), prior) >= 1 / level;
      if (walk.isDone) counts[found++] = next;
    }
    if (found >= walks) break;
    walking = walking.filter(({ isDone }) => !isDone);
    count = next;
  }
  return counts;
}

/**
 * By what part the squares of means may be off, computed another way. Where the reach is beyond, each mean's evidence is
 * computed.
 */
const NEARLY = 1e-6;
const SQUARED_MAX = 1e5;

/** One rollout that draws values. */
class Walk {
  readonly #normals: DrawnNormals;
  readonly #value: number;
  readonly #deviation: number;
  #squares = 0;
  mean = 0;
  isDone = false;

  constructor(findable: Findable, normals: DrawnNormals) {
    this.#normals = normals;
    this.#value = effectOf(findable, normals);
    this.#deviation = deviationOf(findable, normals);
  }

  /** From so many values to as many. */
  goOn(count: number, next: number): void {
    const more = next - count;
    const ofMore = this.#value + (this.#deviation * this.#normals.next()) / Math.sqrt(more);
    const apart = ofMore - this.mean;
    this.#squares += this.#deviation ** 2 * chiSquared(this.#normals, more - 1) + (apart ** 2 * count * more) / next;
    this.mean += (apart * more) / next;
  }

  estimate(count: number, degrees: number): MeanEstimate {
    return { count, mean: this.mean, deviation: Math.sqrt(this.#squares / (count - 1)), degrees };
  }

  /** As `squaredReach` has it. */
  squared(count: number, degrees: number): number {
    return (count * this.mean ** 2 * (count - 1)) / (this.#squares * degrees);
  }
}

/** Share of them that need at most so many. */
export function shareFoundBy(counts: readonly number[], count: number): number {
  const more = counts.findIndex((one) => one > count);
  return (more < 0 ? counts.length : more) / counts.length;
}

/** The same of walks whose intervals are narrowest at that count. */
export function shareFoundIn(findable: Findable, count: number): number {
  return shareFoundBy(valuesUntilFound(findable, count, { countMax: count }), count);
}

/** After how many values that share of rollouts finds the effect; Infinity where fewer do. */
export function valuesForShare(findable: Findable, share: number): number {
  const walks = Math.ceil(share * WALKS);
  return valuesUntilFound(findable, undefined, { walks })[walks - 1]!;
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
    return shareFoundIn(known, count);
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
