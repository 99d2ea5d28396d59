import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision, Routed } from "#core/input/decision.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { type ObservedPlace, UNOBSERVED } from "#core/request/observed-place.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "./state.ts";

const IDS = ["a", "b", "c"];

function router(): Router {
  const { spec } = loadProfile("gnomon");
  const made = new Router({
    seed: 1,
    profiles: { gnomon: spec },
    defaultProfile: "gnomon",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of IDS) {
    const endpoint = { id, models: ["m"], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

const seenAt = (endpoint: string): ObservedPlace => ({ endpoint, by: "header", sure: 1 });

function arrive(made: Router, id: string, observed?: ObservedPlace, model = "m"): Decision {
  const asked = request({ id, model, promptTokens: 64, blocks: chain(5, 4) });
  return made.accept({ kind: "request-arrived", at: 10, request: asked, ...(observed && { observed }) });
}

function routed(decision: Decision): Routed {
  assert.ok(decision.kind === "routed");
  return decision;
}

const inFlight = (made: Router) => made.endpointRows(10).map(({ requestsInFlight }) => requestsInFlight);

test("a request is where another router sent it: the charge, and the blocks that later requests find", () => {
  const made = router();
  const { endpoint, reason, profile } = routed(arrive(made, "1", seenAt("c")));
  assert.deepEqual([endpoint, reason, profile], ["c", "observed", "gnomon"]);
  assert.deepEqual(inFlight(made), [0, 0, 1]);
  const { breakdown } = routed(arrive(made, "2", seenAt("a")));
  assert.deepEqual(
    breakdown.candidates.map(({ hitTokens }) => hitTokens > 0),
    [false, false, true],
  );
  assert.deepEqual(inFlight(made), [1, 0, 1]);
});

test("what this router would not have allowed is no objection to where another one sent a request", () => {
  const made = router();
  made.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "b" });
  assert.equal(routed(arrive(made, "1", seenAt("b"))).endpoint, "b");
  // Not even where none of its own would do.
  assert.equal(routed(arrive(made, "2", seenAt("a"), "unknown")).endpoint, "a");
  assert.deepEqual(inFlight(made), [1, 1, 0]);
});

test("where nobody knows where it went, or the endpoint is not there, it is where this router would have sent it", () => {
  const own = routed(arrive(router(), "1"));
  for (const observed of [UNOBSERVED, seenAt("gone")]) {
    const { endpoint, reason } = routed(arrive(router(), "1", observed));
    assert.deepEqual([endpoint, reason], [own.endpoint, own.reason]);
  }
});

test("what the profile saw is in the decision whatever was observed", () => {
  const own = routed(arrive(router(), "1"));
  for (const id of IDS) {
    const { breakdown } = routed(arrive(router(), "1", seenAt(id)));
    assert.deepEqual([...breakdown.totals], [...own.breakdown.totals]);
  }
});

test("when all observed requests are over, nothing is charged", () => {
  const made = router();
  IDS.forEach((id, i) => arrive(made, String(i), seenAt(id)));
  IDS.forEach((_, i) => {
    const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 3 };
    made.accept({ kind: "request-finished", at: 20 + i, requestId: String(i), outcome: "ok", ...counts });
  });
  assert.deepEqual([made.inFlight, made.openCharges], [0, 0]);
});
