import assert from "node:assert/strict";
import { test } from "node:test";
import { readRateCurve } from "#trace/transform/rate-curve.ts";
import { shapeWorkload } from "#trace/transform/shape-workload.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { collected, streamed } from "./workload-samples.ts";

const SECOND = 1_000_000;
const CURVE = readRateCurve("# of a day\nseconds,rate\n0,1\n100,3\n200,2\n");

/** Ten requests in pairs, two seconds apart. */
const PAIRS = Array.from({ length: 10 }, (_, index): WorkloadRequest => ({
  ...LENGTHS_ONLY,
  index,
  arrivalMicros: (2 * Math.floor(index / 2) + 0.1 * (index % 2)) * SECOND,
  promptTokens: 10 + index,
  outputTokens: 1,
  blockIds: Float64Array.of(7),
}));

const shaped = (
  workload: readonly WorkloadRequest[],
  options: { requestsPerSecond?: number; sharedContent?: boolean } = {},
) => collected(shapeWorkload(async () => streamed(workload), { curve: CURVE, sharedContent: false, ...options }));

test("a curve is read as windows whose mean is 1, the last one as long as the one before", () => {
  assert.deepEqual(CURVE, {
    windows: [
      { startSeconds: 0, endSeconds: 100, factor: 0.5 },
      { startSeconds: 100, endSeconds: 200, factor: 1.5 },
      { startSeconds: 200, endSeconds: 300, factor: 1 },
    ],
    seconds: 300,
    peak: 1.5,
    trough: 0.5,
  });
  for (const [text, why] of [
    ["", /two rows/],
    ["0,1", /two rows/],
    ["0,0\n10,0", /above 0/],
    ["5,1\n10,1", /line 1: .*the first at 0/],
    ["0,1\n0,2", /line 2: .*later/],
    ["0,1\n10,-1", /line 2/],
    ["0,1\n10,1,1", /line 2/],
    ["0,1\nten,1", /line 2.*"ten,1"/],
  ] as const)
    assert.throws(() => readRateCurve(text), why);
});

test("arrivals are as dense as the curve, in the mean as asked for, and a burst stays one", async () => {
  const requests = await shaped(PAIRS, { requestsPerSecond: 10 });
  const within = (from: number, to: number) =>
    requests.filter(({ arrivalMicros: at }) => at >= from * SECOND && at < to * SECOND).length;
  assert.ok(Math.abs(requests.length - 3_000) < 20, `${requests.length}`);
  const [low, high, mean] = [within(0, 100), within(100, 200), within(200, 300)];
  assert.ok(
    Math.abs(low - 500) < 12 && Math.abs(high - 1_500) < 12 && Math.abs(mean - 1_000) < 12,
    [low, high, mean].join(" "),
  );
  assert.ok(requests.every(({ arrivalMicros }, i) => i === 0 || arrivalMicros >= requests[i - 1]!.arrivalMicros));
  assert.deepEqual(
    requests.map(({ index }) => index),
    requests.map((_, i) => i),
  );
  const gap = (i: number) => requests[i + 1]!.arrivalMicros - requests[i]!.arrivalMicros;
  assert.ok(gap(0) < gap(1) / 5, "a pair stands together");
});

test("the workload's own rate is kept where none is asked for, and rounds share content only where asked", async () => {
  const own = await shaped(PAIRS);
  // Ten requests in 8.1 s, and a mean gap behind the last: 9 s.
  assert.ok(Math.abs(own.length - 333) < 5, `${own.length}`);
  assert.notEqual(own[0]!.blockIds![0], own[10]!.blockIds![0]);
  assert.equal(own[10]!.blockIds![0], own[11]!.blockIds![0]);
  const shared = await shaped(PAIRS, { sharedContent: true });
  assert.ok(shared.every(({ blockIds }) => blockIds![0] === 7));
});

test("conversations are other ones in each round, follow-ups keep their think time, and none outlives its first turn", async () => {
  const turn = (session: string, number: number, at: number): WorkloadRequest => ({
    ...PAIRS[0]!,
    index: 0,
    session,
    turn: number,
    arrivalMicros: at * SECOND,
    thinkMicros: number === 0 ? undefined : 5 * SECOND,
  });
  const requests = await shaped([turn("a", 0, 0), turn("a", 1, 0), turn("b", 0, 60), turn("b", 1, 60)]);
  const sessions = [...new Set(requests.map(({ session }) => session))];
  assert.deepEqual(sessions, ["0/a", "0/b", "1/a", "1/b", "2/a"]);
  for (const session of sessions) assert.equal(requests.filter((one) => one.session === session).length, 2);
  assert.ok(requests.every(({ turn: number, thinkMicros }) => thinkMicros === (number === 0 ? undefined : 5 * SECOND)));
});

test("a workload whose requests all come at once cannot be repeated", async () => {
  await assert.rejects(shaped(PAIRS.slice(0, 1)), /arrive at different times/);
});
