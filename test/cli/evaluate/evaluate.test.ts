import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { evaluateCommand } from "#cli/evaluate/evaluate.ts";
import { IsolatedEvaluations } from "#cli/evaluate/isolated-evaluation.ts";
import type { PolicyReport } from "#cli/evaluate/policy-report.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { inProcess } from "../in-process.ts";
import { caseSetting, caseWorkload, namedProfile } from "../../shadow/question/what-if-case.ts";
import { MEAN_E2E } from "../../shadow/tune/tune-case.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-evaluate-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const WORKLOAD = join(FOLDER, "workload.jsonl");
const lines = Array.from({ length: 120 }, (_, i) =>
  JSON.stringify({
    timestamp: 60 * i,
    input_length: 1500,
    output_length: 12,
    hash_ids: [i % 7, 100 + (i % 7), 1000 + i],
  }),
);
writeFileSync(WORKLOAD, `${lines.join("\n")}\n`);

function asked(document: object): string {
  const file = join(FOLDER, "candidate.json");
  writeFileSync(file, JSON.stringify(document));
  return file;
}

const run = (t: TestContext, command: string, document: object) =>
  inProcess(
    t,
    [evaluateCommand(), evaluateCommand("gepa-evaluate", "gepa"), evaluateCommand("openevolve-evaluate", "openevolve")],
    [command, WORKLOAD, "--candidate", asked(document), "--threads", "2"],
  );

test("a batch for GEPA: scores, feedback and what can be deployed, in its order, failures beside the others", async (t) => {
  const candidates = [{ profile: "llm-d" }, { policy_id: "same", profile: "gnomon" }, { profile: "nobody" }];
  const { code, out } = await run(t, "gepa-evaluate", { candidates });
  assert.equal(code, 0);
  const answer = JSON.parse(out) as { scores: number[]; feedback: string[]; outputs: PolicyReport[] };
  assert.equal(answer.scores[1], 1, "the profile in force is as good as itself");
  assert.equal(answer.scores[2], 0);
  assert.match(answer.feedback[0]!, /^Against gnomon this policy gains [-+]\d/);
  assert.match(answer.feedback[2]!, /could not be evaluated: .*nobody/);
  const [deployed, same] = answer.outputs;
  assert.ok(deployed !== undefined);
  assert.equal((deployed.config_for_deployment as { kind: string }).kind, "EndpointPickerConfig");
  assert.equal(deployed.deployable_by, "llm-d");
  assert.equal(same?.deployable_by, "gnomon");
  assert.equal(same?.policy_id, "same");
  assert.ok((same?.sim_metrics["e2e_mean_ms"] ?? 0) > 0 && (same?.sim_fitness["mean_e2e"] ?? 0) > 0);
});

test("one candidate for OpenEvolve: metrics with a combined score, and artifacts", async (t) => {
  const { out } = await run(t, "openevolve-evaluate", { "routing.cache_affinity_weight": 0.5 });
  const answer = JSON.parse(out) as { metrics: Record<string, number>; artifacts: Record<string, string> };
  assert.ok((answer.metrics["combined_score"] ?? 0) > 0);
  assert.match(answer.artifacts["reflection"]!, /gains/);
  for (const feature of ["imbalance", "replica_hours", "cache_hit_rate"]) assert.ok(feature in answer.metrics, feature);
});

test("options come from a file where the command line has none, and a policies file alone is a candidate", async (t) => {
  const policies = join(FOLDER, "fair.yaml");
  writeFileSync(policies, "admission: {type: rate-limit, params: {requests: 30, window_seconds: 60}}\n");
  const options = join(FOLDER, "options.yaml");
  writeFileSync(options, `workload: ${WORKLOAD}\nlimit: 60\nobjective: ttft-p99\npolicy-config: ${policies}\n`);
  const command = (...argv: string[]) =>
    inProcess(t, [evaluateCommand("openevolve-evaluate", "openevolve")], ["openevolve-evaluate", ...argv]);
  const { out } = await command("--config", options, "--limit", "100", "--threads", "1");
  const report = JSON.parse(out) as PolicyReport;
  assert.equal(report.policy_id, "fair");
  assert.equal(report.sim_metrics["completed"], 30);
  assert.match(report.reflection, /answers 30 of 100 requests/);
  const { admission } = report.config_for_deployment as { admission: object };
  assert.deepEqual(admission, { type: "rate-limit", params: { requests: 30, window_seconds: 60 } });
  const both = await command(WORKLOAD, "--config", options);
  assert.match(both.said, /expected one trace or workload, as the argument or as --workload/);
  writeFileSync(options, "objectives: e2e-mean\nlimit: none\nthreads: [1]\n");
  const wrong = await command(WORKLOAD, "--config", options);
  assert.match(wrong.said, /objectives: expected one of .*did you mean objective\?.*line 1/);
  assert.match(wrong.said, /limit: expected .*line 2/);
  assert.match(wrong.said, /threads: expected a text or a number, got \[1\].*line 3/);
});

test("admission and autoscaling are simulated with the policy, and what refuses requests does not win by it", async (t) => {
  const parameters = { "admission.limits.few.type": "rate-limit", "admission.limits.few.requestsMax": 30 };
  const autoscale = { "autoscale.type": "queue-depth", "autoscale.max_replicas": 4, "autoscale.min_replicas": 1 };
  const candidates = [
    { profile: "gnomon", parameters },
    { profile: "gnomon", parameters: autoscale },
  ];
  const { out } = await run(t, "gepa-evaluate", { candidates });
  const { outputs } = JSON.parse(out) as { outputs: PolicyReport[] };
  const [refusing, scaled] = outputs;
  assert.ok(refusing && scaled);
  assert.ok(refusing.sim_metrics["completed"]! < 60, `${refusing.sim_metrics["completed"]} of 120 answered`);
  assert.ok(refusing.score < 1, `scored ${refusing.score}`);
  assert.equal(refusing.deployable_by, "gnomon");
  const { admission } = refusing.config_for_deployment as { admission: object };
  assert.deepEqual(admission, { limits: { few: { type: "rate-limit", requestsMax: 30 } } });
  assert.equal(scaled.sim_metrics["completed"], 120);
  assert.ok(scaled.sim_metrics["replica_hours"]! > 0);
});

test("what refuses nearly everything is worse by every figure, which its reflection begins with, though the few that it serves are fast", async (t) => {
  // The document's own numbers: a bucket of 1,000 tokens that 100 a second fill, for prompts of 1,500.
  const policies = join(FOLDER, "document.yaml");
  writeFileSync(
    policies,
    "admission: {type: token-bucket, params: {bucket_size: 2000, refill_rate: 100, per_tenant: true}}\n" +
      "routing: {type: weighted-scoring, params: {cache_affinity_weight: 0.6, load_balance_weight: 0.3}}\n",
  );
  const argv = ["gepa-evaluate", WORKLOAD, "--policy-config", policies, "--threads", "1", "--endpoints", "1"];
  const { out } = await inProcess(t, [evaluateCommand("gepa-evaluate", "gepa")], argv);
  const { outputs, scores, feedback } = JSON.parse(out) as {
    outputs: PolicyReport[];
    scores: number[];
    feedback: string[];
  };
  const { completed, gain_over_in_force: gain } = outputs[0]!.sim_metrics;
  assert.ok(completed! < 6, `${completed} of 120 answered`);
  assert.ok(scores[0]! < 1e-6 && gain! < 0, `scored ${scores[0]}`);
  assert.match(feedback[0]!, /^Against gnomon this policy is far worse\. It answers \d of 120 requests \(\d\.\d %\)/);
  assert.doesNotMatch(feedback[0]!, /helps/);
  assert.match(
    feedback[0]!,
    /admission, token-bucket, refuses others, where a request costs its prompt's tokens \(1500 on average\)/,
  );
  // Times of the same requests, and what the others count: nothing is gained by leaving the slow ones out.
  const [, before, after] = /E2E mean (\d+) -> (\d+) ms/.exec(feedback[0]!) ?? [];
  const expected = 1 - (Number(after) / Number(before)) * (120 / completed!) ** 10;
  assert.ok(Math.abs(gain! / expected - 1) < 0.01, `${gain}, expected ${expected}`);
  const { out: same } = await run(t, "evaluate", { profile: "gnomon" });
  const [inForce] = (JSON.parse(same) as { outputs: PolicyReport[] }).outputs;
  for (const key of ["mean_ttft", "p99_ttft", "mean_e2e", "answered"])
    assert.ok(outputs[0]!.sim_fitness[key]! < inForce!.sim_fitness[key]!, key);
});

test("an evaluation that hangs is ended, and one that breaks is reported; neither harms this process", async () => {
  const setting = caseSetting(caseWorkload());
  const ground = { objective: MEAN_E2E, base: runCandidate(setting, namedProfile("gnomon")) };
  const attempt = (script: string, timeoutMillis: number) =>
    new IsolatedEvaluations(setting, ground, {
      timeoutMillis,
      heapMegabytesMax: 256,
      script: new URL(`data:text/javascript,${encodeURIComponent(script)}`),
    }).run(namedProfile("gnomon"));
  const hung = await attempt("for (;;);", 50);
  assert.deepEqual(hung, { ok: false, error: "it took longer than 50 ms" });
  const broken = await attempt("throw new Error('no such engine')", 60_000);
  assert.deepEqual(broken, { ok: false, error: "no such engine" });
});
