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
