import assert from "node:assert/strict";
import { test } from "node:test";
import { measured } from "#drive/measured.ts";
import { SampleLog } from "#drive/sample-log.ts";

test("the time per token of answers side by side is that of one", () => {
  const log = new SampleLog();
  const times = { dueMicros: 0, sentMicros: 0, headersMicros: 0, firstTokenMicros: 0, lastTokenMicros: 1_000 };
  const tokens = {
    promptTokens: 1,
    cachedTokens: 0,
    completionTokens: 33,
    gatewayHitTokens: 0,
    wantedOutputTokens: 33,
  };
  const rest = {
    outcome: "ok",
    status: 200,
    endpoint: "e",
    url: "u",
    finishReason: "length",
    errorMessage: "",
  } as const;
  log.add({ ...rest, ...times, ...tokens, endMicros: 1_000, sequences: 3 });
  assert.equal(measured(log).tpotMillis.mean, 0.1);
});
