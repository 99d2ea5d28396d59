import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { parse } from "yaml";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-autoscale-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

/** Five requests a second for four minutes, of which the second has four times as many. */
const WORKLOAD = join(FOLDER, "workload.jsonl");
const lines = Array.from({ length: 240 }, (_, second) =>
  Array.from({ length: second >= 60 && second < 120 ? 20 : 5 }, (_one, i) =>
    JSON.stringify({
      timestamp: second * 1000 + i * 50,
      input_length: 800,
      output_length: 100,
      hash_ids: [2 * (second * 100 + i), 2 * (second * 100 + i) + 1],
    }),
  ),
).flat();
writeFileSync(WORKLOAD, `${lines.join("\n")}\n`);

const FAST = ["--autoscaler-interval", "5s", "--provisioning-delay", "5s", "--warmup-duration", "500ms"];
const SOON = ["--autoscaler-metrics-delay", "0s", "--scale-cooldown", "5s", "--scale-down-stabilization", "20s"];

const ask = (t: TestContext, ...flags: string[]) =>
  inProcess(
    t,
    [whatIfCommand()],
    ["what-if", WORKLOAD, "--threads", "1", "--endpoints", "2", ...FAST, ...SOON, ...flags],
  );

test("a fleet that follows the load costs less than one that is always large, and serves better than a small one", async (t) => {
  const slo = ["--slo", "*:100:10:", "--autoscale", "queue-depth:target_per_replica=8", "--endpoints", "4"];
  const { out } = await ask(t, "--json", "-", ...slo);
  const { candidates } = JSON.parse(out) as WhatIfAnswer;
  const [small, scaled, large] = [
    "gnomon",
    "gnomon, autoscaled, queue-depth:target_per_replica=8",
    "gnomon, 4 endpoints",
  ].map((name) => candidates.find((one) => one.name === name)!);
  assert.ok(candidates.every(({ completed }) => completed === lines.length));
  assert.ok(scaled!.replicaHours < large!.replicaHours, `${scaled!.replicaHours} of ${large!.replicaHours}`);
  assert.ok(scaled!.goodput! > small!.goodput!, `${scaled!.goodput} over ${small!.goodput}`);
  assert.ok(scaled!.scaling!.ups >= 1 && scaled!.scaling!.downs >= 1);
  assert.equal(small!.scaling, undefined);
  assert.ok(Math.abs(small!.replicaHours - (2 * 241) / 3600) < 0.01);
});

test("an oracle is ready when the load comes", async (t) => {
  const policies = ["oracle:requests_per_second_per_replica=6", "queue-depth:target_per_replica=8"];
  const { out } = await ask(t, "--json", "-", ...policies.flatMap((one) => ["--autoscale", one]));
  const { candidates } = JSON.parse(out) as WhatIfAnswer;
  const firstUp = (name: string) =>
    candidates.find((one) => one.name.includes(name))!.scaling!.actions.find(({ action }) => action === "up")!.at;
  assert.ok(firstUp("oracle") <= 55e6 && firstUp("queue-depth") > 55e6);
});

test("the terminal shows cost against goodput; the manifest is the cheapest of those that are nearly best", async (t) => {
  const hpa = join(FOLDER, "hpa.yaml");
  const targets = [4, 5, 400].flatMap((n) => ["--autoscale", `queue-depth:target_per_replica=${n}`]);
  const { out } = await ask(t, "--slo", "*:100:10:", ...targets, "--hpa", hpa, "--hpa-deployment", "llama");
  assert.match(out, /replica-hours.*goodput/);
  const text = readFileSync(hpa, "utf8");
  assert.match(text, /^# Simulated on the traffic .* replica-hours, [\d.]+ % of requests/);
  const manifest = parse(text) as { spec: { scaleTargetRef: { name: string }; metrics: [{ external: unknown }] } };
  assert.equal(manifest.spec.scaleTargetRef.name, "llama");
  assert.deepEqual(manifest.spec.metrics[0].external, {
    metric: { name: "gnomon_endpoint_requests_in_flight" },
    target: { type: "AverageValue", averageValue: "5" },
  });
});

test("wrong policies, bounds and combinations are refused with what is accepted", async (t) => {
  const complaints: readonly [readonly string[], RegExp][] = [
    [["--autoscale", "magic"], /--autoscale: expected one of threshold, .*, got the unknown policy "magic"/],
    [["--autoscale", "threshold:scale_up=0.5"], /params.scale_up: expected one of .*scale_up_threshold.*--autoscale/],
    [["--autoscale", "queue-depth:target_per_replica=many"], /--autoscale: expected threshold, target-utilization/],
    [["--autoscale", "threshold:scale_up_threshold=0.2"], /scale_down_threshold: expected below the 0.2/],
    [
      ["--autoscale", "threshold", "--autoscaler-min", "9", "--autoscaler-max", "8"],
      /--autoscaler-max: expected at least the 9/,
    ],
    [["--provisioning-delay", "soon"], /expected a time such as 30s/],
    [["--hpa", join(FOLDER, "x.yaml")], /--hpa: expected together with --slo/],
    [["--hpa", join(FOLDER, "x.yaml"), "--slo", "*:1::"], /--hpa: expected together with --autoscale queue-depth/],
  ];
  for (const [flags, expected] of complaints) {
    const { code, said } = await ask(t, ...flags);
    assert.notEqual(code, 0);
    assert.match(said, expected);
  }
});
