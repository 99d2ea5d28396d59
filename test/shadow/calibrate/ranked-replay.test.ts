import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { engineDefaults } from "#engine/config.ts";
import { calibrate } from "#shadow/calibrate/calibrate.ts";
import type { Evidence } from "#shadow/calibrate/evidence.ts";
import { forcedReplay, tracedReplay } from "#shadow/calibrate/forced-replay.ts";

const TWO = engineDefaults({
  kvBlocks: 2000,
  sequencesMax: 8,
  batchTokensMax: 512,
  dataParallel: 2,
  stepTime: {
    kind: "coefficients",
    baseMicros: 5000,
    perPrefillTokenMicros: 30,
    perDecodeMicros: 200,
    perSequenceMicros: 0,
    perPrefillMicros: 0,
    perDecodeContextTokenMicros: 0.2,
    perPrefillPairMicros: 0,
  },
  queueDelay: { baseMicros: 1000, perPromptTokenMicros: 0 },
});

/** Times that two ranks made: more than one of them could serve. */
function evidence(): Evidence {
  const random = randomFor(7, 1);
  let arrivalAt = 0;
  const unanswered = Array.from({ length: 400 }, () => ({
    arrivalAt: (arrivalAt += random.below(100_000)),
    endpoint: 0,
    promptTokens: 20 + random.below(600),
    outputTokens: 20 + random.below(100),
    cachedTokens: NaN,
    ttftMicros: NaN,
    e2eMicros: NaN,
    ok: true,
    hashes: new Int32Array(0),
  }));
  const blank: Evidence = { endpoints: ["a"], rows: unanswered, left: {} };
  const { ttftMicros, e2eMicros } = forcedReplay(blank, TWO);
  return {
    ...blank,
    rows: unanswered.map((row, i) => ({ ...row, ttftMicros: ttftMicros[i]!, e2eMicros: e2eMicros[i]! })),
  };
}

const mean = (values: Iterable<number>) => {
  const all = [...values];
  return all.reduce((sum, one) => sum + one, 0) / all.length;
};

test("two ranks taken as one engine predict another queue altogether; taken as two, what happened", () => {
  const seen = evidence();
  const real = mean(seen.rows.map(({ ttftMicros }) => ttftMicros));
  assert.equal(mean(forcedReplay(seen, TWO).ttftMicros), real);
  assert.ok(mean(forcedReplay(seen, { ...TWO, dataParallel: 1 }).ttftMicros) > 3 * real);
});

test("what a time consists of is known rank by rank: the parts times the parameters are the whole", () => {
  const seen = evidence();
  const { e2eMicros, work } = tracedReplay(seen, TWO, seen.rows.length);
  const values = [1000, 5000, 30, 200, 0, 0.2, 0];
  const short = seen.rows.findIndex((_, row) => work.e2e[row * values.length] === 1);
  assert.equal(short, 0, "each has its delay");
  let compared = 0;
  seen.rows.forEach((_, row) => {
    const told = values.reduce((sum, value, j) => sum + value * work.e2e[row * values.length + j]!, 0);
    if (Math.abs(told - e2eMicros[row]!) < 0.02 * e2eMicros[row]!) compared++;
  });
  assert.ok(compared > 0.95 * seen.rows.length, `${compared} of ${seen.rows.length}`);
});

test("a fit of a run of two ranks finds their step", () => {
  const { heldOut, engine } = calibrate(evidence(), { sizes: TWO, fixed: {}, trainPart: 0.7 });
  assert.equal(engine.dataParallel, 2);
  assert.ok(Math.abs(heldOut.ttftMicros!.meanRelative) < 0.03);
  assert.ok(Math.abs(heldOut.e2eMicros!.meanRelative) < 0.01);
});
