import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import type { ParameterValue, ProfileSpec } from "#core/plugin/spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { request, snapshot } from "../state.ts";
import { readVectors, vectorRequest, vectorSnapshots } from "../vector-state.ts";

interface Gate {
  readonly id: string;
  readonly absolute?: number;
  readonly relative?: number;
  readonly counts: readonly number[];
  readonly keep: readonly number[];
}

interface Guard {
  readonly id: string;
  readonly counts: readonly number[];
  readonly match: readonly number[];
  readonly factor: number;
  /** Endpoints that may be chosen; none stands for no match within the guard. */
  readonly pick: readonly number[];
}

const vectors = readVectors<{ imbalance: readonly Gate[]; smgImbalance: readonly Gate[]; guard: readonly Guard[] }>(
  "aibrix.json",
);

function gate({ counts, keep, absolute, relative }: Gate, defaults: { absolute: number; relative: number }): void {
  const parameters = {
    absolute: absolute ?? defaults.absolute,
    relative: relative ?? defaults.relative,
    onImbalance: "restrict",
  };
  assert.deepEqual(kept("imbalance-gate", parameters, counts), keep);
}

for (const vector of vectors.imbalance) {
  test(`AIBrix ${vector.id}: imbalance gate`, () => gate(vector, { absolute: 8, relative: 0 }));
}

for (const vector of vectors.smgImbalance) {
  test(`${vector.id}: both thresholds`, () => gate(vector, { absolute: 64, relative: 1.5 }));
}

test("the gate keeps one endpoint where it is configured to, the first or a drawn one of the least busy", () => {
  assert.deepEqual(kept("imbalance-gate", { absolute: 8 }, [20, 0, 0]), [1]);
  const drawn = Array.from({ length: 40 }, (_, i) =>
    kept("imbalance-gate", { absolute: 8, tieBreak: "random" }, [20, 0, 0], [], i),
  );
  assert.ok(drawn.every((one) => one.length === 1));
  assert.deepEqual(
    [...new Set(drawn.flat())].toSorted((a, b) => a - b),
    [1, 2],
  );
});

for (const { id, counts, match, factor, pick } of vectors.guard) {
  test(`AIBrix ${id}: standard-deviation guard, then the least busy, else the least busy of all`, () => {
    const spec: ProfileSpec = {
      filters: [{ plugin: "prefix-match", parameters: { deviationFactor: factor } }],
      scorers: [{ plugin: "least-request", weight: 1, parameters: {} }],
      picker: { plugin: "max-score", parameters: { tieBreak: "random" } },
    };
    const profile = buildProfile("v", spec);
    const snapshots = vectorSnapshots(counts.map((inFlight, i) => ({ inFlight, hit: match[i] ?? 0 })));
    const ids = snapshots.map((one) => one.id);
    const asked = vectorRequest({ blocks: 100 });
    const none = new Uint8Array(counts.length);
    const picks = Array.from(
      { length: 40 },
      (_, draw) => profile.choose(asked, snapshots, ids, none, randomFor(3, draw)).index,
    );
    const leastBusy = [...counts.keys()].filter((i) => counts[i] === Math.min(...counts));
    assert.deepEqual(
      [...new Set(picks)].toSorted((a, b) => a - b),
      pick.length === 0 ? leastBusy : pick,
    );
  });
}

function kept(
  name: keyof typeof CATALOG.filters,
  parameters: Record<string, ParameterValue>,
  counts: readonly number[],
  match: readonly number[] = [],
  draw = 0,
): number[] {
  const snapshots = vectorSnapshots(counts.map((inFlight, i) => ({ inFlight, hit: match[i] ?? 0 })));
  const keep = new Uint8Array(counts.length).fill(1);
  CATALOG.filters[name]
    .create(name, parameters)
    .filter(vectorRequest({ blocks: 100 }), snapshots, keep, randomFor(3, draw));
  return [...keep.keys()].filter((i) => keep[i] === 1);
}

/** Four bytes a block, as AIBrix's test has them; the chain value of a block names all before it. */
function textBlocks(text: string) {
  const length = Math.floor(text.length / 4);
  const hashes = new Int32Array(2 * length);
  let hash = 7;
  for (let block = 0; block < length; block++) {
    for (const letter of text.slice(4 * block, 4 * block + 4))
      hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193);
    hashes[2 * block] = hash;
    hashes[2 * block + 1] = Math.imul(hash, 0x9e3779b1);
  }
  return { hashes, length, blockTokens: 1 };
}

test("AIBrix: prefix cache end to end", () => {
  const base = loadProfile("aibrix-prefix-cache").spec;
  const spec: ProfileSpec = {
    ...base,
    filters: [
      { plugin: "imbalance-gate", parameters: { absolute: 8, onImbalance: "restrict" } },
      { plugin: "prefix-match", parameters: { deviationFactor: 1 } },
    ],
  };
  const router = new Router({
    seed: 1,
    profiles: { v4: spec },
    defaultProfile: "v4",
    index: new ApproximateIndex(),
    blockTokens: 1,
    staleAfterMicros: 1e6,
  });
  for (const id of ["p0", "p1", "p2", "p3"]) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 1000, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  let requests = 0;
  const ask = (text: string): string => {
    const id = `r${requests++}`;
    const blocks = textBlocks(text);
    const asked = request({ id, blocks, promptTokens: blocks.length + 1 });
    const decision = router.accept({ kind: "request-arrived", at: requests, request: asked });
    return decision.kind === "routed" ? decision.endpoint : assert.fail(decision.reason);
  };
  const first = ask("abcdegfh");
  const second = ask("wxyz");
  assert.notEqual(second, first, "step 2: least requests");
  assert.equal(ask("abcdegfh"), first, "step 3: a full match within the guard");
  const fourth = ask("abcd");
  assert.ok(fourth !== first && fourth !== second, "step 4: the only match is above mean + sd");
  assert.equal(ask("abcdefghijkl"), fourth, "step 5: equal matches, the guard refuses the first");
  const sixth = ask("abcdefgh");
  assert.equal(sixth, fourth, "step 6: the whole prompt is there");
  for (let i = 0; i < 6; i++) pinned(router, sixth, `x${i}`);
  const idle = ["p0", "p1", "p2", "p3"].find((id) => ![first, second, fourth].includes(id));
  assert.equal(ask("abcdefgh"), idle, "step 7: 9 requests against 0 is out of balance");
});

/** One more request in flight at an endpoint: the others are cordoned for its decision. */
function pinned(router: Router, endpoint: string, id: string): void {
  const others = ["p0", "p1", "p2", "p3"].filter((other) => other !== endpoint);
  for (const other of others) router.accept({ kind: "endpoint-cordoned", at: 20, endpoint: other });
  router.accept({ kind: "request-arrived", at: 20, request: request({ id, blocks: textBlocks("") }) });
  for (const other of others) router.accept({ kind: "endpoint-uncordoned", at: 20, endpoint: other });
}

test("AIBrix: throughput prefers the least token work per request", () => {
  const cases: [readonly (readonly [number, number])[], readonly number[]][] = [
    [
      [
        [1, 2],
        [2, 1],
        [3, 3],
        [4, 4],
      ],
      [0],
    ],
    [
      [
        [1, 4],
        [5, 5],
        [2, 2],
      ],
      [0, 2],
    ],
  ];
  for (const [work, best] of cases) {
    const scorer = CATALOG.scorers.throughput.create("throughput", {});
    const candidates = work.map((_, i) => snapshot({ id: `p${i}` }));
    work.forEach(([promptTokens, outputTokens], i) => {
      const asked = request({ id: `r${i}`, promptTokens });
      const placed = {
        kind: "routed" as const,
        at: 1,
        sequence: i,
        requestId: asked.id,
        attempt: 1,
        profile: "v",
        policyVersion: 1,
        endpoint: `p${i}`,
        reason: "only",
        hitTokens: 0,
        prefixSource: "approximate" as const,
        usedLedger: false,
        breakdown: {
          candidates: [],
          scorers: [],
          values: new Float64Array(0),
          totals: new Float64Array(0),
          clamped: 0,
        },
      };
      scorer.observe?.({ kind: "request-arrived", at: 1, request: asked }, placed, asked);
      const end = { promptTokens, outputTokens, cachedTokens: 0, outcome: "ok" as const };
      scorer.observe?.({ kind: "request-finished", at: 2, requestId: asked.id, ...end }, undefined, asked);
    });
    const scores = new Float64Array(work.length);
    scorer.score(request({ id: "q" }), candidates, scores);
    const highest = Math.max(...scores);
    assert.deepEqual(
      [...scores.keys()].filter((i) => scores[i] === highest),
      best,
    );
  }
});
