import assert from "node:assert/strict";
import { test } from "node:test";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { ForecastTrial } from "#core/latency/forecast-trial.ts";

/** First tokens that take 100 ms and 300 ms in turn, and what was forecast of each. */
function tried(trial: ForecastTrial, count: number, forecast: (measured: number) => number, from = 0): void {
  for (let i = from; i < from + count; i++) {
    const measured = (i % 2 === 0 ? 100 : 300) * MICROS_PER_MILLI;
    trial.add("a", i * MICROS_PER_SECOND, measured, forecast(measured), trial.average("a"));
  }
}

test("there is no verdict before some first tokens were seen", () => {
  const trial = new ForecastTrial();
  tried(trial, 20, (measured) => measured);
  assert.equal(trial.isNearer, undefined);
});

test("a forecast that is right is nearer than an average of what differs, and one that is off by eight is not", () => {
  const [right, wrong] = [new ForecastTrial(), new ForecastTrial()];
  tried(right, 100, (measured) => 1.2 * measured);
  tried(wrong, 100, (measured) => 8 * measured);
  assert.equal(right.isNearer, true);
  assert.equal(wrong.isNearer, false);
});

test("a forecast that becomes wrong loses, and one that is mended wins again", () => {
  const trial = new ForecastTrial();
  tried(trial, 200, (measured) => measured);
  tried(trial, 200, (measured) => measured / 10, 200);
  assert.equal(trial.isNearer, false);
  tried(trial, 400, (measured) => measured, 400);
  assert.equal(trial.isNearer, true);
});

test("one stall does not outweigh what came before it", () => {
  const trial = new ForecastTrial();
  tried(trial, 100, (measured) => measured);
  trial.add("a", 101 * MICROS_PER_SECOND, 600 * MICROS_PER_SECOND, 100 * MICROS_PER_MILLI, trial.average("a"));
  assert.equal(trial.isNearer, true);
});

test("the first token of an endpoint is held against no average", () => {
  const trial = new ForecastTrial();
  for (let i = 0; i < 100; i++) trial.add(`e${i}`, i, 1_000, 9_000, trial.average(`e${i}`));
  assert.equal(trial.isNearer, undefined);
});
