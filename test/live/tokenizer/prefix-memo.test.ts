import assert from "node:assert/strict";
import { test } from "node:test";
import { rootState } from "#live/tokenizer/text/chain-state.ts";
import { type MemoNode, PrefixMemo } from "#live/tokenizer/prefix-memo.ts";
import { RandomStream } from "./random-stream.ts";

const STATE = rootState(new Int32Array(8));
const SEED = 4242;

/** Walks a conversation as an encoder does; returns how many of its messages were remembered. */
function walk(memo: PrefixMemo, messages: readonly (readonly [string, string])[]): number {
  let node: MemoNode = memo.top;
  let known = 0;
  for (const [tag, text] of messages) {
    const found = memo.find(node, tag, text);
    if (found !== undefined) known++;
    node = found ?? memo.add(node, tag, text, STATE);
    assert.deepEqual([node.tag, node.text], [tag, text]);
  }
  memo.touch(node);
  return known;
}

test("stays within its bounds, and what it remembers is a prefix that was walked", () => {
  const random = new RandomStream(SEED);
  for (const [entriesMax, bytesMax] of [
    [40, 1e9],
    [1e9, 30_000],
    [1, 1e9],
  ] as const) {
    const memo = new PrefixMemo(entriesMax, bytesMax, STATE);
    const walked = new Set<string>();
    for (let i = 0; i < 2000; i++) {
      const messages = Array.from({ length: 1 + random.below(6) }, (): [string, string] => [
        random.of(["user", "assistant"]),
        random.of(["a", "b", "c", "long ".repeat(2000), `long ${"longer ".repeat(2000)}`]),
      ]);
      const known = walk(memo, messages);
      for (let end = 1; end <= known; end++)
        assert.ok(walked.has(JSON.stringify(messages.slice(0, end))), `seed ${SEED}`);
      for (let end = 1; end <= messages.length; end++) walked.add(JSON.stringify(messages.slice(0, end)));
      const { entries, bytes } = memo.describe();
      assert.ok(entries <= entriesMax && bytes <= bytesMax, `seed ${SEED}, ${entries} entries, ${bytes} bytes`);
    }
    assert.ok(memo.describe().evictions > 0);
  }
});

test("forgets the conversation that was not used for longest, its end first", () => {
  const memo = new PrefixMemo(4, 1e9, STATE);
  walk(memo, [
    ["u", "1"],
    ["u", "2"],
  ]);
  walk(memo, [
    ["u", "x"],
    ["u", "y"],
  ]);
  assert.equal(
    walk(memo, [
      ["u", "1"],
      ["u", "2"],
    ]),
    2,
  );
  walk(memo, [["u", "new"]]);
  assert.equal(memo.describe().entries, 4);
  assert.equal(
    walk(memo, [
      ["u", "1"],
      ["u", "2"],
    ]),
    2,
  );
  assert.equal(
    walk(memo, [
      ["u", "x"],
      ["u", "y"],
    ]),
    1,
  );
});

test("conversations by turns move their places once, until a sixteenth of the bounds was added", () => {
  const memo = new PrefixMemo(320, 1e9, STATE);
  const conversation = (name: string): [string, string][] =>
    Array.from({ length: 5 }, (_, at) => ["u", `${name}${at}`]);
  for (const name of ["a", "b"]) walk(memo, conversation(name));
  const before = memo.moves;
  for (let i = 0; i < 50; i++) for (const name of ["a", "b"]) assert.equal(walk(memo, conversation(name)), 5);
  assert.ok(memo.moves <= before + 5, `${memo.moves - before} moves`);
  // What is used in each period stays, whatever comes once.
  for (let i = 0; i < 400; i++) {
    walk(memo, [["u", `once ${i}`]]);
    assert.equal(walk(memo, conversation("a")), 5, `after ${i} others`);
  }
  assert.equal(walk(memo, conversation("b")), 0);
  assert.ok(memo.moves - before < 400 + (400 / (320 / 16)) * 6, `${memo.moves - before} moves`);
});

test("a handle has its node until that is evicted, and is the same one each time", () => {
  const memo = new PrefixMemo(2, 1e9, STATE);
  walk(memo, [["u", "1"]]);
  const node = memo.find(memo.top, "u", "1")!;
  const handle = memo.handle(node);
  assert.ok(handle.node === node && memo.handle(node) === handle);
  for (const text of ["2", "3"]) walk(memo, [["u", text]]);
  assert.equal(handle.node, undefined);
  const unfiled = new PrefixMemo(0, 1e9, STATE);
  assert.equal(unfiled.handle(unfiled.add(unfiled.top, "u", "1", STATE)).node, undefined);
});

test("texts that share a sample, and one text in two roles, are distinguished", () => {
  const memo = new PrefixMemo(1000, 1e9, STATE);
  const long = (mark: string): string => `${"a".repeat(6000)}${mark}${"b".repeat(6000)}`;
  for (const round of [0, 1]) {
    for (let i = 0; i < 10; i++) assert.equal(walk(memo, [["user", long(`${i}`)]]), round, `${i}`);
    assert.equal(walk(memo, [["assistant", long("1")]]), round);
  }
  for (let i = 10; i < 100; i++) walk(memo, [["user", long(`${i}`.padStart(1, "0").slice(-1) + "x")]]);
  assert.ok(memo.describe().entries < 1000);
});

test("with room for nothing it remembers nothing", () => {
  const memo = new PrefixMemo(0, 1e9, STATE);
  walk(memo, [["u", "1"]]);
  assert.equal(walk(memo, [["u", "1"]]), 0);
  assert.equal(memo.describe().entries, 0);
});
