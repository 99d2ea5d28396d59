import assert from "node:assert/strict";
import { test } from "node:test";
import { sessionTimes } from "#sim/result/session-times.ts";
import { busyRun } from "./digest.ts";
import { loadProfile } from "#config/profile-file.ts";

test("a session's time is from its first request to its last answer, in whatever order they end", () => {
  const rows = {
    length: 5,
    session: [0, 1, 0, -1, 1],
    sessions: 2,
    arrivalAt: [10, 20, 100, 0, 30],
    e2e: [50, 200, 40, 999, 5],
  };
  assert.deepEqual([...sessionTimes(rows)], [130, 200]);
});

test("a session of which a request got no whole answer has no time", () => {
  const rows = { length: 3, session: [0, 0, 1], sessions: 2, arrivalAt: [0, 5, 7], e2e: [9, NaN, 1] };
  assert.deepEqual([...sessionTimes(rows)], [NaN, 1]);
});

test("a simulation's sessions take no less than their longest request, and there are no more than sessions", () => {
  const { metrics, outcomes } = busyRun(loadProfile("gnomon").spec, 5);
  const times = sessionTimes(outcomes);
  assert.equal(times.length, outcomes.sessions);
  assert.ok(outcomes.sessions > 50 && metrics.sessionMicros!.count <= outcomes.sessions);
  for (let row = 0; row < outcomes.length; row++) {
    const time = times[outcomes.session[row]!];
    if (time !== undefined && !Number.isNaN(time)) assert.ok(time >= outcomes.e2e[row]!);
  }
  assert.ok(metrics.sessionMicros!.mean > metrics.e2eMicros["all"]!.mean);
});
