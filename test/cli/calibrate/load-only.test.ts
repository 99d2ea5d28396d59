import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observed } from "#shadow/recorded/observed.ts";
import { NOT_WHOLE } from "#shadow/recorded/uncompared-reason.ts";
import { loadOnly } from "#cli/calibrate/load-only.ts";

const SEEN: Observed = {
  endpoint: "a",
  ok: true,
  ttftMicros: 10,
  e2eMicros: 50,
  outputTokens: 4,
  cachedTokens: 0,
  attempts: 1,
  retriedMicros: 0,
};

test("whatever was served and is not compared is counted once, by reason", () => {
  const aborted: Observed = { ...SEEN, ok: false, uncompared: NOT_WHOLE.aborted };
  const whole: Observed = { ...SEEN, ttftMicros: NaN };
  const elsewhere: Observed[] = [
    { ...SEEN, attempts: 2 },
    { ...aborted, endpoint: "" },
  ];
  assert.deepEqual(loadOnly([SEEN, aborted, aborted, whole, ...elsewhere]), {
    [NOT_WHOLE.aborted]: 2,
    "without a first token that was seen": 1,
  });
});
