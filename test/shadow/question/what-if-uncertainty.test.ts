import assert from "node:assert/strict";
import { test } from "node:test";
import type { StepResiduals } from "#engine/step-drift.ts";
import { randomFor } from "#core/base/random.ts";
import { type Candidate, runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { causesOf } from "#shadow/candidate/cause.ts";
import { predictionInterval } from "#shadow/figure/interval.ts";
import { METRICS } from "#shadow/figure/metric.ts";
import { blockSumsOf, rankingOf } from "#shadow/job/ranking.ts";
import { replicaEngines } from "#shadow/candidate/replica.ts";
import { estimateOf } from "#shadow/candidate/estimate.ts";
import { figuresOf } from "#shadow/figure/figures.ts";
import { perform, type ReplicaFigures } from "#shadow/job/job.ts";
import { FIGURES } from "#shadow/question/uncertainty.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { CASE_ENGINE, caseEndpoints, caseSetting, caseWorkload, namedProfile } from "./what-if-case.ts";

const NONE: StepResiduals = { windowMicros: 1e6, windows: [[0]], levelError: 0, delayError: 0, prefillError: 0 };

function ask(
  residuals: StepResiduals | undefined,
  more: { replicas?: number; candidates?: readonly Candidate[] } = {},
) {
  const setting: Setting = { ...caseSetting(caseWorkload()), residuals };
  const { replicas = 6, candidates = [namedProfile("round-robin")] } = more;
  return whatIf({ setting, inForce: namedProfile("gnomon"), candidates, observed: undefined, replicas, threadsMax: 1 });
}

test("an engine that leaves nothing to chance has intervals without width", async () => {
  const { candidates, replicas } = await ask(NONE);
  assert.equal(replicas, 6);
  for (const { predicted, intervals, difference, differenceInterval } of candidates) {
    for (const metric of METRICS) {
      for (const figure of FIGURES) {
        const value = predicted[metric]![figure];
        assert.deepEqual(intervals[metric]![figure], { low: value, high: value, expected: value });
      }
      const { low, high } = differenceInterval[metric]!;
      for (const end of [low, high]) assert.ok(Math.abs(end - difference[metric]!.mean) < 1e-6);
    }
  }
});

test("the less an engine is known, the wider are its intervals, and each holds its prediction", async () => {
  let before = 0;
  for (const levelError of [0.01, 0.04, 0.12]) {
    const { candidates } = await ask({ ...NONE, levelError });
    const widths = candidates.map(({ intervals, predicted }) => {
      for (const metric of METRICS)
        for (const figure of FIGURES) {
          const { low, high } = intervals[metric]![figure];
          assert.ok(low <= predicted[metric]![figure] && predicted[metric]![figure] <= high);
        }
      return intervals.e2eMicros!.mean.high - intervals.e2eMicros!.mean.low;
    });
    assert.ok(Math.min(...widths) > before, `${levelError}: ${widths.join(", ")}`);
    before = Math.max(...widths);
  }
});

test("slow swings move means more than the same swings one after another would", async () => {
  const slow = Array.from({ length: 64 }, (_, w) => (w % 16 < 8 ? 0.2 : -0.2));
  const quick = slow.map((_, w) => (w % 2 === 0 ? 0.2 : -0.2));
  const width = async (windows: readonly number[]) => {
    const { candidates } = await ask({ ...NONE, windows: [windows] }, { replicas: 12 });
    const { low, high } = candidates[0]!.intervals.e2eMicros!.mean;
    return high - low;
  };
  assert.ok((await width(slow)) > 1.5 * (await width(quick)));
});

const NOISY: StepResiduals = {
  ...NONE,
  windows: [Array.from({ length: 60 }, (_, w) => 0.15 * Math.sin(w / 5))],
  levelError: 0.05,
  delayError: 0.2,
  prefillError: 0.1,
  firstTokens: {
    predictedMicros: Array.from({ length: 100 }, (_, i) => 5_000 + 2_000 * i),
    laterMicros: Array.from({ length: 100 }, (_, i) => (i % 10 === 0 ? 80_000 : (i % 7) * 300 - 900)),
  },
  stalls: { watchedMicros: 60e6, count: 6, micros: [80_000, 120_000, 400_000], shared: 0 },
  betweenRuns: { level: 0.1, delay: 0.2, prefill: 0.05, noise: 0.5, runs: 1 },
};

test("no seed moves an estimate, each moves its interval, and the run without noise is not the estimate", async () => {
  const inForce = namedProfile("gnomon");
  const candidates = [namedProfile("round-robin")];
  const asked = async (noiseSeed: number) => {
    const setting: Setting = { ...caseSetting(caseWorkload()), residuals: NOISY, noiseSeed };
    return whatIf({ setting, inForce, candidates, observed: undefined, replicas: 4, threadsMax: 1 });
  };
  const [first, ...others] = await Promise.all([1, 2, 3, 4].map(asked));
  for (const other of others)
    for (const [c, { predicted, difference, intervals }] of first!.candidates.entries()) {
      const there = other.candidates[c]!;
      assert.deepEqual(there.predicted, predicted);
      for (const metric of METRICS) assert.equal(there.difference[metric]!.mean, difference[metric]!.mean);
      assert.notDeepEqual(there.intervals, intervals);
    }
  const setting: Setting = { ...caseSetting(caseWorkload()), residuals: NOISY };
  const alone = figuresOf(runCandidate(setting, inForce).ttftMicros)!;
  const { mean, p99 } = first!.candidates.find(({ name }) => name === "gnomon")!.predicted.ttftMicros!;
  assert.ok(mean > alone.mean && p99 > 1.1 * alone.p99, `${mean} of ${alone.mean}, ${p99} of ${alone.p99}`);
});

test("an estimate is the mean of what replicas of a known engine draw, though it draws nothing", async () => {
  const { firstTokens, stalls } = NOISY;
  const setting: Setting = { ...caseSetting(caseWorkload()), residuals: { ...NONE, firstTokens } };
  const inForce = namedProfile("gnomon");
  const drawn = Array.from({ length: 40 }, (_, r) => {
    const job = { kind: "replica", candidate: inForce, replica: r + 1 } as const;
    return (perform(setting, job) as ReplicaFigures).figures.ttftMicros!.mean;
  });
  const mean = drawn.reduce((sum, value) => sum + value, 0) / drawn.length;
  const outcome = runCandidate(setting, inForce);
  const of = (residuals: StepResiduals) => estimateOf(outcome, residuals).ttftMicros!.mean;
  assert.ok(Math.abs(of(setting.residuals!) / mean - 1) < 0.03, `${of(setting.residuals!)}, replicas ${mean}`);
  assert.ok(of({ ...NONE, firstTokens, stalls }) > of(setting.residuals!), "stalls come on top");
});

test("all candidates meet the same engines: a profile under another name differs by nothing, however uncertain", async () => {
  const twin = { ...namedProfile("gnomon"), name: "twin" };
  const { candidates, ranking } = await ask({ ...NONE, levelError: 0.2 }, { candidates: [twin] });
  const found = candidates.find(({ name }) => name === "twin");
  for (const metric of METRICS) assert.deepEqual(found?.differenceInterval[metric], { low: 0, high: 0 });
  assert.deepEqual(ranking.first, [0.5, 0.5]);
});

test("without residuals, or with one replica, no intervals are reported", async () => {
  for (const answer of [await ask(undefined), await ask({ ...NONE, levelError: 0.1 }, { replicas: 1 })]) {
    for (const { intervals, differenceInterval } of answer.candidates)
      for (const metric of METRICS)
        assert.deepEqual([intervals[metric], differenceInterval[metric]], [undefined, undefined]);
  }
  assert.equal((await ask(undefined)).replicas, 0);
});

test("what is observed inside an interval is reported as inside, and outside as outside", async () => {
  const setting: Setting = { ...caseSetting(caseWorkload()), residuals: { ...NONE, levelError: 0.03 } };
  const inForce = namedProfile("gnomon");
  const run = runCandidate(setting, inForce);
  const covered = async (factor: number) => {
    const observed = Array.from(setting.workload, ({ outputTokens }, i) => ({
      endpoint: "a",
      ok: true,
      ttftMicros: factor * run.ttftMicros[i]!,
      e2eMicros: factor * run.e2eMicros[i]!,
      outputTokens,
      cachedTokens: NaN,
      attempts: 1,
      retriedMicros: 0,
    }));
    return (await whatIf({ setting, inForce, candidates: [], observed, replicas: 8, threadsMax: 1 })).coverage;
  };
  const [same, twice] = [await covered(1), await covered(2)];
  for (const metric of METRICS)
    for (const figure of FIGURES)
      assert.deepEqual([same?.[metric]?.[figure].inside, twice?.[metric]?.[figure].inside], [true, false]);
});

test("a replica's engines depend on the seed, the replica and the endpoint, and keep neighbours together", () => {
  const logs = Array.from({ length: 100 }, (_, w) => w / 1000);
  const residuals = { ...NONE, windows: [logs, logs.map((log) => -log)], delayError: 0.1, prefillError: 0.1 };
  const engine = (seed: number, replica: number, endpoint: number) =>
    replicaEngines(CASE_ENGINE, residuals, seed, replica, 300e6)(endpoint);
  assert.deepEqual(engine(1, 0, 0), engine(2, 0, 0), "without noise, nothing is drawn");
  const usual = logs.reduce((sum, log) => sum + Math.exp(log), 0) / logs.length;
  assert.ok(Math.abs(engine(1, 0, 0).stepDrift!.factors[0]! / usual - 1) < 1e-6, "steps are as long as their mean");
  assert.deepEqual(engine(1, 3, 0), engine(1, 3, 2), "endpoints beyond the recorded ones take theirs in turn");
  for (const other of [engine(2, 3, 0), engine(1, 4, 0), engine(1, 3, 1)]) assert.notDeepEqual(engine(1, 3, 0), other);
  const [one, two] = [engine(1, 3, 0).stepDrift!.factors, engine(1, 3, 1).stepDrift!.factors];
  assert.ok(one.length >= 300);
  let steps = 0;
  for (let w = 0; w < one.length; w++) {
    assert.ok(Math.abs(one[w]! * two[w]! - 1) < 1e-6, "the same moment at both");
    if (w > 0 && Math.abs(Math.log(one[w]! / one[w - 1]!) - 0.001) < 1e-6) steps++;
  }
  assert.ok(steps / one.length > 0.85, "most windows follow the one that they followed");
});

test("a replica's delay, level and prefill are drawn as wide as the fit and another run leave them open, together", () => {
  const engine = { ...CASE_ENGINE, queueDelay: { baseMicros: 1_000, perPromptTokenMicros: 2 } };
  const between = { level: 0, delay: 0, prefill: 0, noise: 0, runs: 1 };
  const spreadOf = (residuals: StepResiduals): number => {
    const logs = Array.from({ length: 60 }, (_, r) => {
      const { baseMicros, perPromptTokenMicros } = replicaEngines(engine, residuals, 1, r + 1, 1e6)(0).queueDelay;
      assert.ok(Math.abs(perPromptTokenMicros - baseMicros / 500) < 1e-9 * baseMicros);
      return Math.log(baseMicros / 1_000);
    });
    return Math.sqrt(logs.reduce((sum, log) => sum + log * log, 0) / logs.length);
  };
  const near = (residuals: StepResiduals, expected: number): void => {
    const spread = spreadOf(residuals);
    assert.ok(Math.abs(spread - expected) <= 0.2 * expected, `${spread}, not ${expected}`);
  };
  near(NONE, 0);
  near({ ...NONE, delayError: 0.4 }, 0.4);
  near({ ...NONE, betweenRuns: { ...between, delay: 0.3 } }, 0.3);
  near({ ...NONE, delayError: 0.4, betweenRuns: { ...between, delay: 0.3 } }, 0.5);
  near({ ...NONE, betweenRuns: { ...between, level: 0.3, prefill: 0.3 } }, 0);
});

test("an interval of one more draw holds it about as often as it claims", () => {
  const random = randomFor(4, 4);
  const draw = () => Math.exp(0.1 * Array.from({ length: 12 }, () => random.next() - 0.5).reduce((a, b) => a + b, 0));
  for (const replicas of [3, 8, 20]) {
    let held = 0;
    for (let i = 0; i < 4000; i++) {
      const values = Array.from({ length: replicas }, draw);
      const { low, high } = predictionInterval(values[0]!, values, "logarithm")!;
      const next = draw();
      if (next >= low && next <= high) held++;
    }
    assert.ok(Math.abs(held / 4000 - 0.9) < 0.03, `${replicas} replicas: ${held / 4000}`);
  }
});

test("a ranking's shares add up, and a clear order is as sure as its evidence", () => {
  const random = randomFor(8, 1);
  const noise = Float64Array.from({ length: 400 }, () => 100 + random.below(50));
  const shifted = (by: number) => blockSumsOf(noise.map((value) => value + by));
  const { first, before } = rankingOf([[shifted(5), shifted(0), shifted(5), blockSumsOf(noise.fill(NaN))]], 3);
  // One simulation of 20 blocks: none of 20 looks, and one more that nobody had.
  const rounded = (value: number) => Math.round(1e6 * value) / 1e6;
  const never = 0.25 / 21;
  assert.deepEqual(first.map(rounded), [never, 1 - 3 * never, never, never].map(rounded));
  assert.deepEqual(
    [before[1]![0]!, before[0]![2]!, before[2]![3]!].map(rounded),
    [20.5 / 21, 0.5, 20.5 / 21].map(rounded),
  );
  for (let a = 0; a < 4; a++)
    for (let b = 0; b < a; b++) assert.ok(Math.abs(before[a]![b]! + before[b]![a]! - 1) < 1e-9);
});

test("no order is certain that a few replicas have shown, and the less so the more the model is off", () => {
  const random = randomFor(8, 2);
  const noise = Float64Array.from({ length: 400 }, () => 100 + random.below(50));
  const twoOf = (by: number) => [blockSumsOf(noise), blockSumsOf(noise.map((value) => value + by))];
  const likely = (replicas: number, by: number, errors: readonly number[]) =>
    rankingOf(
      Array.from({ length: replicas }, () => twoOf(by)),
      3,
      errors,
    ).before[1]![0]!;
  assert.equal(likely(20, 30, [0, 0]), 0.5 / 21);
  assert.equal(likely(5, 30, [0, 0]), 0.5 / 6);
  assert.ok(likely(20, 10, [0, 0.1]) > 0.15 && likely(20, 10, [0, 0.1]) < 0.35, "8 % apart, 10 % off");
  assert.ok(likely(20, 10, [0, 0.1]) > 2 * likely(20, 10, [0, 0.05]));
  const twins = rankingOf([twoOf(0), twoOf(0)], 3, [0, 0.3]);
  assert.deepEqual(twins.first, [0.5, 0.5], "who does the same meets the same error of the model");
});

test("causes add up to the difference, and to all requests", () => {
  const setting = caseSetting(caseWorkload());
  const base = runCandidate(setting, namedProfile("gnomon"));
  const other = runCandidate(setting, namedProfile("round-robin"));
  const causes = causesOf(other, base);
  let difference = 0;
  other.e2eMicros.forEach((e2e, i) => (difference += (e2e - base.e2eMicros[i]!) / setting.workload.length));
  const total = causes.reduce((sum, { shareMicros }) => sum + shareMicros, 0);
  assert.ok(Math.abs(total - difference) < 1e-6 * Math.abs(difference));
  assert.equal(
    causes.reduce((sum, { requests }) => sum + requests, 0),
    setting.workload.length,
  );
  const lost = causes.filter(({ moved, cached }) => moved && cached === "less");
  assert.ok(lost.length > 0 && lost.every((one) => one.cachedTokensChange < 0), "round-robin loses prefixes");
  assert.deepEqual(
    causesOf(base, base).map(({ shareMicros }) => shareMicros),
    [0],
  );
});

test("scenarios are asked about beside the rest, which they do not change", async () => {
  const spec = namedProfile("gnomon").spec;
  const larger = { label: "6 endpoints", endpoints: caseEndpoints("d", "e", "f", "g", "h", "i") };
  const scaled = (name: string, scenario: NonNullable<Candidate["scenario"]>) => ({ name, spec, scenario });
  const faster = { ...CASE_ENGINE, stepTime: { ...CASE_ENGINE.stepTime, baseMicros: 3000 } } as typeof CASE_ENGINE;
  const candidates = [
    namedProfile("round-robin"),
    scaled("more", larger),
    scaled("busier", { label: "4 x the rate", rateScale: 4 }),
    scaled("faster", { label: "engine b", engine: faster, residuals: undefined }),
  ];
  const residuals = { ...NONE, levelError: 0.05 };
  const [with4, without] = [await ask(residuals, { candidates }), await ask(residuals)];
  assert.deepEqual(with4.candidates.slice(0, 2), without.candidates);
  assert.deepEqual(with4.ranking, without.ranking);
  const answer = (name: string) => with4.candidates.find((one) => one.name === name)!;
  const mean = (name: string) => answer(name).predicted.e2eMicros!.mean;
  assert.ok(mean("more") < mean("gnomon") && mean("busier") > mean("gnomon") && mean("faster") < mean("gnomon"));
  assert.ok(
    ["more", "busier", "faster"].every((name) => answer(name).scenario !== "" && answer(name).agreement === undefined),
  );
  assert.equal(answer("faster").intervals.e2eMicros, undefined, "it is not stated how far that engine is off");
  assert.ok(answer("more").intervals.e2eMicros !== undefined);
});
