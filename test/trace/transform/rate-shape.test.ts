import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { gammaFunction, gapDraw, type GapProcess } from "#trace/import/arrival-gap.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { RateShape } from "#trace/transform/rate-shape.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { synthesize } from "#trace/import/synthetic.ts";

const SECOND = 1_000_000;

function arrivalsOf(spec: object, conversations = 20_000): number[] {
  const whole = { conversations, groups: [{ name: "g", userTokens: 1, outputTokens: 1 }], ...spec };
  const requests = synthesize(
    parseSyntheticSpec("spec", JSON.stringify(whole)),
    3,
    new ImportReport("spec", "synthetic", true),
  );
  return Array.from(requests, ({ arrivalMicros }) => arrivalMicros);
}

test("the gamma function at whole and half places", () => {
  let factorial = 1;
  for (let n = 1; n < 12; n++) {
    assert.ok(Math.abs(gammaFunction(n) / factorial - 1) < 1e-12, `Gamma(${n})`);
    factorial *= n;
  }
  assert.ok(Math.abs(gammaFunction(1.5) / (Math.sqrt(Math.PI) / 2) - 1) < 1e-12);
});

test("gaps have mean 1 and the deviation of their process", () => {
  const k = 0.6;
  const weibullSquare = gammaFunction(1 + 2 / k) / gammaFunction(1 + 1 / k) ** 2 - 1;
  const expected: [GapProcess, number][] = [
    [{ process: "constant" }, 0],
    [{ process: "poisson" }, 1],
    [{ process: "gamma", cv: 2 }, 4],
    [{ process: "weibull", shape: k }, weibullSquare],
  ];
  for (const [gaps, variance] of expected) {
    const draw = gapDraw(gaps, randomFor(9, 1));
    const values = Float64Array.from({ length: 200_000 }, draw);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const spread = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
    assert.ok(Math.abs(mean - 1) < 0.03, `${gaps.process}: mean ${mean}`);
    assert.ok(Math.abs(spread - variance) <= 0.1 * variance, `${gaps.process}: variance ${spread}, ${variance}`);
  }
});

test("a shaped clock runs as fast as the rate: its time adds up whatever the steps", () => {
  const shapes = [
    new RateShape(
      [
        { startSeconds: 3, endSeconds: 9, factor: 2 },
        { startSeconds: 20, endSeconds: 30, factor: 0.5 },
      ],
      undefined,
      undefined,
    ),
    new RateShape([], { periodSeconds: 60, peakAtSeconds: 15, peakToTrough: 5 }, undefined),
    new RateShape([], undefined, { burstSeconds: 1, quietSeconds: 4, burstFactor: 3 }),
  ];
  for (const shape of shapes) {
    const whole = shape.after(0, 10 * SECOND);
    let at = 0;
    for (let i = 0; i < 1000; i++) at = shape.after(at, 10_000);
    assert.ok(Math.abs(at - whole) < 1, `${at} in steps, ${whole} at once`);
  }
  assert.equal(shapes[0]!.after(0, SECOND), 3.5 * SECOND);
  assert.equal(shapes[0]!.after(0, 12 * SECOND + 1), 20 * SECOND + 2);
  assert.equal(shapes[0]!.after(0, 18 * SECOND), Infinity, "nothing after the last window");
});

test("windows hold all arrivals, a day its peak, bursts their share; the mean rate stays", () => {
  const poisson = { process: "poisson", ratePerSecond: 100 };
  const windows = [
    { startSeconds: 10, endSeconds: 20, factor: 1 },
    { startSeconds: 50, endSeconds: 60, factor: 3 },
  ];
  const windowed = arrivalsOf({ arrivals: poisson, windows }).map((at) => at / SECOND);
  assert.ok(windowed.every((at) => (at >= 10 && at < 20) || (at >= 50 && at <= 60)));
  const early = windowed.filter((at) => at < 20).length;
  assert.ok(
    Math.abs(early - 1000) < 120 && Math.abs(windowed.length - early - 3000) < 220,
    `${early} of ${windowed.length}`,
  );

  const daily = arrivalsOf({ arrivals: poisson, diurnal: { periodSeconds: 100, peakAtSeconds: 25, peakToTrough: 4 } });
  const inPhase = (from: number, to: number) =>
    daily.filter((at) => (at / SECOND) % 100 >= from && (at / SECOND) % 100 < to).length;
  assert.ok(inPhase(20, 30) > 2.5 * inPhase(70, 80));
  assert.ok(Math.abs(daily.at(-1)! / SECOND - 200) < 10, "20,000 at 100 a second in two periods");

  const bursty = arrivalsOf({
    arrivals: { process: "bursty", ratePerSecond: 100, burstFactor: 4, burstSeconds: 1, quietSeconds: 4 },
  });
  const inBurst = bursty.filter((at) => (at / SECOND) % 5 < 1).length / bursty.length;
  assert.ok(Math.abs(inBurst - 0.8) < 0.02, `${inBurst} in bursts`);
});

test("a burst that would need a negative rate in quiet times is refused with its path", () => {
  const arrivals = { process: "bursty", ratePerSecond: 1, burstFactor: 10, burstSeconds: 1, quietSeconds: 4 };
  assert.throws(() => arrivalsOf({ arrivals }), /arrivals\.burstFactor: expected at most/);
});
