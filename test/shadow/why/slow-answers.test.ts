import assert from "node:assert/strict";
import { test } from "node:test";
import { finished } from "#core/base/finished.ts";
import { pdSpec, withRoles } from "#cli/flag/architecture-flags.ts";
import { namedCauses } from "#shadow/why/named-causes.ts";
import { TRANSFER_DEFAULTS } from "#sim/setting/transfer-options.ts";
import {
  type Candidate,
  requestIndexOf,
  runCandidate,
  type Setting,
  simulationOf,
} from "#shadow/candidate/candidate.ts";
import type { SlowEngine } from "#shadow/why/engine-speeds.ts";
import { Simulation } from "#sim/simulation.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { type SlowAnswer, slowAnswers, type SlowQuestion } from "#shadow/why/slow-answers.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const SETTING: Setting = { ...caseSetting(caseWorkload()), rateScale: 2 };
/** Enough for an engine to be fitted to two endpoints of three. */
const LONGER: Setting = { ...caseSetting(caseWorkload(150)), rateScale: 2 };
const GNOMON = namedProfile("gnomon");

/** What a recorder would have seen of it. */
function observedOf(setting: Setting, inForce: Candidate, factor = 1): Observed[] {
  const outcome = runCandidate(setting, inForce);
  return [...setting.workload].map(({ index, outputTokens }) => ({
    endpoint: setting.endpoints[outcome.endpoint[index]!]!.id,
    ok: true,
    ttftMicros: factor * outcome.ttftMicros[index]!,
    e2eMicros: factor * outcome.e2eMicros[index]!,
    outputTokens,
    cachedTokens: outcome.cachedTokens[index]!,
    attempts: 1,
    retriedMicros: 0,
  }));
}

function answerOf(question: Partial<SlowQuestion>): SlowAnswer {
  const steps = slowAnswers({
    setting: SETTING,
    inForce: GNOMON,
    otherwise: GNOMON,
    observed: undefined,
    isIndexWrong: true,
    figure: { time: "ttft", of: "mean" },
    worldsMax: 100,
    replicas: 0,
    seed: 1,
    ...question,
  });
  return finished(steps);
}

const sumOf = ({ parts }: SlowAnswer) => parts.reduce((sum, { micros }) => sum + micros, 0);
const partOf = ({ parts }: SlowAnswer, part: string) => parts.find((one) => one.part === part);
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) <= 1e-6 * Math.abs(b), `${a} and ${b}`);

for (const [time, kind] of [
  ["ttft", "mean"],
  ["ttft", 99],
  ["e2e", 50],
] as const) {
  test(`parts add up to what was observed: ${kind} of ${time}, under a policy in force that is another`, () => {
    const inForce = namedProfile("round-robin");
    const observed = observedOf(SETTING, inForce, 1.1);
    const answer = answerOf({ inForce, observed, figure: { time, of: kind } });
    const seen = Float64Array.from(observed, (one) => (time === "ttft" ? one.ttftMicros : one.e2eMicros)).sort();
    const rank = (Number(kind) / 100) * (seen.length - 1);
    const [low, high] = [seen[Math.floor(rank)]!, seen[Math.ceil(rank)]!];
    near(
      sumOf(answer),
      kind === "mean" ? seen.reduce((sum, one) => sum + one, 0) / seen.length : low + (high - low) * (rank % 1),
    );
    near(answer.micros, sumOf(answer));
    assert.ok(answer.isExact);
  });
}

test("answers in one piece have no first token to explain: the others are explained, and those are counted", () => {
  const inForce = namedProfile("round-robin");
  const whole = observedOf(SETTING, inForce, 1.1);
  const observed = whole.map((one, i) => (i % 3 === 0 ? { ...one, ttftMicros: NaN } : one));
  const streams = observed.filter((one) => !Number.isNaN(one.ttftMicros));
  const answer = answerOf({ inForce, observed });
  assert.deepEqual([answer.requests, answer.inOnePiece], [streams.length, observed.length - streams.length]);
  near(sumOf(answer), streams.reduce((sum, one) => sum + one.ttftMicros, 0) / streams.length);
  near(answer.micros, sumOf(answer));
  const wholes = answerOf({ inForce, observed, figure: { time: "e2e", of: "mean" } });
  assert.deepEqual([wholes.requests, wholes.inOnePiece], [observed.length, 0]);
  const one = answerOf({ inForce, observed, requests: [0] });
  assert.deepEqual([one.requests, one.inOnePiece], [0, 1]);
});

test("parts add up where orders are drawn, too, and to what is simulated where nothing was observed", () => {
  const inForce = namedProfile("llm-d");
  const setting = { ...SETTING, engine: { ...SETTING.engine, kvBlocks: 80 } };
  const all = answerOf({ setting, inForce });
  const drawn = answerOf({ setting, inForce, worldsMax: 4 });
  assert.deepEqual([all.isExact, drawn.isExact], [true, false]);
  const { ttftMicros } = runCandidate(setting, inForce);
  near(sumOf(all), ttftMicros.reduce((sum, one) => sum + one, 0) / ttftMicros.length);
  near(sumOf(drawn), sumOf(all));
});

test("a simulation of what was simulated leaves nothing unexplained; an engine that is really slower does", () => {
  const exact = answerOf({ observed: observedOf(SETTING, GNOMON) });
  assert.ok(Math.abs(partOf(exact, "unexplained")!.micros) < 1e-6 * exact.micros);
  const slower = answerOf({ observed: observedOf(SETTING, GNOMON, 1.5) });
  assert.ok(partOf(slower, "unexplained")!.micros > 0.3 * slower.micros);
  // All engines alike: none is slower than the fleet.
  assert.deepEqual(slower.slowEngines, []);
});

test("one engine that is twice as slow is found, and by how much", () => {
  const residuals = {
    windowMicros: 1e12,
    windows: [[0], [Math.log(2)], [0]],
    levelError: 0,
    delayError: 0,
    prefillError: 0,
  };
  const inForce = namedProfile("round-robin");
  const observed = observedOf({ ...SETTING, residuals }, inForce);
  const answer = answerOf({ observed, inForce, otherwise: inForce });
  assert.equal(answer.parts[0]!.part, "engines");
  assert.deepEqual(
    answer.slowEngines.map(({ endpoint }) => endpoint),
    ["b"],
  );
  assert.ok(Math.abs(answer.slowEngines[0]!.factor - 2) < 0.1, String(answer.slowEngines[0]!.factor));
});

test("an engine that is off is fitted anew where that is allowed, and one that is right stays as it is", () => {
  const inForce = namedProfile("round-robin");
  const question = { observed: observedOf(SETTING, inForce), inForce, otherwise: inForce };
  const { stepTime } = SETTING.engine;
  assert.ok(stepTime.kind === "coefficients");
  const perPrefillTokenMicros = stepTime.perPrefillTokenMicros / 3;
  const setting = { ...SETTING, engine: { ...SETTING.engine, stepTime: { ...stepTime, perPrefillTokenMicros } } };
  const [given, own] = [answerOf({ ...question, setting }), answerOf({ ...question, setting, refittable: "times" })];
  assert.equal(given.refit, undefined);
  assert.deepEqual(own.refit?.endpoints, ["a", "b", "c"]);
  assert.ok(own.refit.after < 0.7 * own.refit.before, JSON.stringify(own.refit));
  const unexplained = (answer: SlowAnswer) => Math.abs(partOf(answer, "unexplained")!.micros) / answer.micros;
  assert.ok(unexplained(given) > 0.05 && unexplained(own) < 0.02, `${unexplained(given)} and ${unexplained(own)}`);
  assert.equal(answerOf({ ...question, refittable: "times" }).refit, undefined);
});

test("an engine that was fitted to a slow one, too, is fitted anew to the others alone", () => {
  const inForce = namedProfile("round-robin");
  const windows = [[0], [Math.log(2)], [0]];
  const residuals = { windowMicros: 1e12, windows, levelError: 0, delayError: 0, prefillError: 0 };
  const observed = observedOf({ ...LONGER, residuals }, inForce);
  const { stepTime } = LONGER.engine;
  assert.ok(stepTime.kind === "coefficients");
  const mixed = { ...stepTime, baseMicros: 1.3 * stepTime.baseMicros };
  const setting = { ...LONGER, engine: { ...LONGER.engine, stepTime: mixed } };
  const answer = answerOf({ setting, observed, inForce, otherwise: inForce, refittable: "times" });
  assert.deepEqual(answer.refit?.endpoints, ["a", "c"]);
  assert.deepEqual(
    answer.slowEngines.map(({ endpoint }) => endpoint),
    ["b"],
  );
  assert.ok(Math.abs(answer.slowEngines[0]!.factor - 2) < 0.2, String(answer.slowEngines[0]!.factor));
  assert.ok(Math.abs(partOf(answer, "unexplained")!.micros) < 0.03 * answer.micros);
});

test("one engine that is slow at prompts alone is found, and by how much", () => {
  const inForce = namedProfile("round-robin");
  const simulation = simulationOf(SETTING, inForce, 0);
  const { stepTime } = SETTING.engine;
  assert.ok(stepTime.kind === "coefficients");
  const slow = { ...stepTime, perPrefillTokenMicros: 3 * stepTime.perPrefillTokenMicros };
  const engines = simulation.engines.map((one, i) =>
    i === 1 ? { ...one, config: { ...one.config, stepTime: slow } } : one,
  );
  const run = new Simulation({ ...simulation, engines });
  run.run();
  const { outcomes } = run;
  const observed: Observed[] = [];
  for (let row = 0; row < outcomes.length; row++)
    observed[requestIndexOf(outcomes.ids[row]!)] = {
      endpoint: SETTING.endpoints[outcomes.endpoint[row]!]!.id,
      ok: true,
      ttftMicros: outcomes.ttft[row]!,
      e2eMicros: outcomes.e2e[row]!,
      outputTokens: outcomes.outputTokens[row]!,
      cachedTokens: outcomes.cachedTokens[row]!,
      attempts: 1,
      retriedMicros: 0,
    };
  const answer = answerOf({ observed, inForce, otherwise: inForce });
  assert.equal(answer.parts[0]!.part, "engines");
  assert.equal(answer.slowEngines.length, 1);
  const [{ endpoint, factor, prefillFactor }] = answer.slowEngines as [SlowEngine];
  assert.equal(endpoint, "b");
  assert.ok(factor < 1.1 && Math.abs(prefillFactor - 3) < 0.5, `${factor}, ${prefillFactor}`);
});

test("blocks that go slowly from one engine to another are named first, and not where they go fast", () => {
  const endpoints = withRoles(SETTING.endpoints, 1);
  const inForce = { name: "shared", spec: pdSpec(GNOMON.spec, { colocateBelowTokens: 0 }) };
  const firstAt = (bytesPerSecond: number) => {
    const setting = { ...SETTING, endpoints, rateScale: 0.5, transfers: { ...TRANSFER_DEFAULTS, bytesPerSecond } };
    const answer = answerOf({ setting, inForce, otherwise: inForce, observed: observedOf(setting, inForce) });
    near(sumOf(answer), answer.micros);
    return namedCauses(answer)[0]?.part;
  };
  assert.equal(firstAt(1e9), "transfer");
  assert.notEqual(firstAt(1e12), "transfer");
});

test("time in the gateway is a part of its own, and what waits there for its turn no attempt", () => {
  const observed = observedOf(SETTING, GNOMON).map((one) => ({
    ...one,
    ttftMicros: one.ttftMicros + 7_000,
    e2eMicros: one.e2eMicros + 7_000,
    retriedMicros: 7_000,
    queuedMicros: 7_000,
    heldMicros: 2_000,
  }));
  const answer = answerOf({ observed });
  assert.ok(Math.abs(partOf(answer, "gateway")!.micros - 9_000) < 1e-6);
  assert.equal(partOf(answer, "retries"), undefined);
  assert.ok(Math.abs(partOf(answer, "unexplained")!.micros) < 1);
});

test("without its faults a fleet keeps the endpoint that left, which does not join once more", () => {
  const fleetEvents: Setting["fleetEvents"] = [
    { kind: "endpoint-left", at: 2_000_000, endpoint: "a", lost: true },
    { kind: "endpoint-joined", at: 5_000_000, endpoint: SETTING.endpoints[0]! },
  ];
  const setting = { ...SETTING, fleetEvents, rateScale: 4 };
  const answer = answerOf({ setting });
  assert.ok(partOf(answer, "faults")!.micros > 0);
  near(sumOf(answer), answer.micros);
});

test("times of attempts that failed are a part of their own", () => {
  const observed = observedOf(SETTING, GNOMON).map((one) => ({
    ...one,
    ttftMicros: one.ttftMicros + 5_000,
    e2eMicros: one.e2eMicros + 5_000,
    retriedMicros: 5_000,
    attempts: 2,
  }));
  assert.ok(Math.abs(partOf(answerOf({ observed }), "retries")!.micros - 5_000) < 1e-6);
});

test("one request: its parts add up to its own time, and who was computed ahead of it is named", () => {
  const observed = observedOf({ ...SETTING, rateScale: 8 }, GNOMON);
  const setting = { ...SETTING, rateScale: 8 };
  const waits = [...setting.workload].map(({ index, promptTokens }) => observed[index]!.ttftMicros / promptTokens);
  const slowest = waits.indexOf(Math.max(...waits));
  const answer = answerOf({ setting, observed, requests: [slowest] });
  assert.equal(answer.requests, 1);
  near(sumOf(answer), observed[slowest]!.ttftMicros);
  const { queueMicros, prefillAloneMicros, prefillMoreMicros, micros } = answer.stages;
  near(queueMicros + prefillAloneMicros + prefillMoreMicros, micros);
  assert.ok(answer.ahead.tokens > 0 && answer.ahead.longest.every(({ index }) => index !== slowest));
});

test("intervals hold their parts, and come from drawn engines where there are residuals", () => {
  const residuals = {
    windowMicros: 1_000_000,
    windows: [[0, 0.1, -0.1, 0.05]],
    levelError: 0.05,
    delayError: 0,
    prefillError: 0,
  };
  const inForce = namedProfile("round-robin");
  const question = { inForce, setting: { ...SETTING, residuals } };
  for (const replicas of [0, 3]) {
    const { interval, micros } = partOf(answerOf({ ...question, replicas }), "own")!;
    assert.ok(interval!.low < micros && micros < interval!.high, `${interval!.low} ${micros} ${interval!.high}`);
  }
});

test("law: no interval leaves out its own part, whatever noise makes of it", () => {
  const inForce = namedProfile("round-robin");
  // Steps that wander far and first tokens that are late lean to one side: what the drawn engines have is above the run without.
  const residuals = {
    windowMicros: 1_000_000,
    windows: [[0.7, 1.4, -0.5, 0.9, 1.2]],
    levelError: 0.2,
    delayError: 0,
    prefillError: 0.2,
  };
  const setting = { ...SETTING, residuals, engine: { ...SETTING.engine, kvBlocks: 80 } };
  const observed = observedOf(SETTING, inForce, 1.1);
  const few = Array.from({ length: 30 }, (_, i) => i);
  let moved = 0;
  for (const kind of ["mean", 99] as const) {
    for (const more of [{ replicas: 0 }, { replicas: 3, observed }, { replicas: 2, requests: few }]) {
      const { parts } = answerOf({ setting, inForce, figure: { time: "ttft", of: kind }, ...more });
      for (const { part, micros, interval } of parts) {
        if (interval === undefined) continue;
        const { low, high } = interval;
        assert.ok(low <= micros && micros <= high, `${kind} ${part}: ${micros} in ${low}..${high}`);
        if (low < high && (micros === low || micros === high)) moved++;
      }
    }
  }
  assert.ok(moved > 0, "some part is where no draw is, else this shows nothing");
});

test("same question, same answer", () => {
  const question = { inForce: namedProfile("round-robin"), worldsMax: 4 };
  assert.deepEqual(answerOf(question), answerOf(question));
});
