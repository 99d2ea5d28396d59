import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { CATALOG } from "#core/profile/catalog.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import type { Profile } from "#core/profile/profile.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { snapshot } from "../state.ts";
import {
  type VectorEndpoint,
  type VectorRequest,
  readVectors,
  vectorRequest,
  vectorSnapshots,
} from "../vector-state.ts";

interface PluginVector extends VectorRequest {
  readonly id: string;
  readonly plugin: string;
  readonly parameters?: Record<string, ParameterValue>;
  readonly endpoints: readonly VectorEndpoint[];
}

interface Vectors {
  readonly scorers: readonly (PluginVector & { readonly expect: readonly number[] })[];
  readonly filters: readonly (PluginVector & { readonly keep: readonly number[] })[];
  readonly schedulers: readonly (VectorRequest & {
    readonly id: string;
    readonly scorers: readonly string[];
    readonly endpoints: readonly VectorEndpoint[];
    readonly pick: number;
    readonly totals: readonly number[];
  })[];
}

const vectors = readVectors<Vectors>("llm-d.json");

function assertNear(got: number, expected: number, what: string, tolerance = 1e-4): void {
  assert.ok(Math.abs(got - expected) <= tolerance, `${what}: ${got}, not ${expected}`);
}

for (const vector of vectors.scorers) {
  test(`llm-d ${vector.id}: ${vector.plugin}`, () => {
    const plugin = CATALOG.scorers[vector.plugin as keyof typeof CATALOG.scorers];
    const scores = new Float64Array(vector.endpoints.length);
    const snapshots = vectorSnapshots(vector.endpoints, vector.blockTokens);
    plugin.create(vector.plugin, vector.parameters ?? {}).score(vectorRequest(vector), snapshots, scores);
    vector.expect.forEach((expected, i) => assertNear(scores[i]!, expected, `endpoint ${i}`, 1e-6));
  });
}

for (const vector of vectors.filters) {
  test(`llm-d ${vector.id}: ${vector.plugin}`, () => {
    const plugin = CATALOG.filters[vector.plugin as keyof typeof CATALOG.filters];
    const keep = new Uint8Array(vector.endpoints.length).fill(1);
    const snapshots = vectorSnapshots(vector.endpoints);
    plugin
      .create(vector.plugin, vector.parameters ?? {})
      .filter(vectorRequest(vector), snapshots, keep, randomFor(1, 1));
    assert.deepEqual(
      [...keep.keys()].filter((i) => keep[i] === 1),
      vector.keep,
    );
  });
}

for (const vector of vectors.schedulers) {
  test(`llm-d ${vector.id}: a whole scheduler`, () => {
    const scorers = vector.scorers.map((plugin) => ({ plugin, weight: 1, parameters: {} }));
    const profile = buildProfile("v", { filters: [], scorers, picker: { plugin: "max-score", parameters: {} } });
    const choice = chooseOnce(profile, vectorSnapshots(vector.endpoints), vector);
    assert.equal(choice.index, vector.pick);
    vector.totals.forEach((total, i) =>
      assertNear(choice.breakdown.totals[i]! * scorers.length, total, `total of endpoint ${i}`, 1e-9),
    );
  });
}

test("llm-d NH3: cold requests go round, the longest unused first", () => {
  const profile = buildProfile("v", {
    filters: [],
    scorers: [{ plugin: "no-hit-lru", weight: 1, parameters: {} }],
    picker: { plugin: "max-score", parameters: {} },
  });
  const snapshots = vectorSnapshots([{}, {}, {}]);
  const picks: number[] = [];
  for (let sequence = 0; sequence < 5; sequence++) {
    const request = { ...vectorRequest({ blocks: 3 }), id: `r${sequence}` };
    const choice = profile.choose(request, snapshots, ids(snapshots), new Uint8Array(3), randomFor(1, sequence));
    picks.push(choice.index);
    if (sequence === 1) assert.deepEqual([...choice.breakdown.totals], [0, 1, 0.5], "after the first was used");
    const noted = profile.noted(snapshots[choice.index]!);
    const decision: Decision = {
      kind: "routed",
      at: sequence,
      sequence,
      requestId: request.id,
      attempt: 1,
      profile: "v",
      policyVersion: 1,
      breakdown: choice.breakdown,
      endpoint: snapshots[choice.index]!.id,
      reason: choice.reason,
      hitTokens: 0,
      prefixSource: "approximate",
      usedLedger: false,
      ...(noted && { noted }),
    };
    profile.observe({ kind: "request-arrived", at: sequence, request }, decision, request);
  }
  assert.deepEqual(picks, [0, 1, 2, 0, 1]);
});

const DRAWS = 10_000;

function shares(plugin: keyof typeof CATALOG.pickers, parameters: Record<string, ParameterValue>, totals: number[]) {
  const picker = CATALOG.pickers[plugin].create(plugin, parameters);
  const candidates = totals.map((_, i) => snapshot({ id: `e${i}` }));
  const counts = totals.map(() => 0);
  for (let i = 0; i < DRAWS; i++) {
    counts[picker.pick(vectorRequest({}), candidates, Float64Array.from(totals), randomFor(9, i))]!++;
  }
  return counts.map((count) => count / DRAWS);
}

test("llm-d M1, M2: the highest total, equals at random", () => {
  assert.deepEqual(shares("max-score", { tieBreak: "random" }, [0.2, 0.25, 0.3]), [0, 0, 1]);
  const [first, second, third] = shares("max-score", { tieBreak: "random" }, [0.3, 0.25, 0.3]);
  assert.equal(second, 0);
  assertNear(first!, 0.5, "first", 0.02);
  assertNear(third!, 0.5, "third", 0.02);
});

test("llm-d W1, W2, W3: chances in proportion to totals", () => {
  const cases: [number[], number[]][] = [
    [
      [0.1, 0.9],
      [0.1, 0.9],
    ],
    [
      [0.3, 0],
      [1, 0],
    ],
    [
      [1, 0.9, 0.5, 0.3, 0.2],
      [0.345, 0.31, 0.172, 0.103, 0.069],
    ],
  ];
  for (const [totals, expected] of cases) {
    shares("weighted-random", {}, totals).forEach((share, i) => assertNear(share, expected[i]!, `share ${i}`, 0.015));
  }
});

function ids(snapshots: readonly Snapshot[]): string[] {
  return snapshots.map(({ id }) => id);
}

function chooseOnce(profile: Profile, snapshots: readonly Snapshot[], asked: VectorRequest) {
  return profile.choose(
    vectorRequest(asked),
    snapshots,
    ids(snapshots),
    new Uint8Array(snapshots.length),
    randomFor(1, 0),
  );
}
