import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { load } from "../state.ts";
import { vectorRequest, vectorSnapshots } from "../vector-state.ts";

interface Node {
  readonly queue: number;
  readonly freeShare: number;
  readonly watts: number | undefined;
  readonly hit: number;
}

/** Totals of a profile over nodes whose power was observed just now, with 4 blocks of prompt. */
function totals(spec: ProfileSpec, nodes: readonly Node[], fleetWatts: number): number[] {
  const profile = buildProfile("c", spec);
  const snapshots = vectorSnapshots(
    nodes.map(({ queue, freeShare, hit }) => ({ waiting: queue, kv: 1 - freeShare, hit })),
  );
  const observe = (endpoint: string, watts: number | undefined) =>
    profile.observe({ kind: "load-observed", at: 0, endpoint, load: load({ watts }) }, undefined, undefined);
  nodes.forEach(({ watts }, i) => observe(snapshots[i]!.id, watts));
  observe("another", fleetWatts);
  const request = vectorRequest({ blocks: 4 });
  const choice = profile.choose(request, snapshots, ids(snapshots), new Uint8Array(nodes.length), randomFor(1, 0));
  return [...choice.breakdown.totals];
}

const ids = (snapshots: readonly Snapshot[]) => snapshots.map(({ id }) => id);

/** Cognitora's code, whose load is the queue over 64 and whose capacity is the share of free blocks. */
const CODE: ProfileSpec = {
  filters: [],
  scorers: [
    { plugin: "prefix-affinity", weight: 0.55, parameters: {} },
    { plugin: "queue-headroom", weight: 0.25, parameters: {} },
    { plugin: "power", weight: 0.1, parameters: {} },
    { plugin: "capacity", weight: 0.1, parameters: { measure: "free-kv" } },
  ],
  picker: { plugin: "max-score", parameters: {} },
};

function near(got: readonly number[], expected: readonly number[], tolerance = 1e-3): void {
  expected.forEach((one, i) => assert.ok(Math.abs(got[i]! - one) < tolerance, `node ${i}: ${got[i]}, not ${one}`));
}

test("Cognitora: the warm idle node beats the queued cold one", () => {
  const nodes = [
    { queue: 0, freeShare: 1, watts: 200, hit: 4 },
    { queue: 60, freeShare: 0, watts: 0, hit: 0 },
  ];
  near(totals(CODE, nodes, 200), [0.9, 0.1156]);
});

test("Cognitora: each of the four terms by its share", () => {
  near(totals(CODE, [{ queue: 10, freeShare: 0.5, watts: 150, hit: 2 }], 200), [0.561]);
});

test("a node without a power reading is judged by its other three terms, not as one that draws nothing", () => {
  const nodes = [
    { queue: 0, freeShare: 1, watts: undefined, hit: 0 },
    { queue: 0, freeShare: 1, watts: 200, hit: 0 },
  ];
  near(totals(CODE, nodes, 200), [0.35 / 0.9, 0.35]);
});

test("the shipped profile looks at the first 64 tokens, and ties within 0.01 go by a hash that stays", () => {
  const profile = buildProfile("cognitora", loadProfile("cognitora").spec);
  const request = vectorRequest({ blocks: 40 });
  const held = vectorSnapshots([{ hit: 4 }, { hit: 40 }, { hit: 2 }]);
  const choice = profile.choose(request, held, ids(held), new Uint8Array(3), randomFor(1, 0));
  assert.deepEqual(Array.from(choice.breakdown.values.slice(0, 3)), [1, 1, 0.5]);
  const picks = [1, 2, 3].map(
    (sequence) => profile.choose(request, held, ids(held), new Uint8Array(3), randomFor(sequence, sequence)).index,
  );
  assert.equal(new Set(picks).size, 1);
  const without = held.filter((_, i) => i !== 1 - picks[0]!);
  const again = profile.choose(request, without, ids(without), new Uint8Array(2), randomFor(9, 9));
  assert.equal(without[again.index]!.id, held[picks[0]!]!.id, "and does not move when the other leaves");
});

test("Cognitora: a holder of the first 64 tokens is preferred however busy, so a system prompt that all share piles up", () => {
  const { spec } = loadProfile("cognitora");
  const profile = buildProfile("c", spec);
  const snapshots = vectorSnapshots([{ hit: 4, inFlight: 1000 }, { hit: 0 }, { hit: 0 }]);
  const request = vectorRequest({ blocks: 200 });
  const choice = profile.choose(request, snapshots, ids(snapshots), new Uint8Array(3), randomFor(1, 0));
  assert.equal(choice.index, 0);
  const [holder, idle] = choice.breakdown.totals;
  near([holder!, idle!], [0.55 / 0.8, 0.25 / 0.8]);
});
