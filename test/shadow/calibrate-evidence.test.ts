import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { recordedSizes } from "#shadow/calibrate/recorded-sizes.ts";
import type { Observed, RecordedRun } from "#shadow/recorded-run.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";
import { HEADER } from "../trace/trace-samples.ts";

const SEEN: Observed = {
  endpoint: "a",
  ok: true,
  ttftMicros: 100,
  e2eMicros: 500,
  outputTokens: 5,
  cachedTokens: 0,
};

function runOf(observed: readonly Observed[], kvCapacityTokens?: number): RecordedRun {
  const workload = observed.map(({ outputTokens }, index) => {
    const arrivalMicros = 1000 * (observed.length - index);
    return { ...LENGTHS_ONLY, index, arrivalMicros, promptTokens: 100, outputTokens };
  });
  const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens, concurrencyMax: undefined };
  return { header: HEADER, workload, observed, endpoints: [endpoint], fleetEvents: [], left: { refused: 2 } };
}

test("the block size is what counts of cached tokens share, and the cache has the reserved block too", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(16, 32, 64),
      fc.array(fc.integer({ min: 2, max: 99 }), { minLength: 8 }),
      (blockTokens, blocks) => {
        const observed = [1, ...blocks].map((count) => ({ ...SEEN, cachedTokens: count * blockTokens }));
        const { sizes } = recordedSizes(runOf(observed, 2047 * blockTokens));
        assert.deepEqual(sizes, { blockTokens, kvBlocks: 2048 });
      },
    ),
  );
});

test("a few counts prove nothing: the router's block size holds then, and what is told before either", () => {
  const run = runOf([{ ...SEEN, cachedTokens: 96 }]);
  assert.deepEqual(recordedSizes(run).sizes, { blockTokens: HEADER.router.blockTokens });
  assert.deepEqual(recordedSizes(run, 64).sizes, { blockTokens: 64 });
});

test("every request is in the rows once, by arrival, or counted", () => {
  const observed = [SEEN, { ...SEEN, endpoint: "b" }, { ...SEEN, endpoint: "" }, { ...SEEN, ttftMicros: NaN }];
  const all = evidenceOf(runOf(observed), 16);
  assert.deepEqual(all.endpoints, ["a", "b"]);
  assert.deepEqual(
    all.rows.map(({ arrivalAt, endpoint, ok }) => [arrivalAt, endpoint, ok]),
    [
      [1000, 0, false],
      [3000, 1, true],
      [4000, 0, true],
    ],
  );
  assert.deepEqual(all.left, { refused: 2, "without an endpoint": 1 });
  const some = evidenceOf(runOf(observed), 16, ["b"]);
  assert.deepEqual([some.endpoints, some.rows.length], [["b"], 1]);
  assert.deepEqual(some.left, { refused: 2, "without an endpoint": 1, "at another endpoint": 2 });
});
