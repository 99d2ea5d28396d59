import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterGolden, engineGoldens, type BlisCase } from "./blis-case.ts";
import { type BlisCluster, percentile, runRoundRobin } from "./blis-cluster.ts";

/** The clusters whose router reads nothing, so that the engines can be driven in turn. */
const ROUND_ROBIN = [
  "rr4_light",
  "long_prefill_threshold",
  "small_batched_tokens",
  "small_max_seqs",
  "burst_ties",
  "linear_rr3_prefix",
  "kv_pressure_1",
  "prefix_1",
];

for (const golden of [...engineGoldens(), ...ROUND_ROBIN.map(clusterGolden)]) {
  test(`every request's times, the steps and the metrics are BLIS's: ${golden.name}`, () => {
    const run = runRoundRobin(golden.config, golden.instances, golden.requests, golden.delay);
    assert.deepEqual(
      run.outcomes.map((outcome) => [outcome.ttft, outcome.e2e, outcome.delay]),
      golden.expected,
    );
    const gauges = run.engines.map((engine) => engine.gauges());
    assert.deepEqual(
      gauges.map((gauge) => gauge.steps),
      golden.steps,
    );
    assert.deepEqual(
      gauges.map((gauge) => gauge.blockHits),
      golden.blockHits,
    );
    assert.deepEqual(
      gauges.map((gauge) => gauge.blockMisses),
      golden.blockMisses,
    );
    assert.equal(
      gauges.reduce((sum, gauge) => sum + gauge.preemptions, 0),
      golden.preemptions,
    );
    assert.equal(Math.max(...run.endedAt), golden.endedAt);
    assertMetrics(golden, run);
  });
}

/** Published figures, within 1e-9 relative: they are floating-point sums and interpolated percentiles. */
function assertMetrics(golden: BlisCase, run: BlisCluster): void {
  const done = run.outcomes.filter((outcome) => outcome.done);
  const seconds = golden.endedAt / 1e6;
  const promptTokens = golden.requests.reduce((sum, request) => sum + request.promptTokens, 0);
  const outputTokens = golden.requests.reduce((sum, request) => sum + request.outputTokens, 0);
  const actual: Record<string, number> = {
    completed_requests: done.length,
    total_input_tokens: promptTokens,
    total_output_tokens: outputTokens,
    vllm_estimated_duration_s: seconds,
    responses_per_sec: done.length / seconds,
    tokens_per_sec: outputTokens / seconds,
    ...distribution(
      "e2e",
      done.map((outcome) => outcome.e2e),
    ),
    ...distribution(
      "ttft",
      run.outcomes.map((outcome) => outcome.ttft),
    ),
    ...distribution("itl", run.itls),
    scheduling_delay_p99_ms:
      percentile(
        run.outcomes.map((outcome) => outcome.delay),
        99,
      ) / 1e3,
  };
  for (const [name, value] of Object.entries(actual)) {
    // A preempted request's gaps before it started again are not counted there.
    if (golden.preemptions > 0 && name.startsWith("itl")) continue;
    const expected = golden.metrics[name];
    assert.ok(expected !== undefined, `${name} is published`);
    assert.ok(Math.abs(value - expected) <= 1e-9 * Math.abs(expected), `${name}: ${value}, published ${expected}`);
  }
}

function distribution(name: string, micros: readonly number[]): Record<string, number> {
  return {
    [`${name}_mean_ms`]: mean(micros) / 1e3,
    [`${name}_p90_ms`]: percentile(micros, 90) / 1e3,
    [`${name}_p95_ms`]: percentile(micros, 95) / 1e3,
    [`${name}_p99_ms`]: percentile(micros, 99) / 1e3,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
