import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockSize } from "#live/endpoints/block-size.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { StubEngine, answer, engineText } from "../discovery/stub-engine.ts";

function follower(configured: number | "engine") {
  const changes: number[] = [];
  const said: string[] = [];
  const size = new BlockSize({
    configured,
    change: (blockTokens) => changes.push(blockTokens),
    report: ({ kind, endpoint }) => said.push(`${kind} ${endpoint ?? ""}`.trim()),
  });
  return { size, changes, said };
}

test("the engines' size is followed, and stays while any of them has it", () => {
  const { size, changes, said } = follower("engine");
  assert.equal(size.blockTokens, 16);
  size.reported("a", 16, 7);
  assert.deepEqual([changes, said], [[], []]);
  size.gone("a", 7);
  assert.equal(size.blockTokens, 16, "nobody is there to follow");
  size.reported("a", 128, 7);
  size.reported("b", 32, 7);
  size.reported("b", 32, 7);
  assert.deepEqual(changes, [128]);
  assert.deepEqual(said, ["block-size-changed", "block-size-differs b"]);
  assert.deepEqual(size.view(), { blockTokens: 128, follows: "engine", differing: ["b"] });
  size.reported("c", 64, 7);
  size.gone("a", 7);
  assert.deepEqual(changes, [128, 32], "the smallest of those that are left");
  assert.deepEqual(size.view().differing, ["c"]);
});

test("a size that the operator fixed is kept, and every engine that has another is named once", () => {
  const { size, changes, said } = follower(32);
  for (const round of [1, 2]) {
    size.reported("a", 16, 7);
    size.reported("b", 32, 7);
    assert.deepEqual([changes, said], [[], ["block-size-differs a"]], `round ${round}`);
  }
  assert.deepEqual(size.view(), { blockTokens: 32, follows: "configuration", differing: ["a"] });
  size.gone("a", 7);
  assert.deepEqual(size.view().differing, []);
  size.reported("a", 16, 7);
  assert.equal(said.length, 2, "it came anew");
});

test("each scrape has it, the first before its endpoint joins", async (t) => {
  const engine = await StubEngine.start();
  const sized = (blockTokens: number) =>
    answer(200, engineText({}).replace('block_size="16"', `block_size="${blockTokens}"`));
  engine.metrics = sized(32);
  const told: string[] = [];
  const fleet: FleetUnderTest = new FleetUnderTest({
    blockSizes: {
      reported: (endpoint, blockTokens) => told.push(`${endpoint} ${blockTokens}, inputs ${fleet.story("a").length}`),
      gone: (endpoint) => told.push(`${endpoint} gone`),
    },
  });
  t.after(async () => {
    await fleet.keeper.stop();
    await engine.kill();
  });
  const target = {
    id: "a",
    url: engine.url,
    dataParallelRank: undefined,
    apiKey: undefined,
    labels: {},
    cordoned: false,
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  };
  fleet.keeper.setTargets("static", [target]);
  await until("a joined", () => fleet.story("a").length > 0);
  assert.equal(told[0], "a 32, inputs 0");
  assert.equal(fleet.directory.get("a")?.blockTokens, 32);
  engine.metrics = sized(64);
  await until("the new size is told", () => told.at(-1) === `a 64, inputs ${fleet.story("a").length}`);
  fleet.keeper.setTargets("static", []);
  assert.equal(told.at(-1), "a gone");
});
