import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision, Routed } from "#core/input/decision.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { checkProfile } from "#core/profile/check.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { chain, drawState, load, request } from "./state.ts";
import { type Step, drawTraffic } from "./traffic.ts";

const DEFAULT_PROFILE = loadProfile("gnomon").spec;

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const ROUND_ROBIN: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };

function routerWith(profiles: Record<string, ProfileSpec>, defaultProfile: string, seed = 7): Router {
  return new Router({
    seed,
    profiles,
    defaultProfile,
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 50_000,
  });
}

function weighted(prefix: number, queue: number, kv: number): ProfileSpec {
  return {
    ...DEFAULT_PROFILE,
    scorers: [
      { plugin: "prefix-affinity", weight: prefix, parameters: {} },
      { plugin: "queue-depth", weight: queue, parameters: {} },
      { plugin: "kv-utilization", weight: kv, parameters: {} },
    ],
  };
}

const decisionsOf = (log: readonly Step[]) => log.flatMap(({ decision }) => (decision === undefined ? [] : [decision]));
const shown = (decision: Decision) =>
  JSON.stringify({
    ...decision,
    breakdown: undefined,
    rows: decision.breakdown.candidates,
    values: [...decision.breakdown.values],
    totals: [...decision.breakdown.totals],
  });
const places = (log: readonly Step[]) =>
  decisionsOf(log).map((decision) => (decision.kind === "routed" ? decision.endpoint : decision.reason));

test("invariant 1: a scorer outside [0, 1] is clamped, and the decision counts it", () => {
  for (const seed of SEEDS) {
    for (const { breakdown } of decisionsOf(drawTraffic(routerWith({ d: DEFAULT_PROFILE }, "d"), seed, 400))) {
      for (const value of breakdown.values)
        assert.ok(Number.isNaN(value) || (value >= 0 && value <= 1), `seed ${seed}`);
      for (const total of breakdown.totals)
        assert.ok(Number.isNaN(total) || (total >= 0 && total <= 1 + 1e-12), `seed ${seed}`);
    }
  }
});

test("invariant 2: every candidate that no filter removed has a value from every scorer, and no other has one", () => {
  for (const seed of SEEDS) {
    for (const { breakdown } of decisionsOf(drawTraffic(routerWith({ d: DEFAULT_PROFILE }, "d"), seed, 400))) {
      breakdown.candidates.forEach((row, i) => {
        for (let s = 0; s < breakdown.scorers.length; s++) {
          const value = breakdown.values[s * breakdown.candidates.length + i]!;
          const refused = breakdown.candidates.every(({ removedBy }) => removedBy !== "");
          assert.equal(Number.isNaN(value), row.removedBy !== "" || refused, `seed ${seed}: ${JSON.stringify(row)}`);
        }
      });
    }
  }
});

test("invariant 3: the same inputs, seed and profile give the same decisions, byte for byte, and so does a replay of the log", () => {
  for (const seed of SEEDS) {
    const log = drawTraffic(routerWith({ d: DEFAULT_PROFILE }, "d"), seed, 500);
    const again = drawTraffic(routerWith({ d: DEFAULT_PROFILE }, "d"), seed, 500);
    assert.deepEqual(decisionsOf(again).map(shown), decisionsOf(log).map(shown), `seed ${seed}`);
    const fresh = routerWith({ d: DEFAULT_PROFILE }, "d");
    for (const { input, decision } of log) {
      const replayed = fresh.accept(input);
      assert.equal(replayed && shown(replayed), decision && shown(decision), `seed ${seed}`);
    }
  }
});

test("invariant 4: the first request finds nothing, the next one finds what the first left, whichever profile decided", () => {
  for (const first of ["d", "rr"]) {
    const router = routerWith({ d: DEFAULT_PROFILE, rr: ROUND_ROBIN }, "d");
    for (const id of ["a", "b"]) {
      router.accept({
        kind: "endpoint-joined",
        at: 0,
        endpoint: { id, models: [], labels: {}, kvCapacityTokens: 1600, concurrencyMax: 8 },
      });
    }
    const ask = (id: string, profile: string) =>
      router.accept({
        kind: "request-arrived",
        at: 1,
        request: request({ id, profile, blocks: chain(9, 6) }),
      }) as Routed;
    const one = ask("one", first);
    assert.equal(one.hitTokens, 0);
    const row = ask("two", "d").breakdown.candidates.find(({ endpoint }) => endpoint === one.endpoint);
    assert.equal(row?.hitTokens, 96);
  }
});

test("invariant 5: round-robin decides the same with any weighted profiles beside it", () => {
  for (const seed of SEEDS) {
    const alone = places(drawTraffic(routerWith({ rr: ROUND_ROBIN }, "rr"), seed, 300));
    const beside = places(
      drawTraffic(routerWith({ rr: ROUND_ROBIN, d: DEFAULT_PROFILE, w: weighted(9, 1, 1) }, "rr"), seed, 300),
    );
    assert.deepEqual(beside, alone, `seed ${seed}`);
  }
});

test("invariant 6: only the ratios of weights matter; zero, negative, NaN and absent weights are refused with their path", () => {
  for (const seed of SEEDS) {
    const base = places(drawTraffic(routerWith({ d: weighted(3, 2, 2) }, "d"), seed, 400));
    for (const factor of [2, 0.5, 1024, 0.1, 1 / 3, 7, Math.PI, 1e-3, 0.7]) {
      const scaled = weighted(3 * factor, 2 * factor, 2 * factor);
      assert.deepEqual(
        places(drawTraffic(routerWith({ d: scaled }, "d"), seed, 400)),
        base,
        `seed ${seed}, factor ${factor}`,
      );
    }
  }
  for (const weight of [0, -1, NaN, Infinity, undefined, "3"]) {
    const [problem, ...more] = checkProfile({ ...DEFAULT_PROFILE, scorers: [{ plugin: "queue-depth", weight }] });
    assert.equal(problem?.path, "scorers[0].weight");
    assert.match(problem.message, /above 0/);
    assert.deepEqual(more, []);
  }
});

test("invariant 6: weights 3, 2, 2, exact and rounded to two digits, route alike where totals are not within the rounding", () => {
  const exact = routerWith({ d: weighted(3, 2, 2) }, "d");
  const rounded = routerWith({ d: weighted(0.43, 0.29, 0.29) }, "d");
  const random = randomFor(6, 6);
  for (let i = 0; i < 200; i++) {
    const { request: asked, candidates } = drawState(random, 1);
    for (const router of [exact, rounded]) {
      if (i < 5) {
        const id = `e${i}`;
        router.accept({
          kind: "endpoint-joined",
          at: i,
          endpoint: { id, models: [], labels: {}, kvCapacityTokens: 10_000, concurrencyMax: 8 },
        });
        router.accept({
          kind: "load-observed",
          at: i,
          endpoint: id,
          load: load({ running: i, waiting: 0, kvUtilization: candidates[0]!.kvUtilization }),
        });
      }
    }
    const [a, b] = [exact, rounded].map(
      (router) => router.accept({ kind: "request-arrived", at: i + 10, request: { ...asked, id: `q${i}` } }) as Routed,
    );
    const totals = [...a!.breakdown.totals].filter((total) => !Number.isNaN(total)).sort((x, y) => y - x);
    if (totals.length > 1 && totals[0]! - totals[1]! > 0.01) assert.equal(b!.endpoint, a!.endpoint, `request ${i}`);
    if (a!.endpoint !== b!.endpoint) break;
  }
});

test("invariant 7: the index holds at most the endpoints' capacities, whatever the traffic", () => {
  for (const seed of SEEDS) {
    const router = routerWith({ d: DEFAULT_PROFILE }, "d");
    drawTraffic(router, seed, 600);
    for (const row of router.endpointRows(0))
      assert.ok(row.indexBlocks <= 40, `seed ${seed}: ${row.id} holds ${row.indexBlocks}`);
  }
});

test("the catalog's scorers are BLIS's four and more, never fewer", () => {
  for (const name of ["prefix-affinity", "queue-depth", "kv-utilization", "load-balance"])
    assert.ok(name in CATALOG.scorers, name);
});
