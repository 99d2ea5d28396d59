import assert from "node:assert/strict";
import { test } from "node:test";
import { TieOrder } from "#shadow/reproduce/tie-order.ts";

const IDS = ["a", "b", "c"];
const alike = (...among: number[]) => ({ kind: "alike", among }) as const;

test("an order that ties show: who came first comes first again, and who was never tied stays open", () => {
  const order = new TieOrder();
  assert.deepEqual(order.first(alike(0, 1, 2), IDS), alike(0, 1, 2));
  order.learn(alike(0, 1), IDS, 1);
  order.learn(alike(1, 2), IDS, 2);
  assert.deepEqual(order.first(alike(0, 1), IDS), { kind: "one", index: 1 });
  assert.deepEqual(order.first(alike(1, 2), IDS), { kind: "one", index: 2 });
  assert.deepEqual(order.first(alike(0, 2), IDS), alike(0, 2));
});

test("what was chosen outside of the tie shows nothing, and what is no tie is left alone", () => {
  const order = new TieOrder();
  order.learn(alike(0, 1), IDS, 2);
  assert.deepEqual(order.first(alike(0, 1), IDS), alike(0, 1));
  assert.deepEqual(order.first({ kind: "one", index: 2 }, IDS), { kind: "one", index: 2 });
});
