import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { engineDefaults } from "#engine/config.ts";
import { type DecodeRow, decodeRows, prefilledTokens } from "#shadow/calibrate/decode-rows.ts";
import { engineSizes } from "#shadow/calibrate/engine-sizes.ts";
import { evidenceOf, promptTokensOf, tpotOf } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { recordedSizes } from "#shadow/calibrate/recorded-sizes.ts";
import { type RecordedRun, RunBook } from "#shadow/recorded/recorded-run.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";
import { request } from "../../core/state.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const SEEN: Observed = {
  endpoint: "a",
  ok: true,
  ttftMicros: 100,
  e2eMicros: 500,
  outputTokens: 5,
  cachedTokens: 0,
  attempts: 1,
  retriedMicros: 0,
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
      fc.uniqueArray(fc.integer({ min: 2, max: 99 }), { minLength: 8 }),
      (blockTokens, blocks) => {
        const observed = [1, ...blocks].map((count) => ({ ...SEEN, cachedTokens: count * blockTokens }));
        const { sizes } = recordedSizes(runOf(observed, 2047 * blockTokens));
        assert.deepEqual(sizes, { blockTokens, kvBlocks: 2048 });
      },
    ),
  );
});

test("answers side by side are load, and the steps are those of one", () => {
  const run = runOf([{ ...SEEN, outputTokens: 5 }]);
  const workload = run.workload.map((one) => ({ ...one, outputTokens: 15, sequences: 3 }));
  const { rows } = evidenceOf({ ...run, workload }, 16);
  assert.deepEqual([rows[0]!.outputTokens, tpotOf(rows[0]!)], [5, 100]);
  assert.equal(decodeRows({ endpoints: ["a"], rows, left: {} })[0]!.concurrency, 3);
  const stepTime = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 0, perDecodeMicros: 100 } as const;
  const { tpotMicros, e2eMicros } = forcedReplay({ endpoints: ["a"], rows, left: {} }, engineDefaults({ stepTime }));
  assert.deepEqual([tpotMicros[0], e2eMicros[0]], [1300, 1000 + 4 * 1300]);
});

test("several prompts are computed as they are long, and the last answer is the end", () => {
  const run = runOf([{ ...SEEN, outputTokens: 3 }]);
  const workload = run.workload.map((one) => ({ ...one, outputTokens: 6, sequences: 2, tokensByPrompt: [32, 68] }));
  const evidence = evidenceOf({ ...run, workload }, 16);
  assert.deepEqual([promptTokensOf(evidence.rows[0]!), prefilledTokens(evidence.rows[0]!)], [100, 100]);
  const [{ concurrency, contextTokens }] = decodeRows(evidence) as [DecodeRow];
  assert.deepEqual([concurrency, contextTokens], [2, 100 + 3]);
  const stepTime = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
  const sizes = { stepTime, batchTokensMax: 32 };
  const { ttftMicros, e2eMicros } = forcedReplay(evidence, engineDefaults(sizes));
  assert.deepEqual([ttftMicros[0], e2eMicros[0]], [1000, 6000]);
  const { modelTokensMax } = engineSizes(engineDefaults({ modelTokensMax: 10 }), { ...run, workload }).sizes;
  assert.equal(modelTokensMax, 68 + 3);
});

test("an endpoint that showed two ranks has two, with half of the room each", () => {
  const run = runOf([{ ...SEEN, cachedTokens: 96 }], 2 * 2047 * 16);
  const two = { ...run, endpoints: [{ ...run.endpoints[0]!, concurrencyMax: 32, dataParallel: 2 }] };
  const { sizes, notes } = recordedSizes(two, 16);
  assert.deepEqual(sizes, { blockTokens: 16, kvBlocks: 2048, sequencesMax: 16, dataParallel: 2 });
  assert.match(notes.join("\n"), /dataParallel 2: as many ranks showed/);
  const header = { ...run.header, engine: { dataParallel: 1 } };
  assert.equal(recordedSizes({ ...two, header }, 16).sizes.dataParallel, 1, "what the trace says holds");
});

test("one prefix again and again proves nothing about the block size", () => {
  const run = runOf(Array.from({ length: 40 }, () => ({ ...SEEN, cachedTokens: 96 })));
  assert.deepEqual(recordedSizes(run).sizes, { blockTokens: HEADER.router.blockTokens });
  assert.deepEqual(recordedSizes(run, undefined, 32).sizes, { blockTokens: 32 });
});

test("a few counts prove nothing: the router's block size holds then, and what is given before either", () => {
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

test("a retried request is load where it ended up, from then on, and its times are not compared; it is counted", () => {
  const retried = { ...SEEN, endpoint: "b", attempts: 2, retriedMicros: 40, ttftMicros: 140, e2eMicros: 540 };
  const { rows, left } = evidenceOf(runOf([retried, SEEN]), 16);
  const row = rows.find(({ arrivalAt }) => arrivalAt === 2040);
  assert.deepEqual([row?.ok, row?.ttftMicros, row?.e2eMicros], [false, 100, 500]);
  assert.deepEqual(left, { refused: 2, "retried, and so load only": 1 });
});

test("a recorded run has how often a request was sent, and when for the last time", () => {
  const book = new RunBook();
  const route = request({ id: "r" });
  book.take({ kind: "request-arrived", at: 1_000, request: route }, "a");
  book.take({ kind: "attempt-failed", at: 1_200, requestId: "r", fault: "connect" }, undefined);
  book.take({ kind: "request-retried", at: 1_300, requestId: "r" }, "b");
  book.take({ kind: "first-token", at: 1_700, requestId: "r" }, undefined);
  const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
  book.take({ kind: "request-finished", at: 2_000, requestId: "r", outcome: "ok", ...counts }, undefined);
  const { observed } = book.close(HEADER);
  assert.deepEqual(observed, [
    {
      endpoint: "b",
      ok: true,
      ttftMicros: 700,
      e2eMicros: 1000,
      outputTokens: 4,
      cachedTokens: 0,
      attempts: 2,
      retriedMicros: 300,
    },
  ]);
});

test("requests whose ends never come do not pile up in a window, and are counted", () => {
  const book = new RunBook(10);
  for (let i = 0; i < 10_050; i++)
    book.take({ kind: "request-arrived", at: i, request: request({ id: `r${i}` }) }, "a");
  const { left } = book.close(HEADER);
  assert.deepEqual(left, { "its end is not in the trace": 50, "still in flight at the end of the trace": 10_000 });
});

test("an answer that outlasts its window's turnover is its first request, and nothing comes before time 0", () => {
  const book = new RunBook(8);
  const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
  const arrive = (id: string, at: number) => book.take({ kind: "request-arrived", at, request: request({ id }) }, "a");
  const end = (requestId: string, at: number) =>
    book.take({ kind: "request-finished", at, requestId, outcome: "ok", ...counts }, undefined);
  arrive("long", 500);
  for (let i = 1; i < 40; i++) {
    arrive(`r${i}`, i * 1_000);
    end(`r${i}`, i * 1_000 + 100);
  }
  end("long", 40_500);
  const { workload } = book.close(HEADER);
  const last = [33, 34, 35, 36, 37, 38, 39].map((i) => i * 1_000 - 500);
  assert.deepEqual(
    workload.map(({ arrivalMicros }) => arrivalMicros),
    [0, ...last],
  );
});

test("an endpoint that reports room for nothing gives no size", () => {
  const run = runOf([SEEN], 0);
  const [endpoint] = run.endpoints;
  const told = (kvCapacityTokens: number, concurrencyMax: number) =>
    recordedSizes({ ...run, endpoints: [{ ...endpoint!, kvCapacityTokens, concurrencyMax }] }, 16).sizes;
  assert.deepEqual(told(0, 0), { blockTokens: 16 });
  assert.deepEqual(told(15, 0), { blockTokens: 16 });
  assert.deepEqual(told(1e308, 0), { blockTokens: 16, kvBlocks: 100_000_000 }, "more than memory has room for");
  assert.deepEqual(told(32, 2.5), { blockTokens: 16, kvBlocks: 3, sequencesMax: 2 });
});
