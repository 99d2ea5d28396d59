import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { randomFor } from "#core/base/random.ts";
import type { KvTierConfig } from "#engine/config.ts";
import { simulate } from "#sim/simulate.ts";
import type { PrefixSignal, ScriptEvent } from "#sim/setting/simulation-options.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const STEP = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 1, perDecodeMicros: 0 } as const;
const DELAY_MICROS = 3_000;

/** Prompts of a few families, more than an engine's cache has room for, far enough apart that none waits for another. */
function arrivals(): ListedArrival[] {
  const random = randomFor(7, 1);
  return Array.from({ length: 300 }, (_, i) => {
    const family = 1 + random.below(12);
    return { ...listed(i, 40_000 * i, 160, 3), route: { ...listed(family, 0, 160, 3).route, id: `request_${i}` } };
  });
}

function run(prefixes: PrefixSignal, fleetEvents: readonly ScriptEvent[] = [], tier?: KvTierConfig) {
  const inputs: Input[] = [];
  const { outcomes } = simulate(
    // Twice a prompt's room: what is stored overwrites what others had.
    cluster(ROUND_ROBIN, engines(2, { stepTime: STEP, kvBlocks: 41, modelTokensMax: 512, ...(tier && { tier }) }), {
      arrivals: new ListedArrivals(arrivals()),
      prefixes,
      fleetEvents,
      observe: (input) => void inputs.push(input),
    }),
  );
  const rows = Array.from({ length: outcomes.length }, (_, i) => i);
  const wrong = rows.filter((i) => outcomes.expectedTokens[i] !== outcomes.cachedTokens[i]).length;
  return { inputs, wrong, cached: rows.reduce((sum, i) => sum + outcomes.cachedTokens[i]!, 0) };
}

test("with their events the router expects of engines' caches what is there; they come after their delay", () => {
  const { inputs, wrong, cached } = run({ kind: "kv-events", delayMicros: DELAY_MICROS });
  assert.ok(cached > 0);
  assert.equal(wrong, 0);
  const arrived = new Set(inputs.filter(({ kind }) => kind === "request-arrived").map(({ at }) => at));
  const stored = inputs.filter(({ kind }) => kind === "blocks-stored");
  assert.ok(stored.length > 100 && inputs.some(({ kind }) => kind === "blocks-removed"));
  // A prompt's blocks are stored in the step that begins when it arrives.
  assert.ok(stored.filter(({ at }) => arrived.has(at - DELAY_MICROS)).length > 100);
});

test("what engines keep in their hosts' memory is expected too", () => {
  const tier = {
    cpuBlocks: 60,
    offloadThreshold: 0,
    transferBaseMicros: 30,
    blockBytes: 1_000_000,
    bytesPerSecond: 1e10,
    thrashWindowMicros: 5_000,
  };
  const without = run({ kind: "kv-events", delayMicros: DELAY_MICROS });
  const { inputs, wrong, cached } = run({ kind: "kv-events", delayMicros: DELAY_MICROS }, [], tier);
  assert.ok(cached > 1.2 * without.cached, `${cached} and without ${without.cached}`);
  assert.equal(wrong, 0);
  for (const kind of ["blocks-stored", "blocks-removed"])
    assert.ok(inputs.some((input) => input.kind === kind && "medium" in input && input.medium === "host"));
});

test("an engine that is killed takes what it reported with it", () => {
  const { wrong, inputs } = run({ kind: "kv-events", delayMicros: DELAY_MICROS }, [
    { kind: "engine-killed", at: 4_010_000, endpoint: "engine_000" },
    { kind: "engine-started", at: 4_030_000, endpoint: "engine_000" },
  ]);
  assert.ok(inputs.some(({ kind }) => kind === "blocks-cleared"));
  assert.ok(wrong <= 1, `${wrong} wrong`);
});
