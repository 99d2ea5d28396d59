import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hold } from "#engine/block-fetch.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest } from "#engine/request.ts";
import { randomFor } from "#core/base/random.ts";
import { chronicle, randomWorkload, type Workload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

/** TEST_SEEDS runs more of them. */
const SEEDS = Number(process.env["TEST_SEEDS"] ?? 600);

/**
 * A random workload of which some requests are fetched from elsewhere, some of those in vain, and some hold their
 * blocks.
 */
function disaggregated(seed: number): Workload {
  const workload = randomWorkload(seed);
  const random = randomFor(seed, 9);
  const acts = workload.acts.map((act) => {
    if (act.kind !== "submit") return act;
    const role = random.below(3);
    if (role === 0) return act;
    if (role === 1) return { ...act, request: { ...act.request, outputTokens: 1, holds: true } };
    const micros = random.below(120);
    const arrives = random.below(4) > 0;
    return { ...act, request: { ...act.request, fetch: { begins: () => micros, arrived: () => arrives } } };
  });
  // A request comes once, so what it is fetched with is its own.
  return { ...workload, acts, heldFor: (id) => (Number(id) * 37) % 200 };
}

test("steps advanced together give what single steps give where prompts are fetched and blocks are held", () => {
  const seen = { held: 0, fetched: 0, preempted: 0 };
  for (const seed of drawnSeeds(SEEDS)) {
    const workload = disaggregated(seed);
    const single = chronicle(workload, { coalesce: false });
    assert.deepEqual(chronicle(workload, { coalesce: true }), single, `seed ${seed}`);
    seen.held += single.filter((line) => line.includes(" held ")).length;
    seen.preempted += single.filter((line) => line.includes(" preempted ")).length;
    for (const act of workload.acts) if (act.kind === "submit" && act.request.fetch !== undefined) seen.fetched++;
    const last = JSON.parse(single.at(-1) ?? "{}") as { kvBlocksUsed: number; running: number; waiting: number };
    assert.deepEqual([last.kvBlocksUsed, last.running, last.waiting], [0, 0, 0], `seed ${seed}: all is given back`);
  }
  assert.ok(seen.held > 300 && seen.fetched > 500 && seen.preempted > 50, JSON.stringify(seen));
});

const STEP = { kind: "coefficients", baseMicros: 100, perPrefillTokenMicros: 10, perDecodeMicros: 0 } as const;

function engineOf(overrides: Partial<EngineConfig> = {}) {
  const lines: string[] = [];
  const holds: Hold[] = [];
  const config = engineDefaults({ blockTokens: 4, kvBlocks: 17, stepTime: STEP, coalesce: false, check: true });
  const engine = new Engine(
    { ...config, modelTokensMax: 64, ...overrides },
    {
      admitted: (at, { id }, cached) => lines.push(`${at} admitted ${id} ${cached}`),
      token: (at, { id }, tokens) => lines.push(`${at} token ${id} ${tokens}`),
      finished: (at, { id }, reason) => lines.push(`${at} finished ${id} ${reason}`),
      held: (at, { id }, hold) => {
        lines.push(`${at} held ${id} ${hold.tokens}`);
        holds.push(hold);
      },
    },
  );
  return { engine, lines, holds };
}

const request = (id: string, promptTokens: number, more: Partial<EngineRequest> = {}): EngineRequest => {
  const hashes = Int32Array.from({ length: 2 * Math.floor((promptTokens + 8) / 4) }, (_, i) => (i % 2 === 0 ? 5 : i));
  return { id, promptTokens, outputTokens: 2, hashes, priority: 0, deadlineAt: undefined, cacheRead: true, ...more };
};

function run(engine: Engine, until = Infinity): void {
  for (let at = engine.nextEventAt(); at !== undefined && at <= until; at = engine.nextEventAt()) engine.advanceTo(at);
}

test("a fetched prompt takes room, comes, and costs one token of computing", () => {
  const { engine, lines } = engineOf();
  const begun: number[][] = [];
  const fetch = { begins: (at: number, tokens: number) => (begun.push([at, tokens]), 500), arrived: () => true };
  engine.submit(0, request("r", 10, { fetch }));
  run(engine, 400);
  assert.deepEqual(begun, [[0, 10]]);
  assert.deepEqual([engine.running, engine.waiting, engine.gauges().kvBlocksUsed], [0, 1, 3]);
  assert.equal(engine.cachedPrefixBlocks(request("r", 10).hashes), 0, "what is on its way cannot be hit");
  run(engine);
  // One step of one prompt token: 100 + 10; then a decode: 100.
  assert.deepEqual(lines, ["0 admitted r 10", "610 token r 1", "710 token r 2", "710 finished r stop"]);
  assert.equal(engine.cachedPrefixBlocks(request("r", 10).hashes), 2);
});

test("what the cache here has is not fetched; what did not come is computed here", () => {
  const { engine, lines } = engineOf();
  engine.submit(0, request("before", 10));
  run(engine);
  const tokens: number[] = [];
  const fetch = { begins: (_at: number, count: number) => (tokens.push(count), 50), arrived: () => false };
  const at = 1_000;
  engine.submit(at, request("r", 14, { fetch }));
  run(engine);
  assert.deepEqual(tokens, [6], "two of its blocks are here");
  const { prefixHitsTokens, tierHitsTokens } = engine.gauges();
  assert.deepEqual([prefixHitsTokens, tierHitsTokens], [8, 0], "what was fetched was in no cache here");
  assert.ok(lines.includes(`${at + 50 + 100 + 6 * 10} token r 1`), lines.join("\n"));
});

test("held blocks stay until they are given back, once; then they can be hit until they are overwritten", () => {
  const { engine, lines, holds } = engineOf();
  engine.submit(0, request("p", 10, { outputTokens: 1, holds: true }));
  run(engine);
  assert.deepEqual(lines.slice(1), ["200 token p 1", "200 held p 10", "200 finished p stop"]);
  assert.deepEqual([engine.gauges().kvBlocksUsed, engine.held, engine.running], [3, 1, 0]);
  assert.deepEqual([holds[0]?.release(900), holds[0]?.release(900)], [true, false]);
  assert.deepEqual([engine.gauges().kvBlocksUsed, engine.held], [0, 0]);
  assert.equal(engine.cachedPrefixBlocks(request("p", 10).hashes), 2);
});

test("an aborted request holds nothing, whether it computes, is fetched or waits with its blocks", () => {
  for (const at of [50, 300, 700]) {
    const { engine } = engineOf({ sequencesMax: 1 });
    engine.submit(0, request("p", 20, { outputTokens: 40, holds: true }));
    engine.submit(0, request("d", 10, { fetch: { begins: () => 500, arrived: () => true } }));
    run(engine, at);
    engine.advanceTo(at);
    engine.abort(at, "p");
    engine.abort(at, "d");
    run(engine);
    assert.deepEqual([engine.gauges().kvBlocksUsed, engine.held, engine.waiting], [0, 0, 0], `at ${at}`);
  }
});

test("an engine whose blocks are all held waits without steps, and goes on when some are given back", () => {
  const { engine, lines, holds } = engineOf();
  engine.submit(0, request("p", 60, { outputTokens: 1, holds: true, hashes: new Int32Array(0) }));
  engine.submit(0, request("q", 40, { hashes: new Int32Array(0) }));
  run(engine);
  assert.equal(engine.nextEventAt(), undefined);
  assert.equal(engine.waiting, 1);
  holds[0]?.release(5_000);
  run(engine);
  assert.equal(lines.at(-1), "5600 finished q stop");
});

test("who was fetched is admitted before those that wait, so that whoever holds blocks waits for none", () => {
  for (const scheduler of ["fcfs", "priority-fcfs", "sjf"] as const) {
    const { engine, lines } = engineOf({ scheduler });
    const fetch = { begins: () => 250, arrived: () => true };
    engine.submit(0, request("d", 40, { fetch, hashes: new Int32Array(0), priority: 9 }));
    engine.advanceTo(10);
    // Ten of sixteen blocks are taken: it does not fit before the other one is done.
    engine.submit(20, request("w", 30, { hashes: new Int32Array(0), priority: 1 }));
    run(engine);
    const finished = lines.filter((line) => line.includes("finished")).map((line) => line.split(" ")[2]);
    assert.deepEqual(finished, ["d", "w"], scheduler);
  }
});

test("blocks that were fetched are found by a request with the same prompt while the first still runs", () => {
  const { engine, lines } = engineOf();
  engine.submit(0, request("r", 10, { outputTokens: 30, fetch: { begins: () => 500, arrived: () => true } }));
  run(engine, 1_000);
  engine.submit(1_000, request("s", 10));
  run(engine);
  const admitted = lines.findIndex((line) => line.endsWith("admitted s 8"));
  assert.ok(admitted !== -1 && admitted < lines.findIndex((line) => line.includes("finished r")), lines.join("\n"));
});

for (const asyncScheduling of [false, true])
  test(`what a running request generated is found by another, ${asyncScheduling ? "asynchronous" : "as it comes"}`, () => {
    const { engine, lines } = engineOf({ asyncScheduling });
    engine.submit(0, request("r", 10, { outputTokens: 40, hashes: request("s", 42).hashes }));
    run(engine, 2_000);
    const generated = lines.filter((line) => line.includes("token r")).length;
    assert.ok(generated > 12, `${generated}`);
    engine.submit(2_000, request("s", 18));
    run(engine);
    const admitted = lines.findIndex((line) => line.endsWith("admitted s 16"));
    assert.ok(admitted !== -1 && admitted < lines.findIndex((line) => line.includes("finished r")), lines.join("\n"));
  });
