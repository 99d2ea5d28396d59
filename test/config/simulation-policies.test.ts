import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { admissionByName, priorityByName, readSimulationPolicies } from "#config/simulation-policies.ts";
import { ADMISSION_POLICIES } from "#core/admission/create.ts";
import { PRIORITY_POLICIES } from "#core/priority/create.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-policies-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

let files = 0;
function read(text: string) {
  const file = join(FOLDER, `${files++}.yaml`);
  writeFileSync(file, text);
  return readSimulationPolicies(file);
}

/** The example of the document that the file format comes from, as it stands there. */
const EXAMPLE = `
admission:
  type: "token-bucket"
  params:
    bucket_size: 1000
    refill_rate: 100  # tokens/sec
    per_tenant: true

priority:
  type: "slo-based"
  params:
    realtime_score: 100
    batch_score: 10
    default_score: 50

routing:
  type: "weighted-scoring"
  params:
    cache_affinity_weight: 0.6
    load_balance_weight: 0.3
    queue_depth_weight: 0.1
    prefix_match_bonus: 0.5

scheduler:
  type: "priority-fcfs"
  params:
    respect_priority: true
    preemption_enabled: true
    preemption_policy: "lowest-priority"

autoscale:
  type: "threshold"
  params:
    scale_up_threshold: 0.8    # utilization
    scale_down_threshold: 0.3
    cooldown_seconds: 60
`;

test("the example with all five sections loads as it is", () => {
  const { routing, scheduler, preemption, autoscale } = read(EXAMPLE);
  assert.deepEqual(routing?.scorers?.at(-1), { name: "prefix-held", weight: 0.5 });
  assert.deepEqual([scheduler, preemption], ["priority-fcfs", "lowest-priority"]);
  assert.deepEqual(autoscale?.policy, { type: "threshold", up: 0.8, down: 0.3 });
  assert.equal(autoscale?.cooldownSeconds, 60);
});

test("a scheduler that is not to respect priorities goes by arrival; engines that do not preempt are refused", () => {
  const params = (text: string) => `scheduler: { type: priority-fcfs, params: { ${text} } }`;
  assert.equal(read(params("respect_priority: false")).scheduler, "fcfs");
  assert.throws(() => read(params("preemption_enabled: false")), /preemption_enabled: expected true/);
});

test("an unknown policy of scaling and a wrong parameter are named with what is accepted", () => {
  assert.throws(() => read("autoscale: { type: predictive }"), /autoscale.type: expected .*saturation/);
  const wrong = "autoscale: { type: queue-depth, params: { target_per_replica: 0 } }";
  assert.throws(() => read(wrong), /autoscale.params.target_per_replica/);
});

test("each policy of admission and priority that there is has a form with defaults", () => {
  for (const name of ADMISSION_POLICIES)
    assert.deepEqual(Object.keys(admissionByName(name).limits), name === "always-admit" ? [] : [name]);
  for (const name of PRIORITY_POLICIES) assert.equal(priorityByName(name).type, name);
});

test("a quota of use has bounds for all and for named tenants", () => {
  const { admission } = read(
    "admission: {type: usage-quota, params: {max_prompt_tokens: 900, window_seconds: 60, by_tenant: {a: {max_requests: 2}}}}",
  );
  const limit = admission?.limits["usage-quota"];
  assert.ok(limit?.type === "usage-quota");
  assert.deepEqual(
    [limit.promptTokensMax, limit.windowMicros, limit.byTenant["a"]?.requestsMax, limit.per],
    [900, 60_000_000, 2, "tenant"],
  );
});

test("a bundle as BLIS loads it names policies, and its scheduler is a word", () => {
  const bundle = read(`
admission: {policy: token-bucket, token_bucket_capacity: 500}
routing:
  policy: weighted
  scorers: [{name: precise-prefix-cache, weight: 2.0}, {name: active-requests, weight: 1.0}]
priority: {policy: slo-based}
scheduler: priority-fcfs
preemption: {policy: priority}
`);
  const limit = bundle.admission?.limits["token-bucket"];
  assert.ok(limit?.type === "token-bucket" && limit.bucketTokens === 500 && limit.refillPerSecond === 1000);
  assert.deepEqual(bundle.routing, {
    policy: "weighted",
    scorers: [
      { name: "precise-prefix-cache", weight: 2 },
      { name: "active-request", weight: 1 },
    ],
  });
  assert.deepEqual(
    [bundle.priority?.type, bundle.scheduler, bundle.preemption],
    ["slo-based", "priority-fcfs", "lowest-priority"],
  );
  const plain = read("routing: {policy: round-robin}\nscheduler: fcfs\n");
  assert.deepEqual([plain.routing?.policy, plain.scheduler, plain.preemption], ["round-robin", "fcfs", "tail"]);
  assert.equal(plain.admission, undefined);
});

test("what a bundle has and is given otherwise here is named with its line", () => {
  assert.throws(
    () => read("admission: {policy: gaie-legacy}\n"),
    /admission\.policy: expected one of .*token-bucket.*line 1/,
  );
  assert.throws(
    () => read("scheduler: fcfs\nnode_pools: []\n"),
    /node_pools: expected --num-instances and --engine.*line 2/,
  );
  assert.throws(() => read("routing: {params: {}}\n"), /routing\.type: expected one of .*, got nothing/);
});
