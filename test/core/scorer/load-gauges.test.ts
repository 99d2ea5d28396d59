import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import { load, request, snapshot } from "../state.ts";

/** Running, waiting and ours, all there: 2, 4 and 9 requests. */
const CANDIDATES = [
  { id: "a", running: 2, waiting: 0, inFlight: 1, kv: 0.2 },
  { id: "b", running: 3, waiting: 1, inFlight: 2, kv: 0.5 },
  { id: "c", running: 5, waiting: 4, inFlight: 6, kv: 0.9 },
].map(({ id, running, waiting, inFlight, kv }) =>
  snapshot({
    id,
    freshness: "fresh",
    loadAgeMicros: 0,
    load: load({ running, waiting, kvUtilization: kv }),
    effectiveLoad: running + waiting,
    requestsInFlight: inFlight,
    kvUtilization: kv,
  }),
);

/** By hand from the formula that each names. */
const EXPECTED: Readonly<Record<string, readonly number[]>> = {
  "queue-depth": [1, 5 / 7, 0],
  "load-balance": [1 / 3, 1 / 5, 1 / 10],
  "kv-utilization": [0.8, 0.5, 0.1],
  "most-loaded": [0, 2 / 7, 1],
  "least-kv-cache": [1, 4 / 7, 0],
  "least-request": [1, 4 / 5, 0],
  queue: [1, 3 / 4, 0],
  "running-requests": [1, 2 / 3, 0],
  "queue-headroom": [1, 63 / 64, 60 / 64],
  "load-aware": [0.5, 0.5 * (127 / 128), 0.5 * (124 / 128)],
  "vllm-load": [1, (21 - 7) / (21 - 2), 0],
};

for (const [name, expected] of Object.entries(EXPECTED)) {
  test(`${name} is its formula`, () => {
    const scores = new Float64Array(CANDIDATES.length);
    CATALOG.scorers[name as keyof typeof CATALOG.scorers]
      .create(name, {})
      .score(request({ id: "r" }), CANDIDATES, scores);
    scores.forEach((score, i) =>
      assert.ok(Math.abs(score - expected[i]!) < 1e-12, `${i}: ${score}, not ${expected[i]}`),
    );
  });
}
