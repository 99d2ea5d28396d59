import assert from "node:assert/strict";
import { test } from "node:test";
import { askedPolicies } from "#cli/evaluate/candidate-policy.ts";
import { loadProfile } from "#config/profile-file.ts";

test("dotted parameters change a profile: weights by their usual names, plugins' parameters, the picker", () => {
  const [one] = askedPolicies(
    {
      "routing.cache_affinity_weight": 0.7,
      "routing.queue_depth_weight": 0,
      "scorers.load-balance.weight": 0.2,
      "filters.imbalance.factor": 3,
      "picker.tieBreak": "random",
    },
    "gnomon-weighted",
  );
  assert.ok(one && !("problems" in one.spec));
  const weights = Object.fromEntries(one.spec.scorers.map(({ plugin, weight }) => [plugin, weight]));
  assert.equal(weights["prefix-affinity"], 0.7);
  assert.equal(weights["load-balance"], 0.2);
  assert.ok(!("queue-depth" in weights));
  assert.equal(one.spec.filters[0]?.parameters["factor"], 3);
  assert.equal(one.spec.picker.parameters["tieBreak"], "random");
});

test("a batch keeps its order; a candidate that makes no policy does not stop the others", () => {
  const asked = askedPolicies(
    {
      candidates: [
        { policy_id: "a", profile: "llm-d" },
        { policy_id: "b", parameters: { "admission.bucket_size": 500 } },
        { policy_id: "c", parameters: { "filters.imbalance.factor": -1 } },
        { policy_id: "d", profile: "nobody" },
        { policy_id: "e", profile: { ...loadProfile("gnomon").spec, name: "own" } },
        { policy_id: "f", speed: 3 },
      ],
    },
    "gnomon-weighted",
  );
  const problems = (i: number) => {
    const { spec } = asked[i]!;
    return "problems" in spec ? spec.problems.join("\n") : "";
  };
  assert.deepEqual(
    asked.map(({ id }) => id),
    ["a", "b", "c", "d", "e", "candidate_6"],
  );
  assert.equal(problems(0), "");
  assert.match(problems(1), /^admission\.bucket_size: expected scorers\.NAME\.weight, /);
  assert.match(problems(2), /filters\[0\]\.parameters\.factor: expected a number/);
  assert.match(problems(3), /nobody/);
  assert.equal(problems(4), "");
  assert.match(problems(5), /speed/);
  assert.throws(() => askedPolicies({ candidates: [] }, "gnomon"), /candidates/);
});
