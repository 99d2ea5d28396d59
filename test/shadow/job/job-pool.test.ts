import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { engineDefaults } from "#engine/config.ts";
import { inOneGo, calibrateInSteps } from "#shadow/calibrate/calibrate.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import type { Setting } from "#shadow/candidate/candidate.ts";
import type { Job } from "#shadow/job/job.ts";
import { JobPool } from "#shadow/job/job-pool.ts";
import { jobDigest, type ResultMemory } from "#shadow/job/result-memory.ts";
import { objectiveNamed } from "#shadow/job/objective.ts";
import { PackedWorkload, columnsOf } from "#shadow/recorded/packed-workload.ts";
import { runOn } from "../calibrate/simulated-run.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

/** Results as a file would have them, with counts of what was found and put. */
class Memory implements ResultMemory {
  readonly held = new Map<string, Buffer>();
  found = 0;
  put(key: string, result: unknown): void {
    this.held.set(key, serialize(result));
  }
  get(key: string): unknown {
    const bytes = this.held.get(key);
    if (bytes === undefined) return undefined;
    this.found++;
    return deserialize(bytes);
  }
}

const WORKLOAD = caseWorkload().slice(0, 80);
const SETTING = caseSetting(WORKLOAD);
const [GNOMON, OTHER] = [namedProfile("gnomon"), namedProfile("lmetric")] as const;
const DESIGN = { kind: "split", by: "session", windowMicros: 5_000_000 } as const;
const JOBS: readonly Job[] = [
  { kind: "outcome", candidate: GNOMON },
  { kind: "outcome", candidate: OTHER },
  { kind: "replica", candidate: GNOMON, replica: 1 },
  { kind: "trial", trial: { candidate: OTHER, objective: objectiveNamed("e2e-mean", {}), share: 1, replica: 0 } },
  { kind: "trial", trial: { candidate: OTHER, objective: objectiveNamed("ttft-mean", {}), share: 1, replica: 0 } },
  {
    kind: "rollout",
    rollout: {
      arms: [GNOMON, OTHER],
      design: DESIGN,
      seed: 3,
      replica: 0,
      startMicros: 0,
      predicted: { ttftMicros: new Float64Array(80).fill(1), tpotMicros: undefined, e2eMicros: undefined } as never,
    },
  },
];

async function results(setting: Setting, jobs: readonly Job[], memory?: ResultMemory): Promise<unknown[]> {
  const pool = new JobPool(setting, { work: 0, threadsMax: 1, keeping: { memory } });
  const all: unknown[] = [];
  for (const job of jobs)
    all.push(await pool.run(job as Job & { kind: "outcome" }).catch((error: Error) => error.message));
  await pool.close();
  return all;
}

test("what was kept of a job is what it would come to again, and is of that job, that setting and no other one", async () => {
  const plain = await results(SETTING, JOBS);
  const memory = new Memory();
  assert.deepEqual(await results(SETTING, JOBS, memory), plain);
  const { size } = memory.held;
  assert.ok(size >= 5, `${size}`);
  assert.equal(memory.found, 0);
  assert.deepEqual(await results(SETTING, JOBS, memory), plain);
  assert.equal(memory.found, size, "none is done twice");
  // The same requests in shared memory are the same requests.
  const packed = { ...SETTING, workload: new PackedWorkload(columnsOf(SETTING.workload)) };
  await results(packed, JOBS, memory);
  assert.deepEqual([memory.found, memory.held.size], [2 * size, size]);
  const others: readonly Partial<Setting>[] = [
    { seed: 10 },
    { rateScale: 2 },
    { engine: engineDefaults({ kvBlocks: 2001 }) },
    { workload: WORKLOAD.slice(0, 79) },
    { workload: WORKLOAD.map((one, i) => (i === 40 ? { ...one, outputTokens: one.outputTokens + 1 } : one)) },
    { workload: WORKLOAD.map((one, i) => (i === 40 ? { ...one, session: "another" } : one)) },
  ];
  for (const other of others) await results({ ...SETTING, ...other }, JOBS, memory);
  assert.equal(memory.found, 2 * size);
  assert.equal(memory.held.size, (1 + others.length) * size);
});

test("a digest is of the values alone: numbers that are none, bytes and maps included", () => {
  const values = [
    NaN,
    Infinity,
    null,
    0,
    [],
    {},
    "#NaN ",
    new Float64Array([1]),
    new Float64Array([2]),
    new Map([["a", 1]]),
    new Map([["a", 2]]),
    { a: { b: NaN } },
  ];
  assert.equal(new Set(values.map(jobDigest)).size, values.length);
  for (const value of values) assert.equal(jobDigest(value), jobDigest(structuredClone(value)));
});

for (const [where, work] of [
  ["in this thread", 0],
  ["on threads", 20_000],
] as const) {
  test(`jobs that are not done when work is stopped fail with its reason, at once, ${where}`, async () => {
    const stop = new AbortController();
    const memory = new Memory();
    const pool = new JobPool(SETTING, { work, threadsMax: 2, keeping: { memory, signal: stop.signal } });
    const first = await pool.run({ kind: "outcome", candidate: GNOMON });
    assert.equal(first.name, "gnomon");
    const many = Array.from({ length: 40 }, (_, replica) => pool.run({ kind: "replica", candidate: OTHER, replica }));
    const reason = new Error("stopped");
    setTimeout(() => stop.abort(reason), 5);
    const ends = await Promise.allSettled(many);
    const failed = ends.filter((end) => end.status === "rejected");
    assert.ok(failed.length > 0 && failed.every((end) => end.reason === reason));
    assert.equal(memory.held.size, 1 + ends.length - failed.length);
    await assert.rejects(pool.run({ kind: "outcome", candidate: GNOMON }), reason);
    await pool.close();
  });
}

test("a calibration goes on from the replays that were made before, and comes to the same", () => {
  const times = {
    delayMicros: 2500,
    baseMicros: 8000,
    perPrefillTokenMicros: 30,
    perDecodeMicros: 60,
    perPrefillMicros: 0,
    perDecodeContextTokenMicros: 0,
    perPrefillPairMicros: 0,
  };
  const sizes = engineDefaults({ kvBlocks: 3000, sequencesMax: 32 });
  const evidence = evidenceOf(runOn(engineWith(sizes, times), { requests: 80, seed: 3, gapMicros: 60_000 }), 16);
  const plain = inOneGo(calibrateInSteps(evidence, { sizes }));
  const memory = new Memory();
  // Stopped on its way.
  const steps = calibrateInSteps(evidence, { sizes, memory });
  for (let i = 0; i < 5; i++) steps.next();
  const before = memory.held.size;
  assert.ok(before >= 5);
  assert.deepEqual(inOneGo(calibrateInSteps(evidence, { sizes, memory })), plain);
  assert.ok(memory.found >= before);
  const evaluated = memory.held.size;
  assert.deepEqual(inOneGo(calibrateInSteps(evidence, { sizes, memory })), plain);
  assert.equal(memory.held.size, evaluated);
});
