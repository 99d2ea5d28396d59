import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type InferenceModelRewrite, ModelRewrites, prioritiesOf } from "#live/discovery/workload-rules.ts";

const POOL = { name: "llama", group: "inference.networking.k8s.io" };
const poolRef = { name: "llama", group: "inference.networking.k8s.io" };

interface Rule {
  readonly from?: readonly string[];
  readonly to: readonly (readonly [model: string, weight?: number])[];
}

function rewrite(name: string, created: string, ...rules: Rule[]): InferenceModelRewrite {
  return {
    metadata: { name, creationTimestamp: created },
    spec: {
      poolRef,
      rules: rules.map(({ from, to }) => ({
        ...(from && { matches: from.map((value) => ({ model: { value } })) }),
        targets: to.map(([modelRewrite, weight]) => ({ modelRewrite, ...(weight !== undefined && { weight }) })),
      })),
    },
  };
}

test("objectives of another pool, of another group and on their way out do not count; one without a priority has 0", () => {
  const objective = (name: string, spec: object, more: object = {}) => ({ metadata: { name, ...more }, spec });
  const found = prioritiesOf(
    [
      objective("urgent", { poolRef, priority: 10 }),
      objective("plain", { poolRef: { name: "llama" } }),
      objective("shed", { poolRef, priority: -2 }),
      objective("elsewhere", { poolRef: { name: "qwen" }, priority: 1 }),
      objective("older", { poolRef: { name: "llama", group: "inference.networking.x-k8s.io" }, priority: 1 }),
      objective("leaving", { poolRef, priority: 1 }, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    ],
    POOL,
  );
  assert.deepEqual(found, { urgent: 10, plain: 0, shed: -2 });
});

test("the rule for that very model goes before one for all, the older before the younger, then by name", () => {
  const rules = new ModelRewrites(
    [
      rewrite("b", "2026-01-02T00:00:00Z", { from: ["m"], to: [["young"]] }, { to: [["all-young"]] }),
      rewrite("a", "2026-01-01T00:00:00Z", { from: ["m", "n"], to: [["old"]] }, { to: [] }),
      rewrite("c", "2026-01-01T00:00:00Z", { from: ["n"], to: [["later"]] }),
      { metadata: { name: "d" }, spec: { poolRef: { name: "qwen" }, rules: [{ targets: [{ modelRewrite: "no" }] }] } },
    ],
    POOL,
  );
  assert.deepEqual(
    ["m", "n", "o"].map((model) => rules.targetOf(model, "s")),
    ["old", "old", "all-young"],
  );
  assert.ok(!rules.isEmpty && ModelRewrites.none.isEmpty);
  assert.equal(ModelRewrites.none.targetOf("m", "s"), "m");
});

test("conversations are divided by weight, and each keeps its target", () => {
  const rules = new ModelRewrites([rewrite("a", "2026-01-01", { from: ["m"], to: [["x", 9], ["y", 1], ["z"]] })], POOL);
  const counts = new Map<string, number>();
  for (let i = 0; i < 10_000; i++) {
    const target = rules.targetOf("m", `session-${i}`);
    assert.equal(rules.targetOf("m", `session-${i}`), target);
    counts.set(target, (counts.get(target) ?? 0) + 1);
  }
  assert.deepEqual([...counts.keys()].sort(), ["x", "y"]);
  assert.ok(Math.abs(counts.get("x")! - 9_000) < 150, `${counts.get("x")}`);
});

test("whatever the weights, the target is one of those that have some", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.option(fc.integer({ min: 1, max: 1_000_000 }))), {
        minLength: 1,
      }),
      fc.string(),
      (targets, by) => {
        const to = targets.map(([model, weight]): [string, number?] => (weight === null ? [model] : [model, weight]));
        const rules = new ModelRewrites([rewrite("a", "2026-01-01", { to })], POOL);
        const weighted = targets.filter(([, weight]) => weight !== null);
        const accepted = (weighted.length > 0 ? weighted : targets).map(([model]) => model);
        assert.ok(accepted.includes(rules.targetOf("m", by)));
      },
    ),
  );
});
