import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { BatchShape } from "#engine/step-time/batch-shape.ts";

interface Run {
  readonly requests: readonly (readonly [
    sendAt: number,
    promptTokens: number,
    outputTokens: number,
    group: number,
    prefixTokens: number,
    text: number,
    cachedTokens: number,
  ])[];
  readonly steps: readonly (readonly [
    logAt: number,
    micros: number,
    prefills: number,
    prefillTokens: number,
    decodes: number,
  ])[];
  readonly blocksStored: number;
  readonly blocksRemoved: number;
  readonly untilMicros: number;
}

const BLOCK_TOKENS = 32;
/** From the end of a step to its line in the log, and from sending a request to its being visible to the scheduler. */
const LOG_DELAY_MICROS = 500;
const VISIBLE_AFTER_MICROS = 5500;

for (const name of ["light", "heavy"]) {
  test(`with the real steps as its clock, the engine composes them as vLLM did, and hits what vLLM hit: ${name}`, () => {
    const run = JSON.parse(readFileSync(new URL(`../golden/vllm-cpu/${name}.json`, import.meta.url), "utf8")) as Run;
    const cached: number[] = [];
    const shapes: BatchShape[] = [];
    let stored = 0;
    let removed = 0;
    const config = engineDefaults({
      blockTokens: BLOCK_TOKENS,
      kvBlocks: 640,
      sequencesMax: 16,
      batchTokensMax: 1024,
      modelTokensMax: 4096,
      queueDelay: { baseMicros: VISIBLE_AFTER_MICROS, perPromptTokenMicros: 0 },
      stepTime: {
        kind: "measured",
        stepMicros: run.steps.map(([, micros]) => micros),
        startAt: run.steps.map(([logAt, micros]) => logAt - micros - LOG_DELAY_MICROS),
      },
      coalesce: false,
      check: true,
    });
    const engine = new Engine(config, {
      admitted: (_at, { id }, cachedTokens) => (cached[Number(id)] = cachedTokens),
      token: () => undefined,
      finished: () => undefined,
      step: (_start, _end, shape) => shapes.push({ ...shape }),
      blocksStored: (_at, _request, _first, count) => (stored += count),
      blockRemoved: () => removed++,
    });
    run.requests.forEach((request, number) => submit(engine, request, number));
    engine.advanceTo(run.untilMicros);
    const same = run.steps.filter(([, , prefills, prefillTokens, decodes], i) => {
      const shape = shapes[i];
      const decodesToo = shape?.decodeSequences === decodes;
      return decodesToo && shape.prefillSequences === prefills && shape.prefillTokens === prefillTokens;
    });
    assert.ok(same.length >= 0.95 * run.steps.length, `${same.length} of ${run.steps.length} steps are the same`);
    assert.ok(Math.abs(stored - run.blocksStored) <= 40, `stored ${stored}, really ${run.blocksStored}`);
    assert.ok(Math.abs(removed - run.blocksRemoved) <= 40, `removed ${removed}, really ${run.blocksRemoved}`);

    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
    assert.deepEqual(
      cached,
      run.requests.map((request) => request[6]),
    );
    assert.equal(engine.gauges().preemptions, 0);
  });
}

/**
 * 12 requests of 130 + 220 tokens on vLLM 0.32 with 48 usable blocks of 32: it preempted nine times, counted four of them
 * by the time when it ran five and had three waiting, and looked up 1,040, 1,430, then 1,560 prompt tokens.
 */
test("twelve requests in 48 blocks: the states that vLLM went through, and its nine preemptions", () => {
  const states: string[] = [];
  const config = engineDefaults({
    blockTokens: BLOCK_TOKENS,
    kvBlocks: 49,
    sequencesMax: 8,
    batchTokensMax: 1024,
    modelTokensMax: 1024,
    scheduler: "priority-fcfs",
    preemption: "lowest-priority",
    stepTime: { kind: "coefficients", baseMicros: 9236, perPrefillTokenMicros: 29, perDecodeMicros: 500 },
    coalesce: false,
    check: true,
  });
  const engine: Engine = new Engine(config, {
    token: () => undefined,
    finished: () => undefined,
    step: () => {
      const { running, waiting, prefixQueriesTokens, preemptionsReported } = engine.gauges();
      const state = `${running}/${waiting} ${prefixQueriesTokens} ${preemptionsReported}`;
      if (states.at(-1) !== state) states.push(state);
    },
  });
  for (let number = 0; number < 12; number++) submit(engine, [1000 * number, 130, 220, 0, 0, number + 1, 0], number);
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  const seen = ["8/4 1040 0", "6/6 1040 0", "4/8 1040 0", "5/3 1430 4", "6/0 1560 8"];
  assert.deepEqual(
    states.filter((state) => seen.includes(state)),
    seen,
  );
  const { preemptions, preemptionsReported, generationTokens } = engine.gauges();
  assert.deepEqual([preemptions, preemptionsReported, generationTokens], [9, 9, 12 * 220]);
});

/** Blocks in the group's prefix are the group's, further ones of the prompt the text's, those of the output its own. */
function submit(engine: Engine, request: Run["requests"][number], number: number): void {
  const [sendAt, promptTokens, outputTokens, group, prefixTokens, text] = request;
  const blocks = Math.floor((promptTokens + outputTokens) / BLOCK_TOKENS);
  const hashes = new Int32Array(2 * blocks);
  for (let i = 0; i < blocks; i++) {
    const end = (i + 1) * BLOCK_TOKENS;
    hashes[2 * i] = end <= prefixTokens ? group : end <= promptTokens ? 16 * text + group : -1 - number;
    hashes[2 * i + 1] = i;
  }
  const outcome = engine.submit(sendAt, {
    id: String(number),
    promptTokens,
    outputTokens,
    hashes,
    priority: 0,
    deadlineAt: undefined,
    cacheRead: true,
  });
  assert.equal(outcome, "queued");
}
