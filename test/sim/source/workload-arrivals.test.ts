import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { simulate } from "#sim/simulate.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { linkedWorkload, shuffled } from "../../trace/linked-workload.ts";
import { cluster, engines, WEIGHTED } from "../cluster.ts";

const RUNS = 50;
const STEP = { kind: "coefficients", baseMicros: 4000, perPrefillTokenMicros: 30, perDecodeMicros: 100 } as const;

function outcomesOf(workload: Iterable<WorkloadRequest>, rateScale = 1) {
  const options = { seed: 1, blockTokens: 16, timeoutMicros: Infinity, timeScale: 1, rateScale };
  const arrivals = new WorkloadArrivals(workload, options);
  const { outcomes, stranded } = simulate(
    cluster(WEIGHTED, engines(2, { stepTime: STEP, kvBlocks: 120 }), { arrivals }),
  );
  const { ids, arrivalAt, ttft, e2e, endpoint, cachedTokens } = outcomes;
  return { stranded, ids, arrivalAt, ttft, e2e, endpoint, cachedTokens };
}

test("conversations may stand in any order: the simulation is the same, to the last figure", () => {
  fc.assert(
    fc.property(linkedWorkload, fc.nat(), fc.constantFrom(0.5, 1, 7), (workload, seed, rateScale) => {
      const sorted = outcomesOf(workload, rateScale);
      assert.equal(sorted.ids.length + sorted.stranded, workload.length);
      assert.deepEqual(outcomesOf(shuffled(workload, seed), rateScale), sorted);
    }),
    { numRuns: RUNS },
  );
});

test("every turn comes after the one before it, and none before its time", () => {
  fc.assert(
    fc.property(linkedWorkload, fc.nat(), (workload, seed) => {
      const { ids, arrivalAt, e2e, stranded } = outcomesOf(shuffled(workload, seed));
      assert.equal(stranded, 0);
      const rowOf = new Map(ids.map((id, row) => [id, row]));
      for (const one of workload) {
        const row = rowOf.get(`request_${one.index}`)!;
        if (one.thinkMicros === undefined) assert.ok(arrivalAt[row]! >= one.arrivalMicros);
        const before = workload.find(({ session, turn }) => one.session === session && turn === one.turn - 1);
        if (one.session === "" || before === undefined) continue;
        const beforeRow = rowOf.get(`request_${before.index}`)!;
        assert.ok(arrivalAt[row]! >= arrivalAt[beforeRow]! + e2e[beforeRow]! + (one.thinkMicros ?? 0));
      }
    }),
    { numRuns: RUNS },
  );
});

test("recorded order, in which turns of different conversations alternate, is no obstacle", () => {
  fc.assert(
    fc.property(linkedWorkload, (workload) => {
      const recorded = workload.toSorted((a, b) => a.arrivalMicros - b.arrivalMicros);
      assert.deepEqual(outcomesOf(recorded), outcomesOf(workload));
    }),
    { numRuns: RUNS },
  );
});

test("a stream whose turns stand apart is refused by name where the time for one has passed", () => {
  const turn = (session: string, index: number, arrivalMicros: number, thinkMicros?: number): WorkloadRequest => ({
    index,
    arrivalMicros,
    session,
    turn: thinkMicros === undefined ? 0 : 1,
    parent: undefined,
    joins: [],
    thinkMicros,
    promptTokens: 20,
    outputTokens: 2,
    blockIds: undefined,
    blockTokens: 16,
    text: undefined,
    tokenIds: undefined,
    tenant: "",
    sloClass: "",
    model: "",
  });
  const apart = [turn("a", 0, 0), turn("b", 1, 900_000), turn("c", 2, 950_000), turn("a", 3, 0, 1_000)];
  assert.throws(() => outcomesOf(apart.values()), /turn 1 of "a" was read when its time had passed/);
  assert.equal(outcomesOf(apart).ids.length, 4);
});

test("clients state the targets of their class, if the workload has none of their own; an infinite one is none", () => {
  const request = (index: number, more: Partial<WorkloadRequest>): WorkloadRequest => ({
    ...LENGTHS_ONLY,
    index,
    arrivalMicros: index,
    promptTokens: 10,
    outputTokens: 2,
    ...more,
  });
  const workload = [
    request(0, { sloClass: "chat" }),
    request(1, { sloClass: "chat", slo: { ttftMicros: 5 } }),
    request(2, { sloClass: "batch" }),
  ];
  const arrivals = new WorkloadArrivals(workload, {
    seed: 1,
    blockTokens: 16,
    timeoutMicros: Infinity,
    timeScale: 1,
    rateScale: 1,
    targets: { chat: { ttftMicros: 200, tpotMicros: 30 }, "*": { ttftMicros: Infinity, tpotMicros: 90 } },
  });
  const stated = workload.map(() => {
    const { slo } = arrivals.take().route;
    return [slo?.ttftMicros, slo?.tpotMicros];
  });
  assert.deepEqual(stated, [
    [200, 30],
    [5, 30],
    [undefined, 90],
  ]);
});
