import type { Micros } from "../../base/units.ts";
import type { RolloutOutcome } from "./outcome.ts";

/**
 * Requests that end in a row, of whatever arm, and those of them that are the slowest. The fewer of more, the more of an
 * arm's few slow ones are among them beside what is slow anyway: of 3 % that take ten times as long to their first token, in
 * a canary of 5 %, a request shows three times as much as with 3 of 250.
 */
const BESIDE = 500;
const SLOWEST = 2;

/**
 * They take so many times as long as the last of the slowest twentieth, or none of them is slow: in a burst all wait nearly as
 * long as one another, so that by order alone an arm that takes 3 % longer would have most of the slowest.
 */
const APART = 1.5;
const TWENTIETH = BESIDE / 20;

/** What is known of a request until it is ranked. */
export type Unranked = Pick<RolloutOutcome, "arm" | "cluster" | "tenant" | "sloClass"> & { readonly ttft: Micros };

/**
 * Which requests are slow to their first token beside those that end at the same time. Where arms share their engines a
 * burst meets both: what is a long time within it is not outside, so that a few slow requests of one arm are seen in quiet
 * times too, in which most are, and a burst hides none. Both arms' requests are ranked together: arms that are alike have
 * as many slow ones.
 */
export class RankedRequests {
  readonly #waiting: Unranked[];

  constructor(saved: readonly Unranked[] = []) {
    this.#waiting = [...saved];
  }

  /** Returns those that are ranked now, each with whether it was among the slowest. */
  add({ arm, cluster, tenant, sloClass, times: { ttft } }: RolloutOutcome): readonly (readonly [Unranked, boolean])[] {
    if (ttft === undefined) return [];
    this.#waiting.push({
      arm,
      cluster,
      ttft,
      ...(tenant !== undefined && { tenant }),
      ...(sloClass !== undefined && { sloClass }),
    });
    if (this.#waiting.length < BESIDE) return [];
    const beside = this.#waiting.splice(0);
    const sorted = beside.toSorted((one, other) => other.ttft - one.ttft);
    const least = APART * sorted[TWENTIETH - 1]!.ttft;
    const slowest = new Set(sorted.slice(0, SLOWEST).filter(({ ttft: time }) => time > least));
    return beside.map((one) => [one, slowest.has(one)] as const);
  }

  saved(): readonly Unranked[] {
    return [...this.#waiting];
  }
}
