import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor, type Random } from "#core/base/random.ts";
import { type CountedEnds, type EndedRequest, explainCounts } from "#live/tap/explain-counts.ts";

const DELAY = 2_000;
const ONE: EndedRequest = {
  sequences: 1,
  promptTokens: 10,
  outputTokens: 10,
  micros: 50_000,
  outputSlack: 0,
  cells: [0, 1],
  optional: false,
};

/** Requests that ended at engines, and what each engine counted of them: the truth is known. */
function drawn(
  random: Random,
  requests: number,
  engines: number,
  draw: (random: Random) => Omit<EndedRequest, "cells" | "optional" | "outputSlack">,
) {
  const all = Array.from({ length: engines }, (_, i) => i);
  const ended = Array.from({ length: requests }, () => ({
    ...draw(random),
    cells: all,
    outputSlack: 0,
    optional: false,
  }));
  const truth = ended.map(() => random.below(engines));
  const cells = all.map((engine): CountedEnds => {
    const own = ended.filter((_, i) => truth[i] === engine);
    const sum = (of: (one: EndedRequest) => number) => own.reduce((total, one) => total + of(one), 0);
    return {
      ends: sum(({ sequences }) => sequences),
      promptTokens: sum(({ promptTokens }) => promptTokens),
      outputTokens: sum(({ outputTokens }) => outputTokens),
      micros: sum(({ micros }) => micros - DELAY - (random.below(2_000) - 1_000)),
    };
  });
  return { ended, cells, truth };
}

const ofManyLengths = (random: Random) => ({
  sequences: 1,
  promptTokens: 50 + random.below(2_000),
  outputTokens: 1 + random.below(300),
  micros: 100_000 + random.below(2_000_000),
});
const ofOneLength = (random: Random) => ({ ...ofManyLengths(random), promptTokens: 128, outputTokens: 32 });

test("ends of different lengths are found where they were counted, and it is known how surely", () => {
  let right = 0;
  let placed = 0;
  for (let seed = 1; seed <= 100; seed++) {
    const { ended, cells, truth } = drawn(randomFor(seed, 1), 8, 3, ofManyLengths);
    const { places, cutShort } = explainCounts(ended, cells, DELAY);
    assert.equal(cutShort, false);
    places.forEach((place, i) => {
      assert.ok(place !== undefined, `seed ${seed}`);
      placed++;
      if (place.cell === truth[i]) right++;
      else assert.ok(place.share < 0.99, `seed ${seed}: ${place.share} for the wrong one`);
    });
  }
  assert.ok(right / placed > 0.99, `${right} of ${placed}`);
});

test("several answers to one request are as many ends, and are found together", () => {
  const several = (random: Random) => {
    const sequences = 1 + random.below(4);
    const one = ofManyLengths(random);
    return {
      ...one,
      sequences,
      promptTokens: sequences * one.promptTokens,
      outputTokens: sequences * one.outputTokens,
    };
  };
  let placed = 0;
  for (let seed = 1; seed <= 100; seed++) {
    const { ended, cells, truth } = drawn(randomFor(seed, 2), 8, 3, several);
    explainCounts(ended, cells, DELAY).places.forEach((place, i) => {
      assert.ok(place !== undefined, `seed ${seed}`);
      if (place.cell === truth[i]) placed++;
      else assert.ok(place.share < 0.99, `seed ${seed}: ${place.share} for the wrong one`);
    });
  }
  assert.ok(placed > 0.99 * 800, String(placed));
});

test("equal lengths are found by their times, and what is claimed is as often right", () => {
  let [right, claimed, count] = [0, 0, 0];
  for (let seed = 1; seed <= 200; seed++) {
    const { ended, cells, truth } = drawn(randomFor(seed, 2), 5, 3, ofOneLength);
    explainCounts(ended, cells, DELAY).places.forEach((place, i) => {
      if (place === undefined) return;
      count++;
      claimed += place.share;
      if (place.cell === truth[i]) right++;
    });
  }
  assert.ok(right / count > 0.95, `${right} of ${count}`);
  assert.ok(Math.abs(right - claimed) / count < 0.02, `${claimed} claimed, ${right} right, of ${count}`);
});

test("what nothing distinguishes is claimed with the share of its chance", () => {
  const cell = { ends: 1, promptTokens: 10, outputTokens: 10, micros: 48_000 };
  const { places } = explainCounts([ONE, ONE], [cell, cell], DELAY);
  for (const place of places) assert.ok(Math.abs(place!.share - 0.5) < 1e-9);
});

test("figures that are not known bind nothing", () => {
  const one = { ...ONE, promptTokens: NaN, outputTokens: 7 };
  const cells = [
    { ends: 1, promptTokens: 99, outputTokens: 5, micros: NaN },
    { ends: 1, promptTokens: 11, outputTokens: 7, micros: NaN },
  ];
  const { places } = explainCounts([one, { ...one, outputTokens: 5 }], cells, DELAY);
  assert.deepEqual(
    places.map((place) => place?.cell),
    [1, 0],
  );
});

test("a request for more answers than were counted takes no time and no place", () => {
  const one = { ...ONE, cells: [0] };
  // What a client may ask for in one body: as many prompts as it holds, with 16,384 answers each.
  const endless = { ...one, sequences: 16_384 * 1_000_000, promptTokens: 2 ** 40, outputTokens: NaN, optional: true };
  const cell = { ends: 1, promptTokens: 10, outputTokens: 10, micros: 48_000 };
  const { places } = explainCounts([endless, one], [cell], DELAY);
  assert.deepEqual(
    places.map((place) => place?.cell),
    [undefined, 0],
  );
});

test("ends of others among the counts make it less sure, and impossible ones no place", () => {
  const busy = { ends: 3, promptTokens: 500, outputTokens: 90, micros: 600_000 };
  const [place] = explainCounts([ONE], [{ ends: 0, promptTokens: 0, outputTokens: 0, micros: 0 }, busy], DELAY).places;
  assert.equal(place?.cell, 1);
  const small = { ends: 1, promptTokens: 9, outputTokens: 10, micros: 48_000 };
  assert.deepEqual(explainCounts([ONE], [small, small], DELAY).places, [undefined]);
});

test("a client that left need not be counted anywhere", () => {
  const left = {
    sequences: 1,
    promptTokens: NaN,
    outputTokens: NaN,
    micros: 50_000,
    outputSlack: 0,
    cells: [0],
    optional: true,
  };
  const none = { ends: 0, promptTokens: 0, outputTokens: 0, micros: 0 };
  assert.deepEqual(explainCounts([left], [none], DELAY).places, [undefined]);
});

test("too much to look at is given up, and that is reported", () => {
  const equal = { ...ONE, cells: [0, 1, 2, 3] };
  const cell = { ends: 8, promptTokens: 80, outputTokens: 80, micros: 384_000 };
  const { places, cutShort } = explainCounts(
    Array.from({ length: 32 }, () => equal),
    [cell, cell, cell, cell],
    DELAY,
  );
  assert.equal(cutShort, true);
  assert.ok(places.every((place) => place === undefined));
});
