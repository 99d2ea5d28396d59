import assert from "node:assert/strict";
import { test } from "node:test";
import { scenarioOf } from "#cli/evaluate/candidate-change.ts";
import { askedPolicies } from "#cli/evaluate/candidate-policy.ts";
import { loadProfile } from "#config/profile-file.ts";
import { caseSetting } from "../../shadow/question/what-if-case.ts";

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
        { policy_id: "b", parameters: { "routing.bucket_size": 500 } },
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
  assert.match(problems(1), /^routing\.bucket_size: expected scorers\.NAME\.weight, /);
  assert.match(problems(2), /filters\[0\]\.parameters\.factor: expected a number/);
  assert.match(problems(3), /nobody/);
  assert.equal(problems(4), "");
  assert.match(problems(5), /speed/);
  assert.throws(() => askedPolicies({ candidates: [] }, "gnomon"), /candidates/);
});

test("dotted parameters of admission and autoscaling are those of the configuration and of a policies file", () => {
  const [one] = askedPolicies(
    {
      "admission.limits.burst.type": "token-bucket",
      "admission.limits.burst.bucketTokens": 500,
      "admission.queue.enabled": true,
      "autoscale.type": "queue-depth",
      "autoscale.target_per_replica": 4,
      "autoscale.max_replicas": 6,
      "autoscale.warmup_seconds": 30,
      "scorers.load-balance.weight": 0.2,
    },
    "gnomon-weighted",
  );
  assert.ok(one && !("problems" in one.spec));
  assert.equal(one.spec.scorers.find(({ plugin }) => plugin === "load-balance")?.weight, 0.2);
  const burst = one.change?.admission?.spec?.limits["burst"];
  assert.ok(burst?.type === "token-bucket" && burst.bucketTokens === 500 && burst.refillPerSecond === 1000);
  const scenario = scenarioOf(one.change!, caseSetting([]));
  assert.deepEqual([scenario.endpoints?.length, scenario.scaling?.autoscaler.max], [3, 6]);
  assert.equal(scenario.scaling?.warmupMicros, 30_000_000);
  const [plain] = askedPolicies({ "admission.shedAt": 0.5 }, "gnomon");
  assert.deepEqual([plain?.change?.admission?.spec?.shedAt, plain?.change?.autoscale], [0.5, undefined]);
});

test("what admission and autoscaling do not know is refused with its path", () => {
  const problemOf = (parameters: object) => {
    const [one] = askedPolicies({ parameters }, "gnomon");
    return one !== undefined && "problems" in one.spec ? one.spec.problems.join("\n") : "";
  };
  assert.match(problemOf({ "admission.shedAt": 2 }), /^admission\.shedAt: expected/);
  assert.match(problemOf({ "admission.bucket_size": 5 }), /^admission\..*bucket_size/);
  assert.match(problemOf({ "admission.queue": true, "admission.queue.enabled": true }), /admission\.queue/);
  assert.match(problemOf({ "autoscale.target_per_replica": 4 }), /^autoscale\.type: expected a policy/);
  assert.match(problemOf({ "autoscale.type": "tarot" }), /autoscale: .*queue-depth/);
  assert.match(problemOf({ "autoscale.type": "queue-depth", "autoscale.warmup_seconds": -1 }), /warmup_seconds/);
  assert.match(problemOf({ "autoscale.type": "queue-depth", "autoscale.speed": 1 }), /speed/);
});
