import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import type { ScalingOptions } from "#sim/setting/scaling-options.ts";
import { ROUND_ROBIN, WEIGHTED } from "./cluster.ts";
import { busyRun, digest, outcomesDigest } from "./digest.ts";

const SEED = 5;

test("one seed gives the same bytes, again and in other threads", async () => {
  const here = digest(busyRun(WEIGHTED, SEED));
  const workers = [1, 2].map(
    () => new Worker(new URL("digest-worker.ts", import.meta.url), { workerData: { seed: SEED, runs: 2 } }),
  );
  const answers = await Promise.all(workers.map((worker) => once(worker, "message") as Promise<[string[]]>));
  for (const [digests] of answers) assert.deepEqual(digests, [here, here]);
  await Promise.all(workers.map((worker) => worker.terminate()));
  assert.equal(digest(busyRun(WEIGHTED, SEED)), here);
});

/** The nightly form (.ci/nightly) has 100. */
const RUNS = Number(process.env["TEST_DETERMINISM_RUNS"] ?? 5);

test(`${RUNS} runs of one seed give the same bytes, with an autoscaler and without`, () => {
  const scaling: ScalingOptions = {
    autoscaler: {
      policy: { type: "queue-depth", target: 2, tolerance: 0 },
      min: 1,
      max: 6,
      cooldownMicros: 0,
      downStabilizationMicros: 0,
      stepMax: 4,
    },
    everyMicros: 100_000,
    metricsDelayMicros: 20_000,
    provisioningMicros: 200_000,
    warmupMicros: 100_000,
    drain: "wait",
  };
  const runs = (more: Parameters<typeof busyRun>[2]) =>
    new Set(Array.from({ length: RUNS }, () => digest(busyRun(WEIGHTED, SEED, more, 25))));
  assert.equal(runs({}).size, 1);
  assert.equal(runs({ scaling }).size, 1);
  assert.ok(busyRun(WEIGHTED, SEED, { scaling }, 25).scaling!.ups > 0);
});

// To be recorded anew when the model of a cluster changes on purpose.
test("the outcomes have these bytes, on every machine and version", () => {
  assert.equal(
    outcomesDigest(busyRun(WEIGHTED, SEED)),
    "276391cf9b8c118ac13d9e3775974a146684451aa545b755fb5030b043de4939",
  );
});

test("another seed gives another run", () => {
  assert.notEqual(digest(busyRun(WEIGHTED, SEED)), digest(busyRun(WEIGHTED, SEED + 1)));
});

test("another policy changes no arrival, length, tenant or class, and changes where requests go", () => {
  const [one, other] = [WEIGHTED, ROUND_ROBIN].map((profile) => busyRun(profile, SEED).outcomes);
  assert.ok(one !== undefined && other !== undefined);
  const rowsOf = (outcomes: typeof one) => new Map(outcomes.ids.map((id, row) => [id, row]));
  const rows = rowsOf(other);
  assert.deepEqual([...rows.keys()].sort(), [...one.ids].sort());
  let firstTurns = 0;
  let moved = 0;
  one.ids.forEach((id, row) => {
    const there = rows.get(id);
    assert.ok(there !== undefined);
    assert.equal(one.promptTokens[row], other.promptTokens[there]);
    assert.equal(one.tenants[one.tenant[row]!], other.tenants[other.tenant[there]!]);
    assert.equal(one.classes[one.sloClass[row]!], other.classes[other.sloClass[there]!]);
    if (one.arrivalAt[row] === other.arrivalAt[there]) firstTurns++;
    if (one.endpoint[row] !== other.endpoint[there]) moved++;
  });
  assert.ok(firstTurns >= 150, "conversations begin when they begin");
  assert.ok(moved > 50, "and go elsewhere");
});

test("the run is one under pressure, or it shows nothing", () => {
  const { requests, metrics, endpoints, stranded } = busyRun(WEIGHTED, SEED);
  assert.ok(requests.completed > 200);
  assert.ok(metrics.preemptionRate > 0);
  assert.ok(metrics.cacheHitRate.gpu > 0.1);
  assert.ok(endpoints.every((endpoint) => endpoint.requests > 0));
  assert.equal(stranded, 0);
});
