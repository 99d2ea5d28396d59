import assert from "node:assert/strict";
import { test } from "node:test";
import { engineDefaults } from "#engine/config.ts";
import { inOneGo } from "#shadow/calibrate/calibrate.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { calibrateUnstated } from "#shadow/calibrate/found-scheduling.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import { runOn } from "./simulated-run.ts";

const TRUE = {
  delayMicros: 2500,
  baseMicros: 8000,
  perPrefillTokenMicros: 30,
  perDecodeMicros: 60,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
};

// Once the other way is found, and once the assumed one is kept.
for (const asyncScheduling of [true, false]) {
  for (const assumed of [false]) {
    test(`traffic of an engine with async scheduling ${asyncScheduling} shows it, and its times, whatever was assumed (${assumed})`, () => {
      const sizes = engineDefaults({ kvBlocks: 3000, sequencesMax: 32, asyncScheduling });
      const run = runOn(engineWith(sizes, TRUE), { requests: 160, seed: 3, gapMicros: 60_000 });
      const guess = { ...sizes, asyncScheduling: assumed };
      const evidence = evidenceOf(run, sizes.blockTokens);
      const { calibration, note } = inOneGo(calibrateUnstated(evidence, { sizes: guess }));
      assert.equal(calibration.engine.asyncScheduling, asyncScheduling, note);
      assert.match(note, new RegExp(`^asyncScheduling ${asyncScheduling}: not stated`));
      const { perPrefillMicros, perPrefillTokenMicros, baseMicros } = calibration.parameters;
      assert.ok(Math.abs(perPrefillTokenMicros / TRUE.perPrefillTokenMicros - 1) < 0.05, String(perPrefillTokenMicros));
      assert.ok(Math.abs(baseMicros / TRUE.baseMicros - 1) < 0.05, String(baseMicros));
      assert.ok(perPrefillMicros < 500, String(perPrefillMicros));
    });
  }
}
