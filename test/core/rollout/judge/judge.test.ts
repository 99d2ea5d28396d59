import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { switchbackArm } from "#core/rollout/assignment.ts";
import { Judge, type JudgeOptions, type SavedJudge } from "#core/rollout/judge/judge.ts";
import { movedJudge } from "#core/rollout/judge/moved-judge.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import { sliceAt } from "#core/rollout/judge/slice-counts.ts";
import { proposedStep } from "#core/rollout/proposed-step.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { after, DESIGNS, planOf, stepOf, WINDOW_MICROS } from "../rollout-case.ts";

const [SWITCHBACK, POOLS, SPLIT] = DESIGNS as [Design, Design, Design];
const CANARY = DESIGNS.find(({ kind }) => kind === "canary")!;
const MILLI = 1000;

function options(design: Design, more: Partial<JudgeOptions> = {}): JudgeOptions {
  return {
    plan: planOf(design),
    level: 0.05,
    plannedCount: 20,
    settleMicros: 1_000_000,
    windowSamplesMin: 2,
    guardrails: [],
    predictions: [],
    ...more,
  };
}

interface Shown {
  readonly effectMicros: number;
  readonly predicted?: boolean;
  readonly failed?: number;
}

/** Twenty requests of a window, slower as its traffic is heavier; those of the other arm by `effectMicros` more. */
function windowOf(design: Design, window: number, { effectMicros, predicted, failed = 0 }: Shown): RolloutOutcome[] {
  const random = randomFor(11, window);
  const traffic = 100 * MILLI * random.next();
  return Array.from({ length: 20 }, (_, i) => {
    const arm = design.kind === "switchback" ? switchbackArm(planOf(design), window) : i % 2;
    const base = 200 * MILLI + traffic;
    const ttft = Math.round(base + 30 * MILLI * random.next() + (arm === 1 ? effectMicros : 0));
    const times = { ttft, tpot: 10 * MILLI, e2e: ttft + 500 * MILLI };
    return {
      arm,
      window,
      counted: true,
      stretch: window * WINDOW_MICROS,
      slice: i,
      cluster: `session-${window}-${i >> 2}-${arm}`,
      status: arm === 1 && i < failed ? "failed" : "ok",
      times,
      ...(predicted === true && { predicted: { ttft: base * 1.2, tpot: undefined, e2e: base * 1.2 } }),
      endpoint: `engine-${i % 5 === 0 ? 0 : 1}`,
      promptTokens: 100,
      cachedTokens: arm === 1 ? 50 : 25,
    };
  });
}

/** They come, and they end. */
function ended(judge: Judge, outcomes: readonly RolloutOutcome[]): void {
  for (const { window, stretch, slice } of outcomes)
    judge.arrived(window, (window + 1) * WINDOW_MICROS, sliceAt(stretch, WINDOW_MICROS, slice));
  for (const outcome of outcomes) judge.observe(outcome);
}

function show(judge: Judge, design: Design, windows: number, shown: Shown, from = 0): void {
  for (let window = from; window < from + windows; window++) {
    ended(judge, windowOf(design, window, shown));
    judge.advance((window + 1) * WINDOW_MICROS);
  }
}

test("two pools are two values: windows in any number have figures and no interval, and contradict nothing", () => {
  const predictions = [{ arm: 1, metric: "ttft", figure: "mean", low: -2, high: -1 }] as const;
  const judge = new Judge(options(POOLS, { predictions }));
  show(judge, POOLS, 200, { effectMicros: 150 * MILLI });
  const { differences, contradictions } = judge.verdict();
  assert.deepEqual(contradictions, []);
  for (const { low, high, evidence } of differences) assert.deepEqual([low, high, evidence], [-Infinity, Infinity, 1]);
  assert.ok(judge.difference(1, "ttft", "mean").mean > 100 * MILLI);
});

const REDRAWN = { ...POOLS, redrawn: true } as Design;

test("engines by label: a queue that outlasts windows is no difference, whatever the number of looks; one engine's time is", () => {
  const found = (effectMicros: number) => {
    let runs = 0;
    for (let seed = 0; seed < 40; seed++) {
      const judge = new Judge(options(REDRAWN, { plannedCount: 60 }));
      const random = randomFor(seed, 29);
      let queue = 0;
      let isFound = false;
      for (let window = 0; window < 60; window++) {
        // Of one arm more than of the other, which passes from window to window.
        queue = 0.6 * queue + 30 * MILLI * (random.next() + random.next() - 1);
        const outcomes = windowOf(REDRAWN, window, { effectMicros }).map((one) => {
          const ttft = Math.round(one.times.ttft! + (one.arm === 1 ? queue : 0));
          return { ...one, times: { ...one.times, ttft, e2e: ttft + 500 * MILLI } };
        });
        ended(judge, outcomes);
        judge.advance((window + 1) * WINDOW_MICROS);
        const { low, high } = judge.difference(1, "e2e", "mean");
        isFound ||= low > 0 || high < 0;
      }
      if (isFound) runs++;
    }
    return runs;
  };
  assert.ok(found(0) <= 2, `${found(0)} of 40`);
  assert.ok(found(50 * MILLI) >= 36, `${found(50 * MILLI)} of 40`);
});

for (const design of [SWITCHBACK, SPLIT, CANARY]) {
  test(`a difference is found where there is one and not where there is none: ${design.kind}`, () => {
    for (const [effectMicros, expected] of [
      [0, false],
      [150 * MILLI, true],
    ] as const) {
      const judge = new Judge(options(design));
      show(judge, design, 60, { effectMicros });
      const { low, high, mean, count } = judge.difference(1, "ttft", "mean");
      assert.equal(low > 0, expected, `${low} ${high}`);
      assert.ok(low <= effectMicros && effectMicros <= high, `${low} ${high}`);
      assert.ok(low <= mean && mean <= high);
      // Blocks, windows, or sessions; never the 1,200 requests.
      const expectedCount = { switchback: 30, pools: 60, split: 600, canary: 600, shadow: 0 }[design.kind];
      assert.equal(count, expectedCount);
    }
  });
}

test("predictions of the control's traffic narrow the interval and do not move it", () => {
  const [plain, adjusted] = [false, true].map((predicted) => {
    const judge = new Judge(options(SWITCHBACK));
    show(judge, SWITCHBACK, 60, { effectMicros: 20 * MILLI, predicted });
    return judge.difference(1, "ttft", "mean");
  });
  assert.ok(adjusted!.varianceLeft < 0.2, `${adjusted!.varianceLeft}`);
  assert.equal(plain!.varianceLeft, 1);
  assert.ok(adjusted!.high - adjusted!.low < 0.5 * (plain!.high - plain!.low));
  assert.ok(adjusted!.low <= 20 * MILLI && 20 * MILLI <= adjusted!.high);
});

function unpredicted(outcomes: readonly RolloutOutcome[]): Omit<RolloutOutcome, "predicted">[] {
  return outcomes.map(({ predicted, ...outcome }) => (predicted === undefined ? assert.fail("it is known") : outcome));
}

/** As it comes live: what is predicted of a window's requests is known some time after their ends. */
function showAwaited(judge: Judge, design: Design, windows: number, predictedOf: (i: number) => boolean): void {
  for (let window = 0; window < windows; window++) {
    const outcomes = windowOf(design, window, { effectMicros: 20 * MILLI, predicted: true });
    const endAt = (window + 1) * WINDOW_MICROS;
    for (const _ of outcomes) judge.arrived(window, endAt);
    unpredicted(outcomes).forEach((outcome, i) => judge.observe(outcome, { id: `${window} ${i}`, endAt }));
    judge.advance(endAt);
    assert.ok((judge.history.at(-1)?.window ?? -1) < window, "it waits for its predictions");
    outcomes.forEach(({ predicted }, i) => predictedOf(i) && judge.predicted(`${window} ${i}`, predicted!));
    judge.advance(endAt);
  }
  judge.advance(Infinity);
}

test("predictions that come after the ends of requests are worth as much; what gets none is compared as measured", () => {
  for (const design of [SWITCHBACK, POOLS, SPLIT, CANARY]) {
    const [known, late, without, plain] = Array.from({ length: 4 }, () => new Judge(options(design)));
    show(known!, design, 40, { effectMicros: 20 * MILLI, predicted: true });
    showAwaited(late!, design, 40, () => true);
    const of = (judge: Judge) => judge.difference(1, "ttft", "mean");
    assert.deepEqual(of(late!), of(known!));
    // What windows differ in meets both pools alike.
    if (design !== POOLS) assert.ok(of(late!).varianceLeft < 0.6, `${design.kind} ${of(late!).varianceLeft}`);
    assert.deepEqual([late!.awaited.size, late!.awaited.predicted, late!.awaited.unpredicted], [0, 800, 0]);
    showAwaited(without!, design, 40, () => false);
    show(plain!, design, 40, { effectMicros: 20 * MILLI });
    assert.deepEqual(of(without!), of(plain!));
    assert.deepEqual([without!.awaited.size, without!.awaited.unpredicted], [0, 800]);
  }
});

test("sessions without a prediction among others that have one do not move the comparison, nor pretend to be sure", () => {
  const [whole, some, plain] = Array.from({ length: 3 }, () => new Judge(options(SPLIT)));
  showAwaited(whole!, SPLIT, 40, () => true);
  showAwaited(some!, SPLIT, 40, (i) => i % 3 > 0);
  show(plain!, SPLIT, 40, { effectMicros: 20 * MILLI });
  const [all, part, none] = [whole!, some!, plain!].map((judge) => judge.difference(1, "ttft", "mean"));
  assert.ok(all!.deviation < part!.deviation && part!.deviation < none!.deviation);
  assert.ok(part!.low <= 20 * MILLI && 20 * MILLI <= part!.high);
});

test("a judge that was saved while requests waited for predictions counts them all when it is restored", () => {
  const judge = new Judge(options(SPLIT));
  const outcomes = windowOf(SPLIT, 0, { effectMicros: 0, predicted: true });
  for (const { slice } of outcomes) judge.arrived(0, WINDOW_MICROS, sliceAt(0, WINDOW_MICROS, slice));
  unpredicted(outcomes).forEach((outcome, i) => judge.observe(outcome, { id: `${i}`, endAt: 5 }));
  const saved = JSON.parse(JSON.stringify(judge.saved())) as SavedJudge;
  const again = new Judge(options(SPLIT), movedJudge(saved, -WINDOW_MICROS));
  outcomes.forEach(({ predicted }, i) => i % 2 === 0 && again.predicted(`${i}`, predicted!));
  again.advance(0);
  assert.equal(again.history.length, 0);
  again.advance(1_000_000);
  assert.equal(
    again.history[0]?.arms.reduce((sum, { requests }) => sum + requests, 0),
    20,
  );
  assert.deepEqual([again.awaited.predicted, again.awaited.unpredicted], [10, 10]);
  // All are compared, in the order in which they came: none waits for what had not ended when it was saved.
  assert.equal(again.difference(1, "ttft", "p50").count, new Set(outcomes.map(({ cluster }) => cluster)).size);
});

test("a judge that was saved as text and restored in mid-window goes on to the same verdict", () => {
  for (const design of [SWITCHBACK, POOLS, SPLIT, CANARY]) {
    const given = options(design, { guardrails: [{ figure: "ttft.p99", relativeMax: 1.01, samplesMin: 2 }] });
    const whole = new Judge(given);
    show(whole, design, 9, { effectMicros: 50 * MILLI });
    ended(whole, windowOf(design, 9, { effectMicros: 50 * MILLI }).slice(0, 7));
    const again = new Judge(given, JSON.parse(JSON.stringify(whole.saved())) as SavedJudge);
    for (const judge of [whole, again]) {
      ended(judge, windowOf(design, 9, { effectMicros: 50 * MILLI }).slice(7));
      show(judge, design, 11, { effectMicros: 50 * MILLI }, 10);
    }
    assert.deepEqual(again.verdict(), whole.verdict());
    assert.deepEqual(again.saved(), whole.saved());
  }
});

test("a guardrail takes an arm back in the very window, with samples enough, and reports why", () => {
  const state = after(planOf(SPLIT), stepOf("start", 0));
  const guardrails = [{ figure: "error-rate", absoluteMax: 0.2, samplesMin: 8 }] as const;
  const judge = new Judge(options(SPLIT, { guardrails }));
  const outcomes = windowOf(SPLIT, 0, { effectMicros: 0, failed: 20 });
  ended(judge, outcomes.slice(0, 14));
  assert.equal(proposedStep(state, 5, judge.verdict()), undefined);
  ended(judge, outcomes.slice(14));
  const step = proposedStep(state, 5, judge.verdict());
  assert.equal(step?.step, "rollback");
  assert.match(step.reason, /arm-1: error-rate is 100\.0 %, at least [\d.]+ %: above 20\.0 %/);
  const control = new Judge(options(SPLIT, { guardrails: [{ figure: "ttft.p90", relativeMax: 1.3, samplesMin: 8 }] }));
  show(control, SPLIT, 40, { effectMicros: 300 * MILLI });
  assert.match(
    proposedStep(state, 5, control.verdict())?.reason ?? "",
    /arm-1: ttft\.p90 is .* 1\.3 times the control's/,
  );
  const alike = new Judge(options(SPLIT, { guardrails: [{ figure: "ttft.p90", relativeMax: 1.3, samplesMin: 8 }] }));
  show(alike, SPLIT, 40, { effectMicros: 0 });
  assert.equal(proposedStep(state, 5, alike.verdict()), undefined);
});

test("a tail that a burst in either window hides is beyond its limit sooner where requests were predicted, saved in between", () => {
  const guardrails = [{ figure: "ttft.p99", relativeMax: 1.25, samplesMin: 10 }] as const;
  const crossedAfter = (predicted: boolean, more: number) => {
    let judge = new Judge(options(SWITCHBACK, { guardrails }));
    const random = randomFor(3, 1);
    for (let window = 0; window < 60; window++) {
      const burst = 10 ** random.next();
      const outcomes = windowOf(SWITCHBACK, window, { effectMicros: 0, predicted }).map((one) => {
        const usual = burst * one.times.ttft!;
        const ttft = Math.round(one.arm === 1 ? more * usual : usual);
        return {
          ...one,
          times: { ...one.times, ttft },
          ...(predicted && { predicted: { ...one.times, ttft: 1.1 * usual } }),
        };
      });
      ended(judge, outcomes);
      if (window === 9) {
        const saved = JSON.parse(JSON.stringify(judge.saved())) as SavedJudge;
        judge = new Judge(options(SWITCHBACK, { guardrails }), saved);
      }
      judge.advance((window + 1) * WINDOW_MICROS);
      if (judge.readings().some(({ crossed }) => crossed)) return window + 1;
    }
    return Infinity;
  };
  const [without, sooner] = [crossedAfter(false, 2), crossedAfter(true, 2)];
  assert.ok(sooner <= 20 && sooner < without / 2, `${sooner} instead of ${without} windows`);
  assert.equal(crossedAfter(true, 1.2), Infinity);
});

test("a result beyond what was predicted pauses the rollout; one that may agree does not", () => {
  const state = after(planOf(SWITCHBACK), stepOf("start", 0));
  for (const [low, high, expected] of [
    [-200 * MILLI, -100 * MILLI, "pause"],
    [-100 * MILLI, 150 * MILLI, undefined],
  ] as const) {
    const judge = new Judge(
      options(SWITCHBACK, { predictions: [{ arm: 1, metric: "ttft", figure: "mean", low, high }] }),
    );
    show(judge, SWITCHBACK, 2, { effectMicros: 150 * MILLI });
    assert.equal(proposedStep(state, 5, judge.verdict()), undefined);
    show(judge, SWITCHBACK, 58, { effectMicros: 150 * MILLI }, 2);
    const step = proposedStep(state, 5, judge.verdict());
    assert.equal(step?.step, expected);
    if (expected !== undefined) assert.match(step!.reason, /ttft\.mean contradicts the prediction/);
  }
});

test("a canary goes on after its dwell, compares each step by itself, and ends at its last", () => {
  const plan = planOf(CANARY);
  let state = after(plan, stepOf("start", 0));
  const judge = new Judge(options(CANARY));
  const quiet = judge.verdict();
  const of = (outcome: "advance" | "hold") => {
    const canary = { nextPercent: 5, samples: 9, samplesMin: 1, figures: [], outcome, timesAsLong: undefined };
    return { ...quiet, canary };
  };
  assert.equal(proposedStep(state, WINDOW_MICROS - 1, of("advance")), undefined);
  assert.equal(proposedStep(state, 1e12, of("hold")), undefined);
  const step = proposedStep(state, WINDOW_MICROS, of("advance"));
  assert.equal(step?.step, "advance");
  show(judge, CANARY, 5, { effectMicros: 150 * MILLI });
  judge.startStage(5);
  assert.equal(judge.difference(1, "ttft", "mean").count, 0);
  show(judge, CANARY, 1, { effectMicros: 0 }, 3);
  assert.equal(judge.difference(1, "ttft", "mean").count, 0);
  assert.equal(judge.lateOutcomes, 20);
  assert.equal(judge.totals[0]!.counts.requests, 60);
  state = after(plan, stepOf("start", 0), ...[1, 2, 3, 4].map((at) => stepOf("advance", at)));
  assert.equal(proposedStep(state, 1e12, quiet), undefined);
});

test("a canary holds on nothing, on too few and on what leaves harm open, and steps once harm beyond the margin is ruled out", () => {
  const design: Design = { ...CANARY, stepPercents: [25, 50, 100] } as Design;
  const readingOf = (windows: number, effectMicros: number) => {
    const judge = new Judge(options(design, { plannedCount: 200 }));
    show(judge, design, windows, { effectMicros });
    return judge.canary(50, judge.verdict().differences);
  };
  for (const windows of [0, 2]) assert.equal(readingOf(windows, 0).outcome, "hold", `${windows}`);
  const equal = readingOf(120, 0);
  assert.equal(equal.outcome, "advance");
  for (const { high, allowed } of equal.figures) assert.ok(high <= allowed);
  assert.equal(equal.figures[0]!.allowed, 0.2, "a tenth of all traffic is a fifth of its half");
  // 300 ms beside 250: more than twice as long, and surely.
  assert.equal(readingOf(60, 300 * MILLI).outcome, "worse");
  const open = readingOf(40, 0);
  assert.ok(open.outcome === "hold" && open.timesAsLong! > 1, JSON.stringify(open));
  // A median and errors as the control's: what is slow now and then alone keeps the step.
  const late = new Judge(options(design, { plannedCount: 200 }));
  for (let window = 0; window < 120; window++) {
    const outcomes = windowOf(design, window, { effectMicros: 0 }).map((one, i) =>
      one.arm === 0 || (window + i) % 25 > 0 ? one : { ...one, times: { ...one.times, ttft: 10 * one.times.ttft! } },
    );
    ended(late, outcomes);
    late.advance((window + 1) * WINDOW_MICROS);
  }
  const { outcome, figures } = late.canary(50, []);
  assert.equal(outcome, "hold");
  assert.deepEqual(
    figures.map(({ figure, high, allowed }) => [figure, high <= allowed]),
    [
      ["e2e.p50", true],
      ["error-rate", true],
      ["slow-rate", false],
    ],
  );
});

test("a canary that is surely slower within its margin is not taken back, one that is surely beyond it is", () => {
  const design: Design = { ...CANARY, stepPercents: [50, 100] } as Design;
  const state = after(planOf(design), stepOf("start", 0));
  // Of 755 ms.
  for (const [effectMicros, isBack] of [
    [30 * MILLI, false],
    [150 * MILLI, true],
  ] as const) {
    const judge = new Judge(options(design, { plannedCount: 200, margin: 0.1, primary: "e2e.p50" }));
    show(judge, design, 200, { effectMicros });
    const verdict = judge.verdict([], 50);
    const e2e = verdict.differences.find(({ metric, figure }) => metric === "e2e" && figure === "p50")!;
    assert.ok(e2e.low > 0, "surely slower");
    const times = verdict.differences.filter(({ metric }) => metric === "e2e");
    const step = proposedStep(state, 1e12, { ...verdict, canary: judge.canary(100, times) });
    assert.equal(step?.step === "rollback", isBack);
    if (isBack) assert.match(step!.reason, /^arm-1: e2e\.\w+ is surely higher by at least 1[\d.]+ %, 10\.0 % allowed$/);
  }
});

test("a canary's steps share the level, so that all of them together are wrong as rarely as one", () => {
  const boundsOf = (stepPercents: readonly number[], level: number) => {
    const judge = new Judge(options({ ...CANARY, stepPercents } as Design, { level }));
    show(judge, CANARY, 12, { effectMicros: 20 * MILLI });
    const { low, high } = judge.difference(1, "ttft", "mean");
    assert.ok(high - low > 0 && Number.isFinite(high - low));
    return [low, high];
  };
  assert.deepEqual(boundsOf([1, 5, 25, 50, 100], 0.05), boundsOf([100], 0.01));
  const [[low, high], [lowAlone, highAlone]] = [boundsOf([1, 100], 0.05), boundsOf([100], 0.05)] as [
    number[],
    number[],
  ];
  assert.ok(low! < lowAlone! && high! > highAlone!);
});

test("a block counts as much as the difference of two means of so many requests is sure, not as its smaller arm", () => {
  const judge = new Judge(options(POOLS, { windowSamplesMin: 1 }));
  const times = (ttft: number) => ({ ttft, tpot: 1, e2e: ttft });
  // Requests of both arms, and by how much the other arm is slower.
  const windows: readonly (readonly [own: number, others: number, effect: number])[] = [
    [18, 2, 100],
    [10, 10, 40],
    [3, 60, 10],
  ];
  for (const [window, [own, others, effect]] of windows.entries()) {
    const [first] = windowOf(POOLS, window, { effectMicros: 0 });
    const arms = [...Array.from({ length: others }, () => 0), ...Array.from({ length: own }, () => 1)];
    ended(
      judge,
      arms.map((arm, i) => ({ ...first!, arm, slice: i, times: times(1_000 + arm * effect) })),
    );
    judge.advance((window + 1) * WINDOW_MICROS);
  }
  const [plain] = judge.estimates(1, "ttft", "mean");
  const weights = windows.map(([own, others]) => (own * others) / (own + others));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  const expected = windows.reduce((sum, [, , effect], i) => sum + (weights[i]! * effect) / whole, 0);
  assert.equal(plain.count, 3);
  assert.ok(Math.abs(plain.mean - expected) < 1e-9 * expected, `${plain.mean}, not ${expected}`);
});

test("a window is compared when its last answer is there, not before, and at the latest when that has had its time", () => {
  const judge = new Judge(options(POOLS, { settleMicros: 2 * WINDOW_MICROS }));
  const [slow, ...others] = windowOf(POOLS, 0, { effectMicros: 0 });
  ended(judge, others);
  judge.arrived(0, WINDOW_MICROS);
  show(judge, POOLS, 1, { effectMicros: 0 }, 1);
  assert.equal(judge.difference(1, "ttft", "p99").count, 0, "the window after it waits for it");
  judge.observe(slow!);
  judge.advance(WINDOW_MICROS);
  assert.equal(judge.difference(1, "ttft", "p99").count, 1);
  judge.advance(2 * WINDOW_MICROS);
  assert.equal(judge.difference(1, "ttft", "p99").count, 2);
  judge.arrived(2, 3 * WINDOW_MICROS);
  ended(judge, windowOf(POOLS, 2, { effectMicros: 0 }));
  judge.advance(5 * WINDOW_MICROS - 1);
  assert.equal(judge.difference(1, "ttft", "p99").count, 2);
  judge.advance(5 * WINDOW_MICROS);
  assert.equal(judge.difference(1, "ttft", "p99").count, 3);
  assert.equal(judge.lateOutcomes, 0);
  judge.observe({ ...slow!, window: 2 });
  assert.equal(judge.lateOutcomes, 1);
  ended(judge, windowOf(POOLS, 3, { effectMicros: 0 }));
  judge.arrived(3, 4 * WINDOW_MICROS);
  judge.withdrawn(3);
  judge.advance(4 * WINDOW_MICROS);
  assert.equal(judge.difference(1, "ttft", "p99").count, 4, "it does not wait for what counts no longer");
  assert.deepEqual(
    judge.history.map(({ window, arms }) => [window, arms.map(({ requests }) => requests)]),
    [
      [0, [10, 10]],
      [1, [10, 10]],
      [2, [10, 10]],
      [3, [10, 10]],
    ],
  );
});

test("an arm that answers nothing is found by what waits there, in its first window, washout included", () => {
  const state = after(planOf(SWITCHBACK), stepOf("start", 0));
  const control: RolloutOutcome = { ...windowOf(SPLIT, 0, { effectMicros: 0 })[0]!, window: -1, counted: false };
  const waiting = (count: number, ageMicros: number) =>
    Array.from({ length: count }, (_, slice) => ({
      arm: 1,
      stretch: WINDOW_MICROS,
      slice,
      ageMicros,
      ttftMicros: undefined,
    }));
  for (const [guardrail, reason] of [
    [{ figure: "ttft.p90", absoluteMax: 2_000_000, samplesMin: 8 }, /arm-1: ttft\.p90 is 9\.\d+ s.* above 2\.000 s/],
    [{ figure: "overdue-rate", absoluteMax: 0.5, samplesMin: 8, overdueMicros: 2_000_000 }, /overdue-rate is 1/],
  ] as const) {
    const judge = new Judge(options(SWITCHBACK, { guardrails: [guardrail] }));
    for (let i = 0; i < 24; i++) judge.observe({ ...control, stretch: 0, slice: i });
    assert.equal(proposedStep(state, 5, judge.verdict(waiting(7, 9_000_000))), undefined, "too few");
    assert.equal(proposedStep(state, 5, judge.verdict(waiting(10, 200_000))), undefined, "not long");
    const step = proposedStep(state, 5, judge.verdict(waiting(16, 9_000_000)));
    assert.equal(step?.step, "rollback");
    assert.match(step.reason, reason);
    assert.equal(judge.totals[0]!.counts.requests, 0, "what is not counted is not compared");
  }
});

test("each arm's tally has counts, hits and how unevenly endpoints were used", () => {
  const judge = new Judge(options(SPLIT));
  show(judge, SPLIT, 1, { effectMicros: 0, failed: 6 });
  const [control, other] = judge.totals;
  assert.deepEqual([control!.hitRatio, other!.hitRatio], [0.25, 0.5]);
  assert.deepEqual([control!.errorRate, other!.errorRate], [0, 0.3]);
  assert.equal(control!.imbalance, 1.6);
  assert.equal(control!.time("tpot", "p90"), 10_000 - (10_000 % 64) + 31.5);
});

test("health: arms that answer nothing, wrong shares, arrivals that follow the arm and carry-over each have their sentence", () => {
  const healthy = (design: Design) => {
    const judge = new Judge(options(design));
    show(judge, design, 40, { effectMicros: 50 * MILLI });
    return judge.ailments();
  };
  for (const design of [SWITCHBACK, SPLIT, POOLS, REDRAWN, CANARY]) assert.deepEqual(healthy(design), [], design.kind);
  const kindsOf = (design: Design, windows: number, change: (one: RolloutOutcome, i: number) => RolloutOutcome[]) => {
    const judge = new Judge(options(design));
    for (let window = 0; window < windows; window++) {
      ended(judge, windowOf(design, window, { effectMicros: 0 }).flatMap(change));
      judge.advance((window + 1) * WINDOW_MICROS);
    }
    const step = proposedStep(after(planOf(design), stepOf("start", 0)), 1e9, judge.verdict());
    const found = judge.ailments();
    const does = found[0]?.kind === "carry-over" ? "lengthen" : "pause";
    if (found.length > 0) assert.equal(step?.step, does, "it does so by itself");
    return found.map(({ kind, arm }) => `${kind} ${arm}`);
  };
  const isOther = ({ arm }: RolloutOutcome) => arm === 1;
  assert.deepEqual(
    kindsOf(POOLS, 3, (one) => (isOther(one) ? [] : [one, one])),
    ["dead-arm 1"],
  );
  assert.deepEqual(
    kindsOf(REDRAWN, 60, (one, i) => (isOther(one) && i % 3 === 0 ? [] : [one])),
    ["arrivals 1"],
  );
  const canary = (change: (one: RolloutOutcome) => RolloutOutcome[], percent = 50) => {
    const judge = new Judge(options(CANARY));
    for (let window = 0; window < 20; window++) {
      ended(judge, windowOf(CANARY, window, { effectMicros: 0 }).flatMap(change));
      judge.advance((window + 1) * WINDOW_MICROS);
    }
    const step = proposedStep(after(planOf(CANARY), stepOf("start", 0)), 1e9, judge.verdict([], percent));
    const found = judge.ailments(percent);
    assert.equal(step?.step, found.length > 0 ? "pause" : undefined);
    return found.map(({ kind, arm }) => `${kind} ${arm}`);
  };
  assert.deepEqual(
    canary((one) => [one]),
    [],
  );
  // None of the sessions has an answer; and half of those of a step of 50 % where one of 25 % was meant.
  const unanswered = (one: RolloutOutcome): RolloutOutcome => {
    return { ...one, status: "failed", times: { ttft: undefined, tpot: undefined, e2e: undefined } };
  };
  assert.deepEqual(
    canary((one) => [isOther(one) ? unanswered(one) : one]),
    ["dead-arm 1", "sample-ratio 0"],
  );
  assert.deepEqual(
    canary((one) => [one], 25),
    ["sample-ratio 0", "sample-ratio 1"],
  );
  // A slower arm's sessions ask less often, which is no wrong draw.
  assert.deepEqual(
    canary((one) => (isOther(one) || Number(one.cluster.split("-")[2]) % 2 === 0 ? [one] : [one, one, one])),
    [],
  );
  const ratios = kindsOf(SPLIT, 60, (one, i) =>
    isOther(one) && i % 4 === 1 ? [] : [{ ...one, cluster: `${one.window} ${i}` }],
  );
  assert.deepEqual(ratios, ["sample-ratio 0", "sample-ratio 1"]);
  assert.deepEqual(
    kindsOf(SWITCHBACK, 60, (one, i) => (isOther(one) && i % 3 === 0 ? [] : [one])),
    ["arrivals 1"],
  );
  // The arm before it is there for the first half of a window.
  const slices = 20 * 8;
  const carried = kindsOf(SWITCHBACK, 60, (one, i) => {
    const late = isOther(one) && i >= 10 ? 150 * MILLI : 0;
    const times = { ...one.times, e2e: one.times.e2e! + late };
    return [{ ...one, slice: Math.floor((i * 2 * slices) / 20) + 80, times }];
  });
  assert.deepEqual(carried, ["carry-over 1"]);
});
