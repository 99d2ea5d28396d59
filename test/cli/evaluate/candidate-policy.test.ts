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
    { profile: "gnomon-weighted" },
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
    { profile: "gnomon-weighted" },
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
  assert.throws(() => askedPolicies({ candidates: [] }, { profile: "gnomon" }), /candidates/);
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
    { profile: "gnomon-weighted" },
  );
  assert.ok(one && !("problems" in one.spec));
  assert.equal(one.spec.scorers.find(({ plugin }) => plugin === "load-balance")?.weight, 0.2);
  const burst = one.change?.admission?.spec?.limits["burst"];
  assert.ok(burst?.type === "token-bucket" && burst.bucketTokens === 500 && burst.refillPerSecond === 1000);
  const scenario = scenarioOf(one.change!, caseSetting([]));
  assert.deepEqual([scenario.endpoints?.length, scenario.scaling?.autoscaler.max], [3, 6]);
  assert.equal(scenario.scaling?.warmupMicros, 30_000_000);
  const [plain] = askedPolicies({ "admission.shedAt": 0.5 }, { profile: "gnomon" });
  assert.deepEqual([plain?.change?.admission?.spec?.shedAt, plain?.change?.autoscale], [0.5, undefined]);
});

test("what admission and autoscaling do not know is refused with its path", () => {
  const problemOf = (parameters: object) => {
    const [one] = askedPolicies({ parameters }, { profile: "gnomon" });
    return one !== undefined && "problems" in one.spec ? one.spec.problems.join("\n") : "";
  };
  assert.match(problemOf({ "admission.shedAt": 2 }), /^admission\.shedAt: expected/);
  assert.match(problemOf({ "admission.bucket_size": -5 }), /^admission\.params\.bucket_size: expected/);
  assert.match(problemOf({ "admission.buckets": 5 }), /^admission\.type: expected .* buckets go with/);
  assert.match(problemOf({ "admission.shedAt": 0.5, "admission.bucket_size": 5 }), /unknown key "bucket_size"/);
  assert.match(problemOf({ "priority.type": "first" }), /^priority\.type: expected .*slo-based/);
  assert.match(problemOf({ "scheduler.respect_priority": true }), /^scheduler\.type: expected/);
  assert.match(problemOf({ "admission.queue": true, "admission.queue.enabled": true }), /admission\.queue/);
  assert.match(problemOf({ "autoscale.speed": 4 }), /^autoscale\.type: expected .* speed go with/);
  assert.match(problemOf({ "autoscale.type": "tarot" }), /autoscale\.type: .*queue-depth/);
  assert.match(problemOf({ "autoscale.type": "queue-depth", "autoscale.warmup_seconds": -1 }), /warmup_seconds/);
  assert.match(problemOf({ "autoscale.type": "queue-depth", "autoscale.speed": 1 }), /speed/);
});

/** What a published plan for evolving policies shows a framework's candidate to be, and its policies file. */
const PLANNED = {
  "routing.cache_affinity_weight": 0.7,
  "routing.load_balance_weight": 0.2,
  "routing.queue_depth_weight": 0.1,
  "admission.bucket_size": 500,
  "autoscale.scale_up_threshold": 0.75,
};
const FILE = {
  admission: { type: "token-bucket", params: { bucket_size: 1000, refill_rate: 100, per_tenant: true } },
  priority: { type: "slo-based", params: { realtime_score: 100, batch_score: 10, default_score: 50 } },
  routing: { type: "weighted-scoring", params: { cache_affinity_weight: 0.6, prefix_match_bonus: 0.5 } },
  scheduler: { type: "priority-fcfs", params: { preemption_policy: "lowest-priority" } },
  autoscale: { type: "threshold", params: { scale_up_threshold: 0.8, scale_down_threshold: 0.4 } },
};

test("parameters of a policies file need no type where one has them all", () => {
  const [one] = askedPolicies(PLANNED, { profile: "gnomon-weighted" });
  assert.ok(one?.change !== undefined && !("problems" in one.spec));
  const limit = one.change.admission?.spec?.limits["token-bucket"];
  assert.ok(limit?.type === "token-bucket" && limit.bucketTokens === 500);
  assert.deepEqual(one.change.autoscale?.policy.policy, { type: "threshold", up: 0.75, down: 0.3 });
  const [queue] = askedPolicies({ "autoscale.target_per_replica": 4 }, { profile: "gnomon" });
  assert.equal(queue?.change?.autoscale?.policy.policy.type, "queue-depth");
});

test("a candidate of a policies file's weights is these and nothing else: no other scorer, no filter, no picker of its own", () => {
  const weightsOf = (document: object, base: Parameters<typeof askedPolicies>[1] = {}) => {
    const [one] = askedPolicies(document, base);
    assert.ok(one && !("problems" in one.spec), JSON.stringify(one));
    const { filters, scorers, picker } = one.spec;
    assert.deepEqual([filters, picker], [[], { plugin: "max-score", parameters: {} }]);
    return Object.fromEntries(scorers.map(({ plugin, weight }) => [plugin, weight]));
  };
  const given = { "prefix-affinity": 0.7, "load-balance": 0.2, "queue-depth": 0.1 };
  assert.deepEqual(weightsOf(PLANNED), given);
  assert.deepEqual(weightsOf({ policy_id: "p", parameters: PLANNED }), given);
  assert.deepEqual(weightsOf({ "routing.cache_affinity_weight": 1 }), { "prefix-affinity": 1 });
  // Of a section that gives one weight the others are 0 as well; defaults stand where none is given.
  const section = (params: object) => ({ routing: { type: "weighted-scoring", params } });
  assert.deepEqual(weightsOf(section({ cache_affinity_weight: 0.6 })), { "prefix-affinity": 0.6 });
  assert.deepEqual(weightsOf(section({})), { "prefix-affinity": 3, "queue-depth": 2 });
  assert.deepEqual(weightsOf(PLANNED, { policies: section({ prefix_match_bonus: 0.5 }) }), {
    ...given,
    "prefix-held": 0.5,
  });
  const [changed] = askedPolicies({ "scorers.load-balance.weight": 0.2 }, {});
  assert.ok(changed && !("problems" in changed.spec) && changed.spec.filters.length > 0, "a profile's own are changed");
});

test("a candidate changes the policies file that all of them begin with, or is one itself", () => {
  const [based] = askedPolicies(PLANNED, { profile: "gnomon", policies: FILE });
  assert.ok(based?.change !== undefined && !("problems" in based.spec));
  const limit = based.change.admission?.spec?.limits["token-bucket"];
  assert.ok(limit?.type === "token-bucket" && limit.bucketTokens === 500 && limit.refillPerSecond === 100);
  assert.deepEqual(based.change.autoscale?.policy.policy, { type: "threshold", up: 0.75, down: 0.4 });
  const weights = Object.fromEntries(based.spec.scorers.map(({ plugin, weight }) => [plugin, weight]));
  assert.deepEqual(weights, { "prefix-affinity": 0.7, "queue-depth": 0.1, "prefix-held": 0.5, "load-balance": 0.2 });
  const [alone] = askedPolicies({ policy_id: "file" }, { profile: "gnomon", policies: FILE });
  const [itself] = askedPolicies(FILE, { profile: "gnomon" });
  assert.deepEqual([alone?.change, alone?.spec], [itself?.change, itself?.spec]);
  const scenario = scenarioOf(itself!.change!, caseSetting([]));
  assert.equal(scenario.priority?.type, "slo-based");
  assert.deepEqual([scenario.engine?.scheduler, scenario.engine?.preemption], ["priority-fcfs", "lowest-priority"]);
  const [other] = askedPolicies({ "admission.type": "hard-cap" }, { profile: "gnomon", policies: FILE });
  assert.equal(other?.change?.admission?.spec?.limits["hard-cap"]?.type, "hard-cap");
  const [both] = askedPolicies({ profile: "llm-d", policies: { routing: FILE.routing } }, { profile: "gnomon" });
  assert.ok(
    both !== undefined && "problems" in both.spec && both.spec.problems[0]!.startsWith("profile: expected to be alone"),
  );
});
