import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { type CascadeFigures, type SimulatedCascade, simulatedCascade } from "#sim/cascade/cascade-stage.ts";
import type { StagedOptions } from "#sim/path/stage-performer.ts";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { ListedArrivals } from "../../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, WEIGHTED } from "../cluster.ts";

const MIN = -0.5;
/** Every step takes a millisecond. */
const STEP = { kind: "coefficients", baseMicros: 1000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

function cascade(mean: number, judgedTokensMax: number, more: Partial<SimulatedCascade> = {}): SimulatedCascade {
  return {
    spec: { name: "c", steps: [{ model: "small", logprobMin: MIN }, { model: "large" }], judgedTokensMax },
    confidence: [
      { mean, deviation: 0, tokenDeviation: 0 },
      { mean: 0, deviation: 0, tokenDeviation: 0 },
    ],
    escalationsInFlightMax: 1_000,
    heldBytesMax: Infinity,
    ...more,
  };
}

/** One small and one large engine, and requests of 20 tokens each 100 ms. */
function options(
  given: SimulatedCascade | undefined,
  count: number,
  more: Partial<SimulationOptions> = {},
): StagedOptions {
  const specs = engines(2, { stepTime: STEP, coalesce: given?.spec.judgedTokensMax === Infinity }).map((spec, i) => ({
    ...spec,
    endpoint: { ...spec.endpoint, models: [i === 0 ? "small" : "large"] },
  }));
  const arrivals = Array.from({ length: count }, (_, i) => listed(i, i * 100_000, 10, 20));
  const options = cluster(WEIGHTED, specs, { arrivals: new ListedArrivals(arrivals), ...more });
  return { ...options, ...(given && { stages: [simulatedCascade(given)] }) };
}

const figuresOf = ({ stages }: SimulationResult) => stages[0]!.figures as CascadeFigures;

describe("a simulated cascade", () => {
  test("an answer that is sure has its engine's times; its first byte waits until it is judged", () => {
    const result = simulate(options(cascade(-0.4, 5), 3));
    const { outcomes } = result;
    assert.deepEqual([...outcomes.ttft], [5_000, 5_000, 5_000]);
    assert.deepEqual([...outcomes.e2e], [20_000, 20_000, 20_000]);
    assert.deepEqual([...outcomes.endpoint], [0, 0, 0]);
    assert.deepEqual(figuresOf(result), { escalated: [0], kept: { sure: 3 }, escalatedShare: 0 });
    const whole = simulate(options(cascade(-0.4, Infinity), 3)).outcomes;
    assert.deepEqual([...whole.ttft], [20_000, 20_000, 20_000]);
    assert.deepEqual([...whole.e2e], [20_000, 20_000, 20_000]);
  });

  test("one that is not costs the small engine's time up to then, and begins anew at the large one", () => {
    const result = simulate(options(cascade(-0.6, 5), 3));
    const { outcomes } = result;
    assert.deepEqual([...outcomes.ttft], [6_000, 6_000, 6_000]);
    assert.deepEqual([...outcomes.e2e], [25_000, 25_000, 25_000]);
    assert.deepEqual([...outcomes.endpoint], [1, 1, 1]);
    assert.deepEqual([...outcomes.outputTokens], [20, 20, 20]);
    assert.deepEqual(figuresOf(result), { escalated: [3], kept: {}, escalatedShare: 1 });
    const whole = simulate(options(cascade(-0.6, Infinity), 3)).outcomes;
    assert.deepEqual([...whole.e2e], [40_000, 40_000, 40_000]);
  });

  test("an answer shorter than is judged by is judged at its end", () => {
    const { outcomes } = simulate(options(cascade(-0.4, 50), 1));
    assert.deepEqual([outcomes.ttft[0], outcomes.e2e[0]], [20_000, 20_000]);
  });

  test("beyond the escalations that may be under way answers are kept", () => {
    const given = cascade(-0.6, 5, { escalationsInFlightMax: 1 });
    const result = simulate(
      options(given, 0, { arrivals: new ListedArrivals([0, 1, 2].map((i) => listed(i, i, 10, 20))) }),
    );
    assert.deepEqual(figuresOf(result), { escalated: [1], kept: { full: 2 }, escalatedShare: 1 / 3 });
  });

  test("shares follow the model of acceptance, every verdict is core's, and a replay decides the same", () => {
    const inputs: Input[] = [];
    const decisions: Decision[] = [];
    const observe = (input: Input, decision: Decision | undefined): void => {
      inputs.push(input);
      if (decision !== undefined) decisions.push(decision);
    };
    const confidence = [
      { mean: MIN, deviation: 0.2, tokenDeviation: 0.4 },
      { mean: 0, deviation: 0, tokenDeviation: 0 },
    ];
    const run = () => simulate(options(cascade(0, 4, { confidence }), 400, { observe }));
    const first = run();
    assert.ok(Math.abs(figuresOf(first).escalatedShare - 0.5) < 0.1, `${figuresOf(first).escalatedShare}`);
    for (const input of inputs) {
      if (input.kind === "answer-judged") assert.ok(input.meanLogprob >= MIN && input.kept === "sure");
      if (input.kind === "request-escalated") assert.ok(input.meanLogprob < MIN && input.tokens === 4);
    }
    const router = new Router({
      seed: 7,
      profiles: { tested: WEIGHTED },
      defaultProfile: "tested",
      blockTokens: 16,
      staleAfterMicros: 3_000_000,
      index: new ApproximateIndex(),
    });
    assert.deepEqual(
      inputs.map((input) => router.accept(input)).filter((decision) => decision !== undefined),
      decisions,
    );
    assert.deepEqual([router.openCharges, router.inFlight, router.strayInputs], [0, 0, 0]);
    assert.deepEqual(run().outcomes, first.outcomes);
  });
});
