import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { DisaggregationSpec, ProfileSpec } from "#core/plugin/spec.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { randomFor } from "#core/base/random.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import { TRANSFER_DEFAULTS, transferMicros } from "#sim/setting/transfer-options.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import type { HandoffFigures } from "#sim/handoff/handoff-desk.ts";
import { simulate } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const SECOND = MICROS_PER_SECOND;
/** 10 ms a step and 0.1 ms a prompt token. */
const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 100, perDecodeMicros: 0 } as const;
/** 16 tokens of 1,000 bytes at 1 MB/s: a millisecond a token, and one before it. */
const TRANSFERS = { ...TRANSFER_DEFAULTS, latencyMicros: 1_000, bytesPerSecond: 1e6 };
const ROLE = "llm-d.ai/role";

function shared(more: Partial<DisaggregationSpec> = {}): ProfileSpec {
  const { disaggregation } = loadProfile("llm-d-pd").spec;
  assert.ok(disaggregation !== undefined);
  const rules = { ...disaggregation, prefill: ROUND_ROBIN, colocateBelowTokens: 0, ...more };
  return { ...ROUND_ROBIN, disaggregation: rules };
}

/** The first ones compute prompts, the others answer. */
function fleet(prefill: number, decode: number, config: Partial<EngineConfig> = {}): EngineSpec[] {
  return engines(prefill + decode, { stepTime: STEP, kvBytesPerToken: 1_000, ...config }).map((spec, i) => {
    const labels = { [ROLE]: i < prefill ? "prefill" : "decode" };
    return { ...spec, endpoint: { ...spec.endpoint, labels } };
  });
}

function play(
  arrivals: readonly ListedArrival[],
  specs: readonly EngineSpec[],
  overrides: Partial<SimulationOptions> = {},
  profile = shared(),
) {
  const inputs: Input[] = [];
  const decisions: Decision[] = [];
  const observe = (input: Input, decision: Decision | undefined) => {
    if (input.kind !== "load-observed") inputs.push(input);
    if (decision !== undefined) decisions.push(decision);
  };
  const options = cluster(profile, specs, {
    arrivals: new ListedArrivals(arrivals),
    transfers: TRANSFERS,
    observe,
    ...overrides,
  });
  const result = simulate(options);
  const handoffs = result.stages.find(({ name }) => name === "handoffs")?.figures as HandoffFigures | undefined;
  return { ...result, handoffs, inputs, decisions };
}

test("one request: its prompt here, its blocks across, its answer there, each at its time", () => {
  const { outcomes, inputs, decisions, handoffs } = play([listed(0, 0, 64, 3)], fleet(1, 1), {
    latency: {
      ...cluster(ROUND_ROBIN, [], { arrivals: new ListedArrivals([]) }).latency,
      requestMicros: 100,
      answerMicros: 10,
    },
  });
  const [decision] = decisions;
  assert.ok(decision?.kind === "routed");
  assert.deepEqual([decision.prefill?.endpoint, decision.endpoint], ["engine_000", "engine_001"]);
  // On its way 100, the prompt 10,000 + 64 * 100, back 10.
  const finished = inputs.find(({ kind }) => kind === "prefill-finished");
  assert.deepEqual(finished, { kind: "prefill-finished", at: 16_510, requestId: "request_0", cachedTokens: 0 });
  // On its way 100, 1,000 + 64 * 1,000 across, a step of one prompt token 10,100, back 10.
  assert.equal(outcomes.ttft[0], 16_510 + 100 + 65_000 + 10_100 + 10);
  assert.equal(inputs.find(({ kind }) => kind === "first-token")?.at, outcomes.ttft[0]);
  assert.equal(outcomes.e2e[0], outcomes.ttft[0] + 2 * 10_000);
  assert.deepEqual([outcomes.prefillEndpoint[0], outcomes.endpoint[0]], [0, 1]);
  assert.deepEqual(handoffs, {
    shared: 1,
    colocated: {},
    transfers: 1,
    failed: 0,
    expired: 0,
    bytes: 64_000,
    transferMicrosMean: 65_000,
    heldMicrosMean: 110,
  });
});

test("both at once: no way through the gateway between the stages", () => {
  const latency = { requestMicros: 100, answerMicros: 10 };
  const run = (profile: ProfileSpec) =>
    play([listed(0, 0, 64, 3)], fleet(1, 1), { latency: { ...NO_WAY, ...latency } }, profile).outcomes.ttft[0]!;
  assert.equal(run(shared()) - run(shared({ handoff: "together" })), 110);
});

const NO_WAY = {
  admissionMicros: 0,
  routingMicros: 0,
  requestMicros: 0,
  answerMicros: 0,
  perOutputTokenMicros: 0,
  afterLastTokenMicros: 0,
};

test("what the decode engine has cached is not fetched again, and a prompt it has is not shared", () => {
  const first = listed(0, 0, 64, 3);
  const again = { ...first, route: { ...first.route, id: "request_1" }, arrivalAt: SECOND };
  const longer = listed(0, 2 * SECOND, 96, 3);
  const third = { ...longer, route: { ...longer.route, id: "request_2" } };
  const { handoffs } = play([first, again, third], fleet(1, 1), {}, shared({ colocateBelowTokens: 32 }));
  // Of 96 tokens 64 are there; all of them came.
  assert.deepEqual([handoffs?.shared, handoffs?.colocated, handoffs?.bytes], [2, { cached: 1 }, 64_000 + 32_000]);
});

test("a transfer takes latency plus bytes over bandwidth, whole microseconds, at least one; with contention its share", () => {
  const options = { ...TRANSFER_DEFAULTS, latencyMicros: 0, bytesPerSecond: 10e9 };
  // BLIS's: 10 blocks of 16 tokens of 512 bytes, alone and as one of two.
  assert.equal(transferMicros(options, 81_920, 1), 9);
  assert.equal(transferMicros(options, 81_920, 2), 9);
  assert.equal(transferMicros({ ...options, contention: true }, 81_920, 1), 9);
  assert.equal(transferMicros({ ...options, contention: true }, 81_920, 2), 17);
  assert.equal(transferMicros({ ...options, latencyMicros: 50 }, 81_920, 1), 59);
  assert.equal(transferMicros(options, 0, 1), 1);
});

test("the prefill engine holds blocks until they are there: with room for one prompt, the next one waits for the transfer", () => {
  // Five blocks: a prompt of 64 tokens takes four.
  const specs = fleet(1, 1, { kvBlocks: 9, modelTokensMax: 100 }).map((spec, i) =>
    i === 0 ? { ...spec, config: { ...spec.config, kvBlocks: 6 } } : spec,
  );
  const { inputs, requests } = play([listed(0, 0, 64, 2), listed(1, 0, 64, 2)], specs);
  const finished = inputs.flatMap((input) => (input.kind === "prefill-finished" ? [input.at] : []));
  // The first prompt 16.4 ms, its transfer 65 ms, then the second one.
  assert.deepEqual(finished, [16_400, 16_400 + 65_000 + 16_400]);
  assert.equal(requests.completed, 2);
});

test("no deadlock where the decode engine has room for one answer at a time, and nothing is left anywhere", () => {
  const arrivals = Array.from({ length: 40 }, (_, i) => listed(i, i * 2_000, 64, 20));
  const specs = fleet(2, 1, { kvBlocks: 9, modelTokensMax: 100 });
  const { requests, handoffs } = play(arrivals, specs);
  assert.equal(requests.completed, 40);
  assert.deepEqual([handoffs?.transfers, handoffs?.failed, handoffs?.expired], [40, 0, 0]);
});

const happens = (kind: EngineEvent["kind"], at: number, engine: number): EngineEvent => ({
  kind,
  at,
  endpoint: `engine_00${engine}`,
});
const kindsOf = (inputs: readonly Input[]) =>
  inputs.map(({ kind }) => kind).filter((kind) => /^(request|prefill|attempt|transfer|first)/.test(kind));

test("every single fault of either stage: the request is answered all the same", () => {
  // It comes at 1 ms; the prompt takes until 17.4 ms, the transfer until 82.4, the first token comes at 92.5.
  const cases: readonly (readonly [string, EngineEvent, readonly string[]])[] = [
    ["prefill", happens("engine-killed", 8_000, 0), ["prefill-failed", "request-retried", "prefill-finished"]],
    ["prefill", happens("engine-refusing", 0, 0), ["prefill-failed", "request-retried", "prefill-finished"]],
    ["prefill", happens("engine-draining", 0, 0), ["prefill-failed", "request-retried", "prefill-finished"]],
    ["transfer", happens("engine-killed", 40_000, 0), ["prefill-finished", "transfer-failed", "request-retried"]],
    ["transfer", happens("engine-vanished", 40_000, 0), ["prefill-finished", "transfer-failed", "request-retried"]],
    [
      "decode",
      happens("engine-killed", 8_000, 2),
      ["prefill-finished", "attempt-failed", "request-retried", "prefill-finished"],
    ],
    [
      "decode",
      happens("engine-killed", 40_000, 2),
      ["prefill-finished", "attempt-failed", "request-retried", "prefill-finished"],
    ],
    [
      "decode",
      happens("engine-refusing", 0, 2),
      ["prefill-finished", "attempt-failed", "request-retried", "prefill-finished"],
    ],
    ["answer", happens("engine-killed", 105_000, 2), ["prefill-finished", "first-token", "request-continued"]],
    ["connections", happens("answers-cut", 8_000, 0), ["prefill-failed", "request-retried", "prefill-finished"]],
  ];
  for (const [what, fault, expected] of cases) {
    const { requests, inputs, outcomes } = play([listed(0, 1_000, 64, 5)], fleet(2, 2), {
      fleetEvents: [fault],
      rules: PATH_RULES,
    });
    const name = `${what}: ${fault.kind} at ${fault.at}`;
    assert.equal(requests.completed, 1, name);
    assert.equal(outcomes.outputTokens[0], 5, name);
    assert.deepEqual(kindsOf(inputs).slice(1, 1 + expected.length), expected, name);
  }
});

test("with recompute the engine that answers computes what did not come", () => {
  const { requests, inputs, handoffs } = play([listed(0, 0, 64, 5)], fleet(2, 2), {
    fleetEvents: [happens("engine-killed", 40_000, 0)],
    rules: PATH_RULES,
    transfers: { ...TRANSFERS, failurePolicy: "recompute" },
  });
  assert.equal(requests.completed, 1);
  assert.deepEqual(kindsOf(inputs), ["request-arrived", "prefill-finished", "first-token", "request-finished"]);
  assert.equal(handoffs?.failed, 1);
});

test("random traffic with faults and give-ups: every block has one holder, every transfer an end, the same bytes twice", () => {
  const digests = [1, 2, 3, 4, 5, 6].map((seed) => {
    const random = randomFor(seed, 3);
    const arrivals = Array.from({ length: 150 }, (_, i) => {
      const asked = listed(random.below(40), i * random.below(12_000), 16 + random.below(200), 1 + random.below(30));
      const deadlineAt = random.below(10) === 0 ? asked.arrivalAt + random.below(300_000) : Infinity;
      return { ...asked, route: { ...asked.route, id: `request_${i}` }, deadlineAt };
    }).sort((a, b) => a.arrivalAt - b.arrivalAt);
    const events = (["engine-killed", "engine-hung", "engine-killed", "answers-cut"] as const).flatMap((kind, i) => [
      happens(kind, 100_000 + 200_000 * i, i),
      happens("engine-started", 190_000 + 200_000 * i, i),
    ]);
    const run = () =>
      play(
        arrivals,
        fleet(2, 3, { kvBlocks: 40, modelTokensMax: 300 }),
        { fleetEvents: events, rules: PATH_RULES, transfers: { ...TRANSFERS, bytesPerSecond: 2e7, contention: true } },
        shared({ colocateBelowTokens: 48, handoff: seed % 2 === 0 ? "together" : "prefill-first" }),
      );
    const { requests, handoffs, inputs } = run();
    const { open, lost, cut } = requests;
    assert.deepEqual({ open, lost, cut }, { open: 0, lost: 0, cut: 0 }, `seed ${seed}`);
    assert.ok((handoffs?.shared ?? 0) > 50, `seed ${seed}: ${JSON.stringify(handoffs)}`);
    assert.deepEqual(run().inputs, inputs, `seed ${seed}`);
    return handoffs?.failed ?? 0;
  });
  assert.ok(
    digests.some((failed) => failed > 0),
    "some transfers fail",
  );
});

test("routers that know of each other at once share prompts out as one, and nothing of a peer's is left", () => {
  const arrivals = Array.from({ length: 120 }, (_, i) => listed(i, i * 3_000, 32 + ((i * 37) % 150), 1 + (i % 20)));
  const run = (count: number) => {
    const options = { routers: { count, shareLagMicros: 0, spread: "round-robin" as const } };
    const specs = fleet(3, 3, { kvBlocks: 60, modelTokensMax: 300 });
    return play(arrivals, specs, options, LEAST_LOADED).outcomes;
  };
  const [one, three] = [run(1), run(3)];
  assert.deepEqual(three.prefillEndpoint, one.prefillEndpoint);
  assert.deepEqual(three.endpoint, one.endpoint);
  assert.ok(new Set(one.prefillEndpoint).size === 3);
});

/** By what is in flight, which is what routers have to know of each other. */
const STAGE = {
  filters: [],
  scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};
const LEAST_LOADED: ProfileSpec = { ...shared({ prefill: STAGE }), ...STAGE };
