import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { Router } from "#core/router.ts";
import { request } from "../state.ts";

const TURNS: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
const LOWEST: ProfileSpec = {
  filters: [],
  scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};

function routerOf(profiles: Record<string, ProfileSpec>, defaultProfile: string): Router {
  const router = new Router({
    seed: 1,
    profiles,
    defaultProfile,
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of ["a", "b", "c"]) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return router;
}

function ask(router: Router, id: string, profile = ""): Decision {
  const decision = router.accept({ kind: "request-arrived", at: 10, request: request({ id, profile }) });
  router.accept({
    kind: "request-finished",
    at: 10,
    requestId: id,
    outcome: "ok",
    promptTokens: 1,
    cachedTokens: 0,
    outputTokens: 1,
  });
  return decision;
}

function change(router: Router, version: number, profiles: Record<string, ProfileSpec>, defaultProfile: string): void {
  router.accept({ kind: "policy-changed", at: 10, version, source: "file", profiles, defaultProfile });
}

const placeOf = (decision: Decision) => (decision.kind === "routed" ? decision.endpoint : decision.reason);

test("a policy decides from the next decision on, each names its version, and profiles that it lacks are gone", () => {
  const router = routerOf({ one: LOWEST, two: TURNS }, "one");
  const named = (decision: Decision) => [decision.profile, decision.policyVersion];
  assert.deepEqual(named(ask(router, "r0")), ["one", 1]);
  assert.deepEqual(named(ask(router, "r1", "two")), ["two", 1]);
  change(router, 2, { three: TURNS }, "three");
  assert.equal(router.policyVersion, 2);
  assert.deepEqual(named(ask(router, "r2")), ["three", 2]);
  assert.deepEqual(named(ask(router, "r3", "two")), ["three", 2]);
  // One profile beside the others is no other policy.
  router.accept({ kind: "profile-changed", at: 10, name: "two", profile: LOWEST });
  assert.deepEqual(named(ask(router, "r4", "two")), ["two", 2]);
});

test("a request under way when its profile goes is retried under the policy in force", () => {
  const router = routerOf({ one: LOWEST, two: TURNS }, "one");
  router.accept({ kind: "request-arrived", at: 10, request: request({ id: "r", profile: "two" }) });
  change(router, 2, { three: LOWEST }, "three");
  router.accept({ kind: "attempt-failed", at: 11, requestId: "r", fault: "connect" });
  const again = router.accept({ kind: "request-retried", at: 12, requestId: "r" });
  assert.deepEqual([again.profile, again.policyVersion, again.attempt], ["three", 2, 2]);
});

test("a policy that changes other things lets turns go on, one with another picker begins anew", () => {
  const router = routerOf({ turns: TURNS }, "turns");
  const first = [0, 1].map((i) => placeOf(ask(router, `r${i}`)));
  change(router, 2, { turns: TURNS, other: LOWEST }, "turns");
  const next = placeOf(ask(router, "r2"));
  assert.equal(new Set([...first, next]).size, 3, "the third endpoint has its turn");
  change(router, 3, { other: LOWEST }, "other");
  change(router, 4, { turns: TURNS, other: LOWEST }, "turns");
  assert.equal(placeOf(ask(router, "r3")), first[0], "what was gone begins anew");
});

test("plugins are taken over by plugin and parameters in whatever order, each once, weights aside", () => {
  const spec = loadProfile("llm-d").spec;
  const before = { spec, profile: buildProfile("p", spec) };
  const [first, second] = spec.scorers;
  const heavier = {
    ...spec,
    scorers: [
      { ...second!, weight: 9 },
      { ...first!, weight: 1 },
    ],
  };
  const after = buildProfile("p", heavier, true, before);
  const scorers = before.profile.plugins.scorers.map(({ scorer }) => scorer);
  assert.equal(after.plugins.scorers[0]!.scorer, scorers[1]);
  assert.equal(after.plugins.scorers[1]!.scorer, scorers[0]);
  assert.equal(after.plugins.picker, before.profile.plugins.picker);
  const parameters = { tieBreak: "random", epsilon: 0.1 };
  const swapped = { epsilon: 0.1, tieBreak: "random" };
  const picks = { ...spec, picker: { plugin: "max-score", parameters } };
  const one = { spec: picks, profile: buildProfile("p", picks) };
  const same = buildProfile("p", { ...picks, picker: { plugin: "max-score", parameters: swapped } }, true, one);
  assert.equal(same.plugins.picker, one.profile.plugins.picker);
  const other = { plugin: "max-score", parameters: { ...parameters, epsilon: 0.2 } };
  assert.notEqual(buildProfile("p", { ...picks, picker: other }, true, one).plugins.picker, same.plugins.picker);
});
