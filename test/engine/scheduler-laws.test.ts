import assert from "node:assert/strict";
import { test } from "node:test";
import { type EngineConfig, engineDefaults, VLLM_SEMANTICS } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest } from "#engine/request.ts";

/** Laws of vLLM's scheduler, each seen in vLLM 0.32 beside a model whose steps all take 100 us. */
const CONFIG = engineDefaults({
  blockTokens: 4,
  kvBlocks: 33,
  sequencesMax: 4,
  batchTokensMax: 16,
  modelTokensMax: 64,
  stepTime: { kind: "coefficients", baseMicros: 100, perPrefillTokenMicros: 0, perDecodeMicros: 0 },
  coalesce: false,
  check: true,
});

function begin(config: Partial<EngineConfig>) {
  const told: string[] = [];
  const engine = new Engine(
    { ...CONFIG, ...config },
    {
      admitted: (at, { id }, cached) => told.push(`${at} admitted ${id} ${cached}`),
      token: () => undefined,
      preempted: (at, { id }) => told.push(`${at} preempted ${id}`),
      finished: (at, { id }) => told.push(`${at} finished ${id}`),
      step: (at, _end, shape) => told.push(`${at} step ${shape.prefillTokens}+${shape.decodeSequences}`),
      blocksStored: (at, { id }, first, count) => told.push(`${at} stored ${id} ${first}+${count}`),
      blockRemoved: (_at, low, high) => told.push(`removed ${low}:${high}`),
    },
  );
  const submit = (at: number, id: string, promptTokens: number, outputTokens: number, number: number, priority = 0) => {
    const blocks = Math.floor((promptTokens + outputTokens) / CONFIG.blockTokens);
    const hashes = Int32Array.from({ length: 2 * blocks }, (_, word) => (word % 2 === 0 ? number : word >> 1));
    const request: EngineRequest = {
      id,
      promptTokens,
      outputTokens,
      hashes,
      priority,
      deadlineAt: undefined,
      cacheRead: true,
    };
    assert.equal(engine.submit(at, request), "queued");
  };
  const rest = () => {
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  };
  const lines = (kind: string) => told.filter((line) => line.includes(kind));
  return { engine, submit, rest, lines };
}

test("a block can be hit when its last token is known, even where steps are composed ahead", () => {
  const storedWith = (config: Partial<EngineConfig>) => {
    const { submit, rest, lines } = begin(config);
    submit(0, "a", 4, 14, 1);
    rest();
    return lines("stored");
  };
  const sync = storedWith({});
  assert.deepEqual(sync, ["0 stored a 0+1", "400 stored a 1+1", "800 stored a 2+1", "1200 stored a 3+1"]);
  assert.deepEqual(storedWith({ asyncScheduling: true }), sync);
  assert.deepEqual(storedWith({ asyncScheduling: true, coalesce: true }), sync);
});

test("a request preempted while its newest token is on its way computes the block of that token again", () => {
  // Both compute the last position of a block from 300 on. Composed ahead, a needs more room just then, before the
  // content of that of b is known.
  const b = (config: Partial<EngineConfig>) => {
    const { submit, rest, lines } = begin({ kvBlocks: 6, ...config });
    submit(0, "a", 5, 12, 1);
    submit(0, "b", 5, 12, 2);
    rest();
    return { preempted: lines("preempted"), stored: lines("stored b") };
  };
  const { preempted, stored } = b({ asyncScheduling: true });
  assert.deepEqual(preempted, ["300 preempted b"]);
  assert.deepEqual(stored.slice(0, 2), ["0 stored b 0+1", "1200 stored b 1+1"]);
  // Composed as it starts, the same step finds the token there.
  assert.deepEqual(b({}).preempted, ["400 preempted b"]);
});

test("who was taken back during a step gives its blocks back before who ends in it", () => {
  const { engine, submit, rest, lines } = begin({ kvBlocks: 5 });
  submit(0, "a", 4, 2, 1);
  submit(0, "b", 4, 9, 2);
  engine.advanceTo(150);
  engine.abort(150, "b");
  submit(300, "c", 16, 1, 3);
  rest();
  assert.deepEqual(lines("removed"), ["removed 2:0", "removed 1:0"]);
});

test("a step that was composed ahead runs, though all its requests have gone", () => {
  const { engine, submit, rest, lines } = begin({ asyncScheduling: true });
  submit(0, "a", 4, 9, 1);
  engine.advanceTo(150);
  engine.abort(150, "a");
  submit(210, "b", 4, 1, 2);
  rest();
  assert.deepEqual(lines("step"), ["0 step 4+0", "100 step 0+1", "200 step 0+1", "300 step 4+0"]);
});

test("the limit of a long prompt spares a request that is alone", () => {
  const steps = (semantics: EngineConfig["semantics"]) => {
    const { submit, rest, lines } = begin({ longPrefillTokens: 3, semantics });
    submit(0, "a", 8, 1, 1);
    submit(500, "b", 6, 1, 2);
    submit(500, "c", 6, 1, 3);
    rest();
    return lines("step");
  };
  const shared = ["500 step 6+0", "600 step 6+0"];
  assert.deepEqual(steps(VLLM_SEMANTICS), ["0 step 8+0", ...shared]);
  assert.deepEqual(steps({ ...VLLM_SEMANTICS, lonePrefill: "limited" }), [
    "0 step 3+0",
    "100 step 3+0",
    "200 step 2+0",
    ...shared,
  ]);
});

test("without chunks a prompt waits for a step that holds it whole, and one that no step holds is refused", () => {
  const { engine, submit, rest, lines } = begin({ chunkedPrefill: false, coalesce: true });
  submit(0, "a", 10, 3, 1);
  submit(0, "b", 10, 1, 2);
  rest();
  assert.deepEqual(lines("step"), ["0 step 10+0", "100 step 10+1", "200 step 0+1"]);
  const long = { id: "c", hashes: new Int32Array(0), priority: 0, deadlineAt: undefined, cacheRead: true };
  assert.equal(engine.submit(999, { ...long, promptTokens: 16, outputTokens: 2 }), "never-fits");
  assert.equal(engine.submit(999, { ...long, promptTokens: 16, outputTokens: 1 }), "queued");
});

test("of equals that arrived at once the first admitted yields", () => {
  const { submit, rest, lines } = begin({ kvBlocks: 6, scheduler: "priority-fcfs", preemption: "lowest-priority" });
  submit(0, "a", 5, 12, 1);
  submit(0, "b", 5, 12, 2);
  rest();
  assert.match(lines("preempted")[0] ?? "", /preempted a$/);
});

test("what a request was given in a step goes back to the budget when it is preempted in that step", () => {
  const { submit, rest, lines } = begin({
    kvBlocks: 5,
    batchTokensMax: 4,
    reserveFullPrompt: false,
    preemption: "lowest-priority",
  });
  submit(0, "low", 4, 9, 1, 1);
  submit(0, "b", 3, 4, 2);
  submit(0, "c", 8, 1, 3);
  rest();
  // At 300 low has its token when b lacks a block and takes the place of it: c gets the token that this leaves.
  assert.deepEqual(lines("preempted").slice(0, 1), ["300 preempted low"]);
  assert.deepEqual(lines("step").slice(0, 4), ["0 step 4+0", "100 step 3+1", "200 step 2+2", "300 step 3+1"]);
});

test("beside others a request is admitted only where the watermark stays free; alone it is", () => {
  const { submit, rest, lines } = begin({ kvBlocks: 5, watermark: 0.5 });
  submit(0, "a", 4, 3, 1);
  submit(0, "b", 8, 1, 2);
  rest();
  // Four blocks: a holds two when b wants two, of which two would have to stay free.
  assert.deepEqual(lines("admitted"), ["0 admitted a 0", "300 admitted b 0"]);
});
