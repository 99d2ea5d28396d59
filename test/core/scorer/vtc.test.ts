import assert from "node:assert/strict";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { snapshot, request } from "../state.ts";

const SECOND = 1_000_000;
/** Four endpoints, nothing running. */
const IDLE = ["a", "b", "c", "d"].map((id) => snapshot({ id }));
const ROUTED = { kind: "routed", attempt: 1 } as Decision;

function scorer(parameters: Readonly<Record<string, number | string>> = {}) {
  const made = CATALOG.scorers.vtc.create("vtc", parameters);
  return {
    scores(tenant: string, candidates = IDLE): number[] {
      const scores = new Float64Array(candidates.length);
      made.score(request({ id: "asked", tenant }), candidates, scores);
      return [...scores].map((score) => Number(score.toFixed(6)));
    },
    /** A request of the tenant that is sent, and ends with so many output tokens as the engine counts them. */
    serve(id: string, tenant: string, promptTokens: number, outputTokens?: number, sequences = 1): void {
      const asked = request({ id, tenant, promptTokens, sequences });
      made.observe!({ kind: "request-arrived", at: SECOND, request: asked }, ROUTED, asked);
      if (outputTokens === undefined) return;
      const end = { kind: "request-finished", at: SECOND, requestId: id, outcome: "ok", promptTokens, outputTokens };
      made.observe!(end as Input, undefined, asked);
    },
  };
}

test("a tenant without service is placed at the first endpoint, one with the bucket's tokens at the second", () => {
  const vtc = scorer();
  // cost_i = |i - norm|, of at most 3 + 1; without any tenant the bucket is (1,000 + 8,000) / 2.
  assert.deepEqual(vtc.scores("new"), [1, 0.75, 0.5, 0.25]);
  vtc.serve("one", "busy", 1_000, 500);
  // The only tenant of the window: its own 2,000 weighted tokens are the bucket.
  assert.deepEqual(vtc.scores("busy"), [0.75, 1, 0.75, 0.5]);
  vtc.serve("two", "light", 100, 50);
  // (2,000 + 200) / 2 is the bucket, and busy has 1.818 of it.
  assert.deepEqual(vtc.scores("busy"), [0.545455, 0.795455, 0.954545, 0.704545]);
});

test("the most that was served is the measure where that is asked for, and a bucket is never below its least", () => {
  const most = scorer({ bucket: "max" });
  most.serve("one", "busy", 4_000, 0);
  most.serve("two", "light", 2_000, 0);
  assert.deepEqual(most.scores("busy"), [0.75, 1, 0.75, 0.5]);
  assert.deepEqual(most.scores("light"), [0.875, 0.875, 0.625, 0.375]);
  const small = scorer();
  small.serve("one", "t", 500, 0);
  assert.deepEqual(small.scores("t"), [0.875, 0.875, 0.625, 0.375], "500 of at least 1,000 tokens");
  small.serve("two", "t", 90_000, 0);
  small.serve("three", "u", 10, 0);
  assert.deepEqual(small.scores("t"), [0.500055, 0.750055, 0.999945, 0.749945], "90,500 of (90,500 + 10) / 2");
});

test("an endpoint's load counts against it up to full, and weights of zero leave nothing to choose by", () => {
  const loaded = IDLE.map((one, i) => snapshot({ ...one, requestsInFlight: 50 * i }));
  assert.deepEqual(scorer().scores("new", loaded), [1, 0.625, 0.25, 0]);
  assert.deepEqual(scorer({ fairnessWeight: 0 }).scores("new", loaded), [1, 0.5, 0, 0]);
  assert.deepEqual(scorer({ utilizationWeight: 0 }).scores("new", loaded), [1, 0.666667, 0.333333, 0]);
  assert.deepEqual(scorer({ fairnessWeight: 0, utilizationWeight: 0 }).scores("new", loaded), [1, 1, 1, 1]);
});

test("a request is charged with an estimate, and its end puts the engine's counts in its place", () => {
  const vtc = scorer({ minTokens: 1 });
  vtc.serve("open", "a", 1_000);
  vtc.serve("ended", "b", 1_000, 100);
  // a: 1,000 + 2 * 1,500 by estimate; b: 1,000 + 2 * 100 as counted. The bucket is 2,600.
  assert.deepEqual(vtc.scores("a"), [0.615385, 0.865385, 0.884615, 0.634615]);
  assert.deepEqual(vtc.scores("b"), [0.884615, 0.865385, 0.615385, 0.365385]);
});

test("all tokens of several answers are charged, and as many answers expected as are asked for", () => {
  const [vtc, plain] = [scorer({ outputPrediction: "observed" }), scorer({ outputPrediction: "observed" })];
  vtc.serve("ended", "a", 1_000, 1_000, 4);
  plain.serve("ended", "a", 1_000, 1_000);
  plain.serve("other", "b", 10, 0);
  vtc.serve("other", "b", 10, 0);
  assert.deepEqual(vtc.scores("a"), plain.scores("a"));
  // One answer of 250 tokens, and four of them.
  vtc.serve("open", "c", 100, 250);
  plain.serve("open", "c", 100, 250);
  vtc.serve("more", "c", 100, undefined, 4);
  plain.serve("more", "c", 100, 1_000);
  assert.deepEqual(vtc.scores("c"), plain.scores("c"));
});

test("requests of nobody score 1 everywhere and are charged to nobody", () => {
  const vtc = scorer();
  vtc.serve("one", "", 9_000, 900);
  assert.deepEqual(vtc.scores(""), [1, 1, 1, 1]);
  assert.deepEqual(vtc.scores("new"), [1, 0.75, 0.5, 0.25]);
});
