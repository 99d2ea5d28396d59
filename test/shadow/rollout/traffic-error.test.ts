import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import type { CandidateOutcome } from "#shadow/candidate/candidate.ts";
import type { DesignStudy } from "#shadow/rollout/design-study.ts";
import { shownIntervals } from "#shadow/rollout/shown-interval.ts";
import { trafficErrors } from "#shadow/rollout/traffic-error.ts";

const SPAN = { spanMicros: 180_000_000 };
const PER_PART = 200;

/** Traffic whose parts differ: the other arm takes 100 ms more, and `swing` more or less in a part. */
function drawn(seed: number, swing: number): [CandidateOutcome, CandidateOutcome] {
  const random = randomFor(seed, 7);
  const parts = Array.from({ length: 9 }, () => swing * (random.next() + random.next() + random.next() - 1.5));
  const rows = Array.from({ length: 9 * PER_PART }, (_, row) => row);
  const outcome = (extra: (row: number) => number) => {
    const times = Float64Array.from(rows, (row) => 500_000 + 20_000 * (row % 5) + extra(row));
    const arrivalMicros = Float64Array.from(rows, (row) => (row * SPAN.spanMicros) / rows.length);
    return { ttftMicros: times, tpotMicros: times, e2eMicros: times, arrivalMicros } as unknown as CandidateOutcome;
  };
  return [outcome(() => 0), outcome((row) => 100_000 + parts[Math.floor(row / PER_PART)]!)];
}

function meanDifference([control, other]: ReturnType<typeof drawn>): number {
  const mean = ({ e2eMicros }: CandidateOutcome) => e2eMicros.reduce((sum, one) => sum + one, 0) / e2eMicros.length;
  return mean(other) - mean(control);
}

test("the interval of a plan holds what nine other draws of the traffic show, four times of five; without it none", () => {
  let [inside, without, held, all] = [0, 0, 0, 0];
  for (let seed = 1; seed <= 40; seed++) {
    const own = drawn(seed, 200_000);
    const estimate = meanDifference(own);
    const figure = { estimate, biasError: 1_000, runError: 0, clusters: 10, valuesPerHour: 10 };
    const figures = { "e2e.mean": figure, "e2e.p99": { estimate: NaN, biasError: NaN } };
    const study = {
      design: { kind: "split" },
      figures: new Proxy(figures, { get: (of, key) => of[key as "e2e.mean"] ?? of["e2e.p99"] }),
    };
    const traffic = trafficErrors(own, 0);
    const still = { "e2e.mean": { ...traffic["e2e.mean"]!, error: 0 } };
    const [wide, narrow] = [traffic, still].map((given) => {
      return shownIntervals(study as unknown as DesignStudy, [], given, 1)["e2e.mean"]!;
    });
    assert.deepEqual(shownIntervals(study as unknown as DesignStudy, [], {}, 1), {}, "what cannot be said is not");
    const { covered, of } = traffic["e2e.mean"]!;
    held += covered;
    all += of;
    for (let other = 1; other <= 9; other++) {
      const shown = meanDifference(drawn(1000 * seed + other, 200_000));
      if (shown >= wide!.low && shown <= wide!.high) inside++;
      if (shown >= narrow!.low && shown <= narrow!.high) without++;
    }
  }
  assert.ok(inside >= 0.8 * 360, `${inside} of 360`);
  assert.ok(without < 0.2 * 360, `${without} of 360`);
  // Each part held out is within what the others have expected nine times of ten.
  assert.ok(held / all > 0.8 && held / all < 0.97, `${held} of ${all}`);
});

test("parts have as many requests each, whatever the pauses; a trace with too few for them has no error", () => {
  const [control, other] = drawn(1, 1000);
  const late = (at: number) => at / 1.5 + (at > SPAN.spanMicros / 2 ? 5 * SPAN.spanMicros : 0);
  const paused = [control, other].map((one) => ({ ...one, arrivalMicros: one.arrivalMicros.map(late) }));
  assert.deepEqual(
    trafficErrors(paused as [CandidateOutcome, CandidateOutcome], 0),
    trafficErrors([control, other], 0),
  );
  const few = [control, other].map((one) => {
    const cut = (values: Float64Array) => values.slice(0, 85);
    const times = cut(one.e2eMicros);
    return { ttftMicros: times, tpotMicros: times, e2eMicros: times, arrivalMicros: cut(one.arrivalMicros) };
  });
  assert.deepEqual(trafficErrors(few as unknown as [CandidateOutcome, CandidateOutcome], 0), {});
  const hurried = [control, other].map((one) => ({ ...one, arrivalMicros: one.arrivalMicros.map((at) => at / 4) }));
  assert.deepEqual(trafficErrors(hurried as [CandidateOutcome, CandidateOutcome], 0), {}, "parts of 5 s");
});
