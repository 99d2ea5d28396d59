import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createAdmission } from "#core/admission/create.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { simulate } from "#sim/simulate.ts";
import { tenantFigures } from "#sim/result/metrics.ts";
import { Simulation } from "#sim/simulation.ts";
import { NO_LATENCY, type SimulationOptions } from "#sim/setting/simulation-options.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { cluster, engines, listed, ROUND_ROBIN, WEIGHTED } from "./cluster.ts";

/** Every step takes a millisecond. */
const STEP = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

function run(arrivals: readonly ListedArrival[], overrides: Partial<SimulationOptions> = {}, count = 1) {
  const specs = engines(count, { stepTime: STEP });
  return simulate(cluster(ROUND_ROBIN, specs, { arrivals: new ListedArrivals(arrivals), ...overrides }));
}

test("latencies on the way are in the client's times, at the place where they arise", () => {
  const { outcomes } = run([listed(0, 500, 10, 3)], {
    latency: {
      admissionMicros: 7,
      routingMicros: 11,
      requestMicros: 13,
      answerMicros: 17,
      perOutputTokenMicros: 100,
      afterLastTokenMicros: 1000,
    },
  });
  assert.equal(outcomes.queueDelay[0], 7 + 11 + 13);
  assert.equal(outcomes.ttft[0], 31 + 1000 + 17 + 100);
  assert.equal(outcomes.e2e[0], 31 + 3 * 1000 + 17 + 3 * 100 + 1000);
});

test("a decision at t sees what engines did before t, and nothing of t itself", () => {
  const seen: (number | undefined)[][] = [];
  const watch = (input: Input) => {
    if (input.kind === "load-observed" && input.at >= 1) seen.push([input.load.running, input.load.waiting]);
  };
  // The first request runs from 0 to 3000; the others look one microsecond before its end, at it, and after it.
  const arrivals = [listed(0, 0, 10, 3), listed(1, 2999, 10, 1), listed(2, 3000, 10, 1), listed(3, 3001, 10, 1)];
  run(arrivals, { signals: { mode: "oracle" }, observe: watch });
  assert.deepEqual(
    seen.filter((_, i) => i % 2 === 0),
    [
      [1, 0],
      [1, 1],
      [2, 0],
    ],
    "at 3000 the first is still there and the second waits; at 3001 the second and the third have taken its place",
  );
});

test("gauges at decisions are read by the first decision after each interval, those of all endpoints together", () => {
  const read = new Map<number, string[]>();
  const watch = (input: Input) => {
    if (input.kind === "load-observed") read.set(input.at, [...(read.get(input.at) ?? []), input.endpoint]);
  };
  const arrivals = Array.from({ length: 20 }, (_, i) => listed(i, i * 10_000, 10, 1));
  run(arrivals, { signals: { mode: "at-decision", intervalMicros: 45_000 }, observe: watch }, 2);
  assert.deepEqual([...read.keys()], [0, 50_000, 100_000, 150_000]);
  for (const endpoints of read.values()) assert.deepEqual(endpoints, ["engine_000", "engine_001"]);
});

test("scrapes are taken at their interval, arrive a delay later, and are lost as configured", () => {
  const heard = new Map<string, number[]>();
  const watch = (input: Input) => {
    if (input.kind === "load-observed") heard.set(input.endpoint, [...(heard.get(input.endpoint) ?? []), input.at]);
  };
  const arrivals = [listed(0, 0, 10, 2000)];
  run(
    arrivals,
    {
      signals: { mode: "scrape", intervalMicros: 100_000, phase: "spread", delayMicros: 300, lossShare: 0 },
      observe: watch,
    },
    4,
  );
  assert.deepEqual(heard.get("engine_000")?.slice(0, 3), [300, 100_300, 200_300]);
  assert.deepEqual(heard.get("engine_001")?.slice(0, 2), [50_300, 150_300]);
  const whole = [...heard.values()].reduce((sum, times) => sum + times.length, 0);
  heard.clear();
  run(
    arrivals,
    {
      signals: { mode: "scrape", intervalMicros: 100_000, phase: "together", delayMicros: 300, lossShare: 0.5 },
      observe: watch,
    },
    4,
  );
  const left = [...heard.values()].reduce((sum, times) => sum + times.length, 0);
  assert.ok(left > 0.25 * whole && left < 0.75 * whole, `${left} of ${whole}`);
});

test("answers to one prompt are made side by side: as long as one of them, each with a place in the batch", () => {
  const one = listed(0, 0, 40, 4);
  const three = { ...one, route: { ...one.route, sequences: 3 } };
  const finished: (number | undefined)[] = [];
  let most = 0;
  const observe = (input: Input) => {
    if (input.kind === "request-finished") finished.push(input.outputTokens);
    if (input.kind === "load-observed") most = Math.max(most, input.load.running ?? 0);
  };
  const signals = { mode: "scrape", intervalMicros: 500, phase: "together", delayMicros: 0, lossShare: 0 } as const;
  const { outcomes, requests } = run([three], { signals, observe });
  assert.deepEqual([outcomes.ttft[0], outcomes.e2e[0], outcomes.outputTokens[0]], [1000, 4000, 4]);
  assert.deepEqual([finished, most, requests.completed], [[12], 3, 1]);
  assert.equal(tenantFigures(outcomes)[0]!.outputTokens, 12);
  const perDecode = { stepTime: { ...STEP, perDecodeMicros: 100 } };
  const specs = engines(1, perDecode);
  const slow = simulate(cluster(ROUND_ROBIN, specs, { arrivals: new ListedArrivals([three]) }));
  assert.equal(slow.outcomes.e2e[0], 1000 + 3 * 1300);
  const gone = { ...three, deadlineAt: 2500 };
  const left = run([gone, listed(1, 3000, 10, 1)], { signals });
  assert.deepEqual([left.outcomes.statusOf(0), left.outcomes.statusOf(1)], ["timed-out", "completed"]);
});

/** Prompts of 32 and 64 tokens with an answer of three tokens each, where a step has room for 32. */
function listOf(more: Partial<WorkloadRequest> = {}, overrides: Partial<SimulationOptions> = {}) {
  const lengths = { index: 0, arrivalMicros: 0, promptTokens: 96, outputTokens: 6, sequences: 2 };
  const options = { seed: 1, blockTokens: 16, timeoutMicros: Infinity, timeScale: 1, rateScale: 1 };
  const prompts = { ...LENGTHS_ONLY, ...lengths, tokensByPrompt: [32, 64], ...more };
  const arrivals = new WorkloadArrivals([prompts], options);
  const specs = engines(1, { stepTime: STEP, batchTokensMax: 32, modelTokensMax: 100 });
  return simulate(cluster(ROUND_ROBIN, specs, { arrivals, ...overrides }));
}

test("of several prompts each is as long as it was, and the request ends with its last answer", () => {
  const ends: Input[] = [];
  const observe = (input: Input) => void (input.kind === "request-finished" && ends.push(input));
  const { outcomes } = listOf({}, { observe });
  // The second one's tokens are computed in the steps two to four, beside the first one's answer.
  assert.deepEqual([outcomes.ttft[0], outcomes.e2e[0]], [1000, 6000]);
  const counts = { promptTokens: 96, cachedTokens: 0, outputTokens: 6 };
  assert.deepEqual(ends, [{ kind: "request-finished", at: 6000, requestId: "request_0", outcome: "ok", ...counts }]);
  // Half of the answers are to each; the later ones of a prompt find its blocks in the cache.
  assert.equal(listOf({ sequences: 4, outputTokens: 12 }).outcomes.e2e[0], 7000);
  const unknown = listOf({ tokensByPrompt: undefined }).outcomes;
  assert.deepEqual([unknown.ttft[0], unknown.e2e[0]], [3000, 6000]);
});

test("a client that gives up while the last answer is made has none of its request", () => {
  const { outcomes, requests } = listOf({ timeoutMicros: 4500 });
  assert.deepEqual([outcomes.statusOf(0), requests.completed], ["timed-out", 0]);
});

test("what can never be served is reported, and the rest goes on", () => {
  const impatient = { ...listed(3, 30, 10, 100), deadlineAt: 50_000 };
  const declared = listed(4, 40, 10, 5);
  const capped = { ...declared, route: { ...declared.route, outputTokensMax: 999_999 } };
  const arrivals = [listed(0, 0, 9_000, 5), listed(1, 10, 8_000, 500), listed(2, 20, 10, 5), impatient, capped];
  const specs = engines(1, { stepTime: STEP, kvBlocks: 401, modelTokensMax: 8192 });
  const { requests, outcomes } = simulate(cluster(WEIGHTED, specs, { arrivals: new ListedArrivals(arrivals) }));
  assert.deepEqual(
    outcomes.ids.map((_, row) => outcomes.statusOf(row)),
    ["too-long", "never-fits", "completed", "timed-out", "too-long"],
  );
  assert.equal(requests.completed, 1);
});

test("an endpoint that leaves ends what it has and gets nothing new; one that joins takes its part; a cordoned one none", () => {
  const arrivals = Array.from({ length: 40 }, (_, i) => listed(i, i * 1000, 10, i < 20 ? 50 : 3));
  const specs = engines(3, { stepTime: STEP, sequencesMax: 4 });
  const [first, second, third] = specs;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const placed: string[] = [];
  const { requests, outcomes, endpoints } = simulate(
    cluster(ROUND_ROBIN, [first, second], {
      arrivals: new ListedArrivals(arrivals),
      fleetEvents: [
        { kind: "endpoint-left", at: 15_500, endpoint: first.endpoint.id },
        { kind: "endpoint-joined", at: 25_500, endpoint: third.endpoint },
        { kind: "endpoint-cordoned", at: 30_500, endpoint: second.endpoint.id },
      ],
      observe: (_input: Input, decision: Decision | undefined) => {
        if (decision?.kind === "routed") placed.push(`${decision.at} ${decision.endpoint}`);
      },
    }),
  );
  assert.equal(requests.completed, 40, "what was aboard was finished");
  assert.deepEqual(new Set(outcomes.attempts), new Set([1]));
  const after = (at: number) =>
    placed.filter((line) => Number(line.split(" ")[0]) > at).map((line) => line.split(" ")[1]);
  assert.ok(!after(15_500).includes(first.endpoint.id));
  assert.deepEqual([...new Set(after(30_500))], [third.endpoint.id]);
  assert.equal(endpoints.length, 3);
});

test("turns follow the end of the one before, and find its prompt and its answer in the cache", () => {
  const turn = (index: number, promptTokens: number): WorkloadRequest => ({
    ...LENGTHS_ONLY,
    index,
    arrivalMicros: 1000,
    session: "s",
    turn: index,
    thinkMicros: index === 0 ? undefined : 5_000,
    promptTokens,
    outputTokens: 65,
    blockIds: Float64Array.from({ length: Math.ceil(promptTokens / 16) }, (_, i) => 77 + i),
    blockTokens: 16,
  });
  const workload = [turn(0, 160), turn(1, 320), turn(2, 480)];
  const arrivals = new WorkloadArrivals(workload, {
    seed: 1,
    blockTokens: 16,
    timeoutMicros: Infinity,
    timeScale: 1,
    rateScale: 1,
  });
  const { outcomes, stranded } = simulate(cluster(WEIGHTED, engines(1, { stepTime: STEP }), { arrivals }));
  assert.equal(stranded, 0);
  for (const row of [1, 2]) {
    assert.equal(outcomes.arrivalAt[row], outcomes.arrivalAt[row - 1]! + outcomes.e2e[row - 1]! + 5_000);
  }
  // 160 + 65 tokens, the last of which is not stored: 14 full blocks.
  assert.deepEqual([...outcomes.cachedTokens], [0, 224, 384]);
  assert.deepEqual([...outcomes.expectedTokens], [0, 160, 320], "the router knows of prompts");
});

test("admission refuses and delays, and every request is accounted for", () => {
  const arrivals = Array.from({ length: 30 }, (_, i) => listed(i, i * 100, 10, 20));
  const common = { type: "hard-cap", requestsMax: 2, retryMicros: 1000 } as const;
  const rejecting = run(arrivals, { admission: createAdmission({ ...common, onLimit: "reject" }) });
  assert.ok(rejecting.requests.rejected > 20);
  assert.deepEqual(rejecting.rejections, { "hard-cap": rejecting.requests.rejected });
  const delaying = run(arrivals, { admission: createAdmission({ ...common, onLimit: "delay" }) });
  assert.equal(delaying.requests.completed, 30);
  assert.ok(delaying.delays > 30);
  assert.ok((delaying.metrics.queueDelayMicros["all"]?.max ?? 0) > 100_000);
});

test("a long answer's progress is an input of the router, and nothing after its end", () => {
  const heard: (readonly [number, number])[] = [];
  const observe = (input: Input) => {
    if (input.kind === "progress") heard.push([input.at, input.outputTokens]);
  };
  run([listed(0, 0, 10, 350)], { progressMicros: 100_000, observe });
  // The first token is there at 1 ms; a look at 101 ms sees what was there before.
  assert.deepEqual(heard, [
    [101_000, 100],
    [201_000, 200],
    [301_000, 300],
  ]);
});

test("a forced request goes where it is sent, and others as they like", () => {
  const arrivals = Array.from({ length: 12 }, (_, i) => listed(i, i * 10_000, 10, 3));
  const { outcomes } = run(arrivals, { forced: new Map([["request_5", "engine_000"]]) }, 3);
  assert.equal(outcomes.endpoint[5], 0);
  assert.deepEqual([...outcomes.endpoint.subarray(0, 5)], [0, 1, 2, 0, 1]);
});

test("at the horizon the clock stops and what is open stays open", () => {
  const { requests, endedAt } = run([listed(0, 0, 10, 5), listed(1, 0, 10, 5000)], { horizonMicros: 100_000 });
  assert.deepEqual([requests.completed, requests.open, endedAt], [1, 1, 100_000]);
});

test("copies of caches lag by their delay; without one they are the caches", () => {
  const same = (number: number, at: number) => ({
    ...listed(number, at, 160, 2),
    route: { ...listed(0, 0, 160, 2).route, id: `request_${number}` },
  });
  const arrivals = [same(0, 0), same(1, 60_000), same(2, 120_000), same(3, 180_000)];
  const expected = (delayMicros: number) => [
    ...run(arrivals, { prefixes: { kind: "engine-caches", delayMicros } }).outcomes.expectedTokens,
  ];
  assert.deepEqual(expected(0), [0, 144, 144, 144]);
  assert.deepEqual(expected(100_000), [0, 0, 144, 144], "the first copy after 100 ms is made at 120 ms");
});

test("whatever arrives ends once, and time only goes forward", () => {
  const request = fc.record({
    gap: fc.integer({ min: 0, max: 30_000 }),
    prompt: fc.integer({ min: 1, max: 700 }),
    output: fc.integer({ min: 1, max: 60 }),
    patience: fc.constantFrom(Infinity, 20_000, 200_000),
  });
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 40 }), fc.integer({ min: 1, max: 3 }), (given, count) => {
      let at = 0;
      const arrivals = given.map(({ gap, prompt, output, patience }, i) => ({
        ...listed(i, (at += gap), prompt, output),
        deadlineAt: at + patience,
      }));
      let clock = 0;
      const options = cluster(WEIGHTED, engines(count, { kvBlocks: 60, modelTokensMax: 2000 }), {
        arrivals: new ListedArrivals(arrivals),
        latency: { ...NO_LATENCY, requestMicros: 40, answerMicros: 60 },
        observe: (input) => {
          assert.ok(input.at >= clock);
          clock = input.at;
        },
      });
      const simulation = new Simulation(options);
      simulation.run();
      assert.equal(simulation.open, 0);
      assert.equal(simulation.outcomes.length, given.length);
      assert.equal(simulation.outcomes.status.indexOf(0), -1);
    }),
    { numRuns: 60 },
  );
});
