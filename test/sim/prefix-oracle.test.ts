import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { simulate } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { cluster, engines } from "./cluster.ts";

const profile = (...plugins: readonly string[]): ProfileSpec => ({
  filters: [],
  scorers: [...plugins, "queue-depth"].map((plugin) => ({ plugin, weight: 1, parameters: {} })),
  picker: { plugin: "max-score", parameters: {} },
});

/** 300 requests over 40 prefixes of 20 blocks, more than the three caches hold together. */
const workload: readonly WorkloadRequest[] = Array.from({ length: 300 }, (_, i) => ({
  ...LENGTHS_ONLY,
  index: i,
  arrivalMicros: i * 20_000,
  promptTokens: 330,
  outputTokens: 4,
  blockIds: Float64Array.from({ length: 20 }, (_unused, block) => 1_000 * ((i * 7) % 40) + block),
  blockTokens: 16,
}));

function run(spec: ProfileSpec, more: Partial<SimulationOptions> = {}) {
  const decisions: Decision[] = [];
  const specs = engines(3, { kvBlocks: 151, modelTokensMax: 1_024 });
  const arrivals = new WorkloadArrivals(workload, {
    seed: 1,
    blockTokens: 16,
    timeoutMicros: Infinity,
    timeScale: 1,
    rateScale: 1,
  });
  const observe = (_input: unknown, decision: Decision | undefined) => {
    if (decision !== undefined) decisions.push(decision);
  };
  const result = simulate(cluster(spec, specs, { arrivals, observe, ...more }));
  return { result, decisions, placed: decisions.map((one) => (one.kind === "routed" ? one.endpoint : one.reason)) };
}

test("a scorer that looks into the engines decides as one whose index is the engines' caches", () => {
  const index = run(profile("prefix-affinity"), { prefixes: { kind: "engine-caches", delayMicros: 0 } });
  const looking = run(profile("prefix-oracle"), { engineCaches: { delayMicros: 0 } });
  assert.deepEqual(looking.placed, index.placed);
});

test("it stands beside the router's own view in one policy, and both are in the breakdown", () => {
  const { decisions } = run(profile("prefix-affinity", "prefix-oracle"), { engineCaches: { delayMicros: 0 } });
  let apart = 0;
  for (const { breakdown } of decisions) {
    const count = breakdown.candidates.length;
    const [own, oracle] = ["prefix-affinity", "prefix-oracle"].map((name) =>
      breakdown.scorers.findIndex((scorer) => scorer.name === name),
    );
    for (let i = 0; i < count; i++)
      if (breakdown.values[own! * count + i] !== breakdown.values[oracle! * count + i]) apart++;
  }
  assert.ok(apart > 10, `${apart} values differ`);
});

test("copies of a given age are what it sees; without a look into engines it abstains", () => {
  const old = run(profile("prefix-oracle"), { engineCaches: { delayMicros: 2_000_000 } });
  const index = run(profile("prefix-affinity"), { prefixes: { kind: "engine-caches", delayMicros: 2_000_000 } });
  assert.deepEqual(old.placed, index.placed);
  const blind = run(profile("prefix-oracle"));
  assert.deepEqual(blind.placed, run(profile()).placed);
});
