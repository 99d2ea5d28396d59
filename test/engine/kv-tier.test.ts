import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { engineDefaults, type KvTierConfig } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import { KvTier } from "#engine/kv-tier.ts";

const TIER: KvTierConfig = {
  cpuBlocks: 64,
  offloadThreshold: 0,
  transferBaseMicros: 30,
  blockBytes: 1_000_000,
  bytesPerSecond: 1e10,
  thrashWindowMicros: 5_000,
};
const BLOCK_TRANSFER_MICROS = 100;

/** Nine usable blocks of 4 tokens: two prompts of 32 tokens do not fit beside each other. */
function start(tier: KvTierConfig | undefined) {
  const told: string[] = [];
  const config = engineDefaults({
    blockTokens: 4,
    kvBlocks: 10,
    modelTokensMax: 36,
    batchTokensMax: 64,
    stepTime: { kind: "coefficients", baseMicros: 100, perPrefillTokenMicros: 10, perDecodeMicros: 1 },
    tier,
    check: true,
  });
  const engine = new Engine(config, {
    admitted: (at, { id }, cached) => told.push(`${at} admitted ${id} ${cached}`),
    token: () => undefined,
    finished: (at, { id }) => told.push(`${at} finished ${id}`),
  });
  const run = (at: number, id: string, family: number) => {
    const hashes = Int32Array.from({ length: 16 }, (_, word) => (word % 2 === 0 ? family : word));
    engine.submit(at, {
      id,
      promptTokens: 32,
      outputTokens: 1,
      hashes,
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
    for (let next = engine.nextEventAt(); next !== undefined; next = engine.nextEventAt()) engine.advanceTo(next);
  };
  return { engine, told, run };
}

test("what the GPU has overwritten comes back from the host, in base + blocks * bytes / bandwidth", () => {
  const without = start(undefined);
  const tiered = start(TIER);
  for (const { run } of [without, tiered]) {
    run(0, "a", 1);
    run(10_000, "b", 2);
    run(20_000, "a2", 1);
  }
  assert.deepEqual(without.told.slice(-2), ["20000 admitted a2 4", `${20_000 + 100 + 280} finished a2`]);
  // a's first block is still on the GPU. 7 of 8 blocks may be hit, as one token is always computed; 4 tokens are left.
  const micros = 100 + 4 * 10 + 30 + 6 * BLOCK_TRANSFER_MICROS;
  assert.deepEqual(tiered.told.slice(-2), ["20000 admitted a2 28", `${20_000 + micros} finished a2`]);
  const gauges = tiered.engine.gauges();
  assert.deepEqual([gauges.prefixHitsTokens, gauges.tierHitsTokens], [4, 24]);
  assert.deepEqual([gauges.tierBlocks, gauges.tierBlocksCopiedOut, gauges.tierBlocksCopiedBack], [16, 16, 6]);
  assert.equal(gauges.tierBlocksThrashed, 0);
});

test("a block that comes back within the window has thrashed", () => {
  const { engine, run } = start(TIER);
  run(0, "a", 1);
  run(1000, "b", 2);
  run(2000, "a2", 1);
  assert.equal(engine.gauges().tierBlocksThrashed, 6);
});

test("below the threshold nothing is copied out", () => {
  const { engine, run } = start({ ...TIER, offloadThreshold: 0.95 });
  run(0, "a", 1);
  assert.equal(engine.gauges().tierBlocksCopiedOut, 0);
  const full = start({ ...TIER, offloadThreshold: 0.8 });
  full.run(0, "a", 1);
  assert.equal(full.engine.gauges().tierBlocksCopiedOut, 8);
});

test("the host keeps what was copied out or back last, each content once", () => {
  const random = randomFor(3, 9);
  const tier = new KvTier({ ...TIER, cpuBlocks: 10 });
  const chains = Array.from({ length: 6 }, (_, family) =>
    Int32Array.from({ length: 8 }, (__, word) => (word % 2 === 0 ? family : word)),
  );
  let recent: string[] = [];
  for (let step = 0; step < 2000; step++) {
    const family = random.below(chains.length);
    const hashes = chains[family] as Int32Array;
    const i = random.below(4);
    const name = `${family}/${i}`;
    if (random.below(3) > 0 || !recent.includes(name)) tier.copyOut(hashes, i, step);
    else tier.copyBack(hashes, i, 1, step);
    recent = [...recent.filter((other) => other !== name), name].slice(-10);
    tier.verify();
    assert.equal(tier.size, recent.length);
    for (const [f, chain] of chains.entries()) {
      const here = [0, 1, 2, 3].findIndex((block) => !recent.includes(`${f}/${block}`));
      assert.equal(tier.following(chain, 0, 4), here < 0 ? 4 : here);
    }
  }
});
