import assert from "node:assert/strict";
import { test } from "node:test";
import { blisRequests } from "#trace/import/blis-spec.ts";
import { BLIS_SPEC } from "#trace/import/blis-spec-schema.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { parseSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

const CLIENT = {
  id: "c",
  rate_fraction: 1,
  arrival: { process: "poisson" },
  input_distribution: { type: "gaussian", params: { mean: 100, std_dev: 20, min: 10, max: 200 } },
  output_distribution: { type: "constant", params: { value: 7 } },
};
const BASE = { version: "2", seed: 42, aggregate_rate: 50, num_requests: 1000, clients: [CLIENT] };

function generate(spec: object): WorkloadRequest[] {
  const report = new ImportReport("spec", "blis-spec", true);
  return [...blisRequests(parseSpec(BLIS_SPEC, "spec", JSON.stringify(spec)), 1, report)];
}

test("clients share the rate by their fractions, in one order of arrival", () => {
  const clients = [
    CLIENT,
    { ...CLIENT, id: "d", tenant_id: "d", rate_fraction: 3, arrival: { process: "gamma", cv: 2 } },
  ];
  const requests = generate({ ...BASE, clients, num_requests: 8000 });
  assert.equal(requests.length, 8000);
  requests.forEach(({ index, arrivalMicros }, i) => {
    assert.equal(index, i);
    assert.ok(i === 0 || arrivalMicros >= requests[i - 1]!.arrivalMicros);
  });
  const share = requests.filter(({ tenant }) => tenant === "d").length / 8000;
  assert.ok(Math.abs(share - 0.75) < 0.03, `${share}`);
  assert.ok(Math.abs(requests.at(-1)!.arrivalMicros / 1e6 - 160) < 12, "50 a second");
  assert.ok(requests.every(({ promptTokens }) => promptTokens >= 10 && promptTokens <= 200));
});

test("a group's prefix is the same for all of it, and counts as part of the prompt", () => {
  const [first, second] = generate({ ...BASE, clients: [{ ...CLIENT, prefix_group: "g", prefix_length: 64 }] });
  assert.deepEqual(first?.blockIds, second?.blockIds);
  assert.equal(first?.blockIds?.length, 4);
  assert.ok(first !== undefined && first.promptTokens >= 74);
});

test("rounds follow each other after their think time, and accumulate where the file asks for it", () => {
  const multi_turn = { max_rounds: 3, think_time_us: 9000, context_growth: "accumulate" };
  const requests = generate({ ...BASE, num_requests: 30, clients: [{ ...CLIENT, reasoning: { multi_turn } }] });
  for (let i = 0; i < 30; i += 3) {
    const turns = requests.slice(i, i + 3);
    assert.equal(new Set(turns.map(({ session }) => session)).size, 1);
    assert.deepEqual(
      turns.map(({ thinkMicros }) => thinkMicros),
      [undefined, 9000, 9000],
    );
    assert.ok(turns[1]!.promptTokens > turns[0]!.promptTokens + 7);
    const whole = Math.floor(turns[0]!.promptTokens / 16);
    assert.deepEqual(turns[1]!.blockIds?.slice(0, whole), turns[0]!.blockIds?.slice(0, whole));
  }
});

test("windows have rates of their own, users are as many as there are, and clients have patience", () => {
  const lifecycle = { windows: [{ start_us: 5e6, end_us: 6e6, trace_rate: 200 }] };
  const windowed = generate({ ...BASE, num_requests: 0, horizon: 2e7, clients: [{ ...CLIENT, lifecycle }] });
  assert.ok(windowed.length > 150 && windowed.length < 250, `${windowed.length}`);
  assert.ok(windowed.every(({ arrivalMicros }) => arrivalMicros >= 5e6 && arrivalMicros <= 6e6));
  const users = generate({ ...BASE, num_requests: 40, clients: [{ ...CLIENT, concurrency: 4, think_time_us: 10 }] });
  assert.equal(users.length, 40);
  assert.equal(new Set(users.map(({ session }) => session)).size, 4);
  assert.equal(users[0]?.timeoutMicros, 300_000_000);
  assert.equal(generate({ ...BASE, clients: [{ ...CLIENT, timeout: 0 }] })[0]?.timeoutMicros, undefined);
});

test("version 1 names two classes otherwise", () => {
  const classOf = (version: string | number, slo_class: string) =>
    generate({ ...BASE, version, num_requests: 1, clients: [{ ...CLIENT, slo_class }] })[0]?.sloClass;
  assert.deepEqual(
    [classOf("1", "realtime"), classOf(1, "interactive"), classOf("1", "batch"), classOf("2", "realtime")],
    ["critical", "standard", "batch", "realtime"],
  );
});

test("what is wrong or unknown is refused with its path", () => {
  const wrong: [object, RegExp][] = [
    [{ ...BASE, version: "3" }, /version: expected version: "1" or "2"/],
    [
      { ...BASE, clients: [{ ...CLIENT, multimodal: {} }] },
      /clients\[0\]: unknown key multimodal; accepted: id, tenant_id/,
    ],
    [{ ...BASE, num_requests: 0 }, /num_requests: expected num_requests or horizon/],
    [
      { ...BASE, clients: [{ ...CLIENT, arrival: { process: "x" } }] },
      /clients\[0\]\.arrival\.process: expected poisson/,
    ],
    [
      { ...BASE, clients: [{ ...CLIENT, output_distribution: { type: "exponential" } }] },
      /exponential: expected params\.mean/,
    ],
  ];
  for (const [spec, message] of wrong)
    assert.throws(
      () => generate(spec),
      (error) => error instanceof ImportError && message.test(error.message),
    );
});

test("inference_perf stands for a client a stage and user, who share system prompts at the stages' rates", () => {
  const shared_prefix = {
    num_unique_system_prompts: 3,
    num_users_per_system_prompt: 5,
    system_prompt_len: 96,
    question_len: 40,
    output_len: 9,
  };
  const stages = [
    { rate: 8, duration: 100 },
    { rate: 20, duration: 50 },
  ];
  const spec = { version: "1", seed: 42, inference_perf: { stages, shared_prefix } };
  const requests = generate(spec);
  const inFirst = requests.filter(({ arrivalMicros }) => arrivalMicros < 100e6).length;
  // 800 and 1,000 expected; six standard deviations.
  assert.ok(Math.abs(inFirst - 800) < 170 && Math.abs(requests.length - inFirst - 1_000) < 190, `${inFirst}`);
  assert.ok(requests.every(({ promptTokens, outputTokens }) => promptTokens === 136 && outputTokens === 9));
  assert.equal(new Set(requests.map(({ blockIds }) => blockIds![5])).size, 3, "system prompts");
  assert.equal(new Set(requests.map(({ tenant }) => tenant)).size, 3);
  assert.ok(requests.at(-1)!.arrivalMicros < 150e6);
  const chats = { ...shared_prefix, enable_multi_turn_chat: true };
  const turns = generate({ ...spec, inference_perf: { stages, shared_prefix: chats } });
  assert.equal(turns.length, 1_800, "exactly the stages' requests");
  assert.equal(new Set(turns.map(({ session }) => session)).size, 30, "one conversation a stage and user");
  assert.deepEqual([...new Set(turns.map(({ thinkMicros }) => thinkMicros))], [undefined, 1_875_000, 750_000]);
  const wrong = { ...spec, clients: [CLIENT] };
  assert.throws(() => generate(wrong), /clients: expected no clients beside inference_perf/);
  const unknown = { ...spec, inference_perf: { stages, shared_prefix: { ...shared_prefix, question: 1 } } };
  assert.throws(() => generate(unknown), /inference_perf\.shared_prefix: unknown key question; accepted: num_unique/);
});
