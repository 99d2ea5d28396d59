import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { PATH_RULES } from "#core/retry/path-rules.ts";
import { MICROS_PER_MILLI } from "#core/units.ts";
import { DEFAULT_LIMITS, waitLimits } from "#live/request/limits.ts";
import { hangRules } from "#serve/live-hangs.ts";

test("a gateway that is not configured and a simulation go by the same rules about faults", () => {
  const { limits, health, scrape } = CONFIG_SCHEMA.parse({});
  assert.deepEqual(
    {
      attemptsMax: limits.attemptsMax,
      continuationsMax: limits.continuationsMax,
      ratio: limits.retryRatio,
      burst: limits.retryBurst,
    },
    PATH_RULES.retry,
  );
  assert.deepEqual(waitLimits({ ...DEFAULT_LIMITS, ...limits }), PATH_RULES.waits);
  const micros = (millis: number): number => millis * MICROS_PER_MILLI;
  assert.deepEqual(hangRules(health), PATH_RULES.hang);
  assert.equal(health.servedUntilWell, PATH_RULES.servedUntilWell);
  assert.equal(micros(limits.sweepMillis), PATH_RULES.sweepMicros);
  assert.equal(micros(scrape.lostAfterMillis), PATH_RULES.lostAfterMicros);
  assert.equal(micros(scrape.timeoutMillis), PATH_RULES.probeMicrosMax);
  assert.deepEqual(
    { retryMicros: micros(scrape.retryMillis), retryMicrosMax: micros(scrape.retryMillisMax) },
    PATH_RULES.returns,
  );
});
