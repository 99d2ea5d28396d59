import assert from "node:assert/strict";
import { test } from "node:test";
import { baseNames } from "#live/kv-events/follower.ts";

test("adapters are no names of the base model", () => {
  const model = (id: string, more: object = {}) => ({ id, object: "model" as const, ...more });
  const models = [model("llama", { parent: null }), model("adapter-a", { parent: "llama" }), model("alias")];
  assert.deepEqual(baseNames({ models }), ["llama", "alias"]);
});
