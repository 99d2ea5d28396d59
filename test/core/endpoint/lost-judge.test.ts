import assert from "node:assert/strict";
import { test } from "node:test";
import { LostJudge, returnPause } from "#core/endpoint/lost-judge.ts";

test("a server is lost when nobody accepted a connection for the whole time", () => {
  const judge = new LostJudge(5_000);
  assert.equal(judge.unreachable(100), false);
  assert.equal(judge.unreachable(5_099), false);
  assert.equal(judge.reached(), true);
  assert.equal(judge.reached(), false);
  assert.equal(judge.unreachable(6_000), false, "it begins anew");
  assert.equal(judge.unreachable(11_000), true);
});

test("pauses double to their maximum and differ by a fifth at most", () => {
  const pauses = { retryMicros: 250_000, retryMicrosMax: 5_000_000 };
  for (const [attempt, pause] of [250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 5_000_000, 5_000_000].entries()) {
    const found = returnPause("http://a", attempt, pauses);
    assert.ok(found >= 0.8 * pause && found <= 1.2 * pause, `${found} of ${pause}`);
    assert.equal(found, returnPause("http://a", attempt, pauses));
  }
  assert.notEqual(returnPause("http://a", 1, pauses), returnPause("http://b", 1, pauses));
});
