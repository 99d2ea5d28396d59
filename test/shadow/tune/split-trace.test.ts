import assert from "node:assert/strict";
import { test } from "node:test";
import { clustersOf } from "#shadow/job/clusters.ts";
import { splitTrace } from "#shadow/tune/split-trace.ts";
import { conversationsOf } from "./tune-case.ts";

const CONVERSATIONS = conversationsOf(40, 10, 5);
const unnamed = { session: "", turn: 0, parent: undefined, joins: [], thinkMicros: undefined };

function prompt(index: number, blockIds: readonly number[]) {
  return {
    ...CONVERSATIONS[0]!,
    ...unnamed,
    index,
    arrivalMicros: 1000 * index,
    blockIds: Float64Array.from(blockIds),
  };
}

test("conversations without names are those whose prompts go on with one another; a common system prompt joins none", () => {
  const roots = [1, 2, 3, 4, 5, 6].map((id, i) => prompt(i, [0, 10 * id, 10 * id + 1]));
  const rows = [...roots, prompt(6, [0, 10, 11, 12, 13]), prompt(7, [0, 10, 11, 12, 14, 15]), prompt(8, [0, 77])];
  const { ofRow, turn } = clustersOf(rows);
  assert.deepEqual([...ofRow], [0, 1, 2, 3, 4, 5, 0, 0, 6]);
  assert.deepEqual([...turn], [0, 0, 0, 0, 0, 0, 1, 2, 0]);
});

test("sub-agents belong to the conversation that spawned them", () => {
  const [first] = CONVERSATIONS;
  const rows = [
    { ...first!, index: 0, session: "a" },
    { ...first!, index: 1, session: "b", parent: { session: "a", turn: 0 } },
    { ...first!, index: 2, session: "c" },
    { ...first!, index: 3, session: "a", joins: ["b"], turn: 1 },
  ];
  assert.deepEqual([...clustersOf(rows).ofRow], [0, 0, 1, 0]);
});

test("no conversation is on both sides, and the search ends where the others begin", () => {
  const rows = Array.from({ length: 40 }, (_, i) => prompt(i, [0, i % 20, 100 + i]));
  const clusters = clustersOf(rows.map((one, i) => ({ ...one, blockIds: Float64Array.of(i) })));
  const split = splitTrace(rows, clusters, 0.5);
  assert.equal(split.search.length, 20);
  assert.equal(split.isRepeated, false);
  assert.deepEqual(
    [...split.heldOut],
    Array.from({ length: 40 }, (_, i) => (i < 20 ? 0 : 1)),
  );
  assert.deepEqual([split.searchSessions, split.heldOutSessions, split.heldOutRequests], [20, 20, 20]);
});

test("conversations that overlap come twice in the search, with text and names of their own the second time", () => {
  const clusters = clustersOf(CONVERSATIONS);
  const waiting = CONVERSATIONS.map((one) => ({ ...one, thinkMicros: one.turn === 0 ? undefined : 1000 }));
  const all = waiting.filter(({ turn }) => turn > 0).length > waiting.length / 2;
  const split = splitTrace(waiting, clusters, 0.5);
  assert.equal(split.isRepeated, all);
  const longer = waiting.flatMap((one) => [one, { ...one, turn: one.turn + 10, thinkMicros: 1000 }]);
  const rows = longer.map((one, index) => ({ ...one, index }));
  const twice = splitTrace(rows, clustersOf(rows), 0.5);
  assert.equal(twice.isRepeated, true);
  const names = new Set([...twice.search].flatMap(({ session }) => (session === "" ? [] : [session])));
  const first = [...names].filter((name) => !name.endsWith("~again"));
  assert.equal(names.size, 2 * first.length);
  assert.ok(first.every((name) => names.has(`${name}~again`)));
  const ids = (again: boolean) =>
    new Set([...twice.search].flatMap((one) => (one.session.endsWith("~again") === again ? [...one.blockIds!] : [])));
  const [once, again] = [ids(false), ids(true)];
  const shared = once.intersection(again);
  assert.ok(shared.size > 0 && shared.size < once.size, "only what conversations have in common");
});
