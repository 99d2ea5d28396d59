import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision, Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { DisaggregationSpec, ProfileSpec } from "#core/plugin/spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "../state.ts";
import { drawTraffic } from "../traffic.ts";
import { drawnSeeds } from "../../drawn-seeds.ts";

const ROLE = "llm-d.ai/role";
const SHIPPED = loadProfile("gnomon-pd").spec;

function profile(more: Partial<DisaggregationSpec> = {}): ProfileSpec {
  const { disaggregation } = SHIPPED;
  assert.ok(disaggregation !== undefined);
  return { ...SHIPPED, disaggregation: { ...disaggregation, ...more } };
}

function routerOf(spec: ProfileSpec = profile()): Router {
  return new Router({
    seed: 1,
    profiles: { shared: spec },
    defaultProfile: "shared",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
}

/** Endpoints named after their roles: p0 prefill, d0 decode, b0 both; u0 has no label. */
function fleet(ids: readonly string[], spec?: ProfileSpec, labels: Readonly<Record<string, string>> = {}): Router {
  const made = routerOf(spec);
  for (const id of ids) made.accept({ kind: "endpoint-joined", at: 0, endpoint: endpoint(id, labels) });
  return made;
}

const roles = { p: "prefill", d: "decode", b: "both" } as const;
function endpoint(id: string, labels: Readonly<Record<string, string>> = {}) {
  const role = roles[id[0] as keyof typeof roles] as string | undefined;
  const own = role === undefined ? {} : { [ROLE]: role };
  return { id, models: [], labels: { ...own, ...labels }, kvCapacityTokens: 64_000, concurrencyMax: 8 };
}

const LONG = chain(3, 64);
const ask = (made: Router, id: string, at = 10, more: Partial<Parameters<typeof request>[0]> = {}): Routed => {
  const asked = request({ blocks: LONG, promptTokens: 1024, ...more, id });
  return routed(made.accept({ kind: "request-arrived", at, request: asked }));
};
const retry = (made: Router, requestId: string, at: number): Routed =>
  routed(made.accept({ kind: "request-retried", at, requestId }));
function routed(decision: Decision): Routed {
  return decision.kind === "routed" ? decision : assert.fail(decision.reason);
}
const prefilled = (made: Router, requestId: string, at: number) =>
  made.accept({ kind: "prefill-finished", at, requestId, cachedTokens: 0 });
const first = (made: Router, requestId: string, at: number) => made.accept({ kind: "first-token", at, requestId });
function end(
  made: Router,
  requestId: string,
  at: number,
  outcome: "ok" | "aborted" | "timeout" | "failed" = "ok",
): void {
  const counts = { promptTokens: 1024, cachedTokens: 1023, outputTokens: 4 };
  made.accept({ kind: "request-finished", at, requestId, outcome, ...counts });
}
/** [in flight, prefill tokens queued, decode tokens, prompt tokens in flight] of an endpoint. */
const account = (made: Router, id: string) => {
  const row = made.endpointRows(100).find((one) => one.id === id) ?? assert.fail(id);
  return [row.requestsInFlight, row.prefillTokensQueued, row.decodeTokens, row.promptTokensInFlight];
};
const NOTHING = [0, 0, 0, 0];
const placesOf = ({ prefill, endpoint: answers, colocated }: Routed) => [prefill?.endpoint, answers, colocated];

test("a long prompt is computed at a prefill endpoint and answered at a decode endpoint; the decision has both, with reasons", () => {
  const made = fleet(["p0", "p1", "d0", "d1"]);
  const decision = ask(made, "r");
  assert.match(decision.endpoint, /^d/);
  assert.match(decision.prefill?.endpoint ?? "", /^p/);
  assert.equal(decision.prefill?.handoff, "prefill-first");
  const removed = (breakdown: Routed["breakdown"]) => breakdown.candidates.map((row) => [row.endpoint, row.removedBy]);
  assert.deepEqual(removed(decision.breakdown).slice(2), [
    ["p0", "role"],
    ["p1", "role"],
  ]);
  assert.deepEqual(
    removed(decision.prefill?.breakdown ?? assert.fail()).map(([id, why]) => [id, why === "" ? "" : "removed"]),
    [
      ["d0", "removed"],
      ["d1", "removed"],
      ["p0", ""],
      ["p1", ""],
    ],
  );
});

test("the charges of both stages: at the decision, after the prompt, after the first token, at the end", () => {
  const made = fleet(["p0", "d0"]);
  ask(made, "r");
  assert.deepEqual(account(made, "p0"), [1, 1024, 0, 1024]);
  assert.deepEqual(account(made, "d0"), [1, 1, 0, 1024]);
  assert.equal(made.openCharges, 2);
  prefilled(made, "r", 20);
  assert.deepEqual(account(made, "p0"), NOTHING);
  assert.deepEqual(account(made, "d0"), [1, 1, 0, 1024]);
  first(made, "r", 30);
  assert.deepEqual(account(made, "d0"), [1, 0, 1025, 1024]);
  end(made, "r", 40);
  assert.deepEqual(account(made, "d0"), NOTHING);
  assert.equal(made.openCharges, 0);
  assert.equal(made.strayInputs, 0);
});

test("a prompt that the decode endpoint has cached stays there, and a short one does", () => {
  const made = fleet(["p0", "d0"]);
  assert.deepEqual(placesOf(ask(made, "short", 10, { blocks: chain(8, 4), promptTokens: 67 })), [
    undefined,
    "d0",
    "short",
  ]);
  ask(made, "r");
  prefilled(made, "r", 20);
  first(made, "r", 30);
  end(made, "r", 40);
  const again = ask(made, "again", 50);
  assert.deepEqual(placesOf(again), [undefined, "d0", "cached"]);
  assert.equal(again.hitTokens, 1008);
  assert.deepEqual(account(made, "d0").slice(0, 2), [2, 67 + 16]);
});

test("without a prefill endpoint one endpoint does both; without a decode endpoint nobody is left", () => {
  assert.deepEqual(placesOf(ask(fleet(["d0"]), "r")), [undefined, "d0", "no-prefill-endpoint"]);
  assert.deepEqual(placesOf(ask(fleet(["b0"]), "r")), [undefined, "b0", "no-prefill-endpoint"]);
  assert.deepEqual(placesOf(ask(fleet(["p0", "u0"]), "r")), ["p0", "u0", undefined]);
  const asked = request({ id: "r", blocks: LONG, promptTokens: 1024 });
  const none = fleet(["p0"]).accept({ kind: "request-arrived", at: 10, request: asked });
  assert.deepEqual([none.kind, none.reason], ["rejected", "no-endpoint"]);
});

test("endpoints of both roles serve as either, never as both for one request", () => {
  const made = fleet(["b0", "b1"]);
  for (let i = 0; i < 6; i++) {
    const { prefill, endpoint: answers } = ask(made, `r${i}`, 10 + i, { blocks: chain(20 + i, 64) });
    assert.ok(prefill !== undefined && prefill.endpoint !== answers);
  }
});

test("with a pair label a prompt is computed within the pair of its decode endpoint", () => {
  const spec = profile({ roles: { ...profile().disaggregation!.roles, pairLabel: "roleset-name" } });
  const made = routerOf(spec);
  const join = (id: string, set: string) =>
    made.accept({ kind: "endpoint-joined", at: 0, endpoint: endpoint(id, { "roleset-name": set }) });
  join("p0", "one");
  join("d0", "one");
  join("p1", "two");
  join("d1", "two");
  for (let i = 0; i < 8; i++) {
    const { prefill, endpoint: answers } = ask(made, `r${i}`, 10 + i, { blocks: chain(20 + i, 64) });
    assert.equal(prefill?.endpoint.slice(1), answers.slice(1));
  }
  made.accept({ kind: "endpoint-left", at: 50, endpoint: "p1" });
  made.accept({ kind: "endpoint-cordoned", at: 50, endpoint: "d0" });
  assert.deepEqual(placesOf(ask(made, "alone", 60, { blocks: chain(99, 64) })), [
    undefined,
    "d1",
    "no-prefill-endpoint",
  ]);
});

test("a prefill endpoint that fails is left out of the retry, its decode endpoint is not; both charges go", () => {
  const made = fleet(["p0", "p1", "d0"]);
  const { prefill } = ask(made, "r");
  const failed = prefill?.endpoint ?? assert.fail();
  made.accept({ kind: "prefill-failed", at: 20, requestId: "r", fault: "connect" });
  for (const id of ["p0", "p1", "d0"]) assert.deepEqual(account(made, id), NOTHING);
  const other = failed === "p0" ? "p1" : "p0";
  assert.deepEqual(placesOf(retry(made, "r", 21)), [other, "d0", undefined]);
  made.accept({ kind: "prefill-failed", at: 30, requestId: "r", fault: "status" });
  assert.deepEqual(placesOf(retry(made, "r", 31)), [undefined, "d0", "no-prefill-endpoint"]);
  end(made, "r", 40);
  assert.equal(made.openCharges, 0);
});

test("a decode endpoint that fails is left out, before and after the prompt is computed; the prompt is found again", () => {
  for (const isComputed of [false, true]) {
    const made = fleet(["p0", "d0", "d1"]);
    const { endpoint: failed } = ask(made, "r");
    if (isComputed) prefilled(made, "r", 20);
    made.accept({ kind: "attempt-failed", at: 30, requestId: "r", fault: "connect" });
    for (const id of ["p0", "d0", "d1"]) assert.deepEqual(account(made, id), NOTHING);
    const again = retry(made, "r", 31);
    assert.deepEqual(placesOf(again), ["p0", failed === "d0" ? "d1" : "d0", undefined]);
    assert.equal(again.prefill?.hitTokens, isComputed ? 1008 : 0);
    end(made, "r", 40, "aborted");
    assert.equal(made.openCharges, 0);
  }
});

test("blocks that did not arrive speak against nobody, and the request stays at one endpoint", () => {
  const made = fleet(["p0", "d0"]);
  for (let i = 0; i < 9; i++) {
    const id = `r${i}`;
    const blocks = chain(40 + i, 64);
    assert.deepEqual(placesOf(ask(made, id, 100 * i, { blocks })), ["p0", "d0", undefined]);
    prefilled(made, id, 100 * i + 10);
    made.accept({ kind: "transfer-failed", at: 100 * i + 20, requestId: id });
    assert.deepEqual(placesOf(retry(made, id, 100 * i + 21)), [undefined, "d0", "transfer-failed"]);
    end(made, id, 100 * i + 30);
  }
  for (const { breaker } of made.endpointRows(1_000)) assert.equal(breaker, "closed");
  assert.equal(made.openCharges, 0);
});

test("faults of the first stage count against its endpoint alone, and one that is kept out is not used", () => {
  const made = fleet(["p0", "d0"]);
  for (let i = 0; i < 3; i++) {
    const id = `r${i}`;
    ask(made, id, 10 * i, { blocks: chain(50 + i, 64) });
    made.accept({ kind: "prefill-failed", at: 10 * i + 5, requestId: id, fault: "connect" });
    end(made, id, 10 * i + 6, "failed");
  }
  const breakers = made.endpointRows(40).map(({ id, breaker }) => [id, breaker]);
  assert.deepEqual(breakers, [
    ["d0", "closed"],
    ["p0", "open"],
  ]);
  assert.deepEqual(placesOf(ask(made, "next", 40, { blocks: chain(60, 64) })), [
    undefined,
    "d0",
    "no-prefill-endpoint",
  ]);
});

test("a request that ends while its prompt is computed does not count for the decode endpoint, and a time-out speaks against the other", () => {
  const made = fleet(["p0", "d0"]);
  for (let i = 0; i < 3; i++) {
    ask(made, `r${i}`, 10 * i, { blocks: chain(50 + i, 64) });
    end(made, `r${i}`, 10 * i + 5, "timeout");
  }
  const breakers = Object.fromEntries(made.endpointRows(40).map(({ id, breaker }) => [id, breaker]));
  assert.deepEqual(breakers, { d0: "closed", p0: "open" });
});

test("both at once: the first token releases the prefill stage where its end was not reported, and a late report is no stray", () => {
  const made = fleet(["p0", "d0"], profile({ handoff: "together" }));
  assert.equal(ask(made, "r").prefill?.handoff, "together");
  first(made, "r", 30);
  assert.deepEqual(account(made, "p0"), NOTHING);
  prefilled(made, "r", 31);
  assert.equal(made.strayInputs, 0);
  end(made, "r", 40);
  assert.equal(made.openCharges, 0);
});

test("what goes on behind a part of its answer stays at one endpoint", () => {
  const made = fleet(["p0", "d0", "d1"]);
  const { endpoint: broke } = ask(made, "r");
  prefilled(made, "r", 20);
  first(made, "r", 30);
  const fault: Fault = "cut";
  const decision = routed(made.accept({ kind: "request-continued", at: 40, requestId: "r", fault, outputTokens: 3 }));
  assert.deepEqual(placesOf(decision), [undefined, broke === "d0" ? "d1" : "d0", "continued"]);
  end(made, "r", 50);
  assert.equal(made.openCharges, 0);
});

test("each endpoint's time to first token is its own stage's", () => {
  const made = fleet(["p0", "d0"]);
  ask(made, "r", 1_000);
  prefilled(made, "r", 51_000);
  first(made, "r", 54_000);
  const ttft = Object.fromEntries(made.endpointRows(60_000).map(({ id, ttftMicros }) => [id, ttftMicros]));
  assert.deepEqual(ttft, { d0: 3_000, p0: 50_000 });
});

test("whether somebody else may take it depends on the stage under way", () => {
  const made = fleet(["p0", "d0"]);
  ask(made, "r");
  assert.equal(made.hasTaker(15, "r"), true, "the decode endpoint can do what the prefill endpoint fails to do");
  prefilled(made, "r", 20);
  assert.equal(made.hasTaker(25, "r"), false, "no other endpoint answers");
});

test("conservation and determinism under drawn traffic with faults of every stage", () => {
  const labelsOf = (id: string) => ({
    [ROLE]: ["prefill", "decode", "both", "prefill", "decode"][Number(id.slice(1))]!,
  });
  let shared = 0;
  for (const seed of drawnSeeds(30)) {
    const spec = profile({ colocateBelowTokens: 40, handoff: seed % 3 === 0 ? "together" : "prefill-first" });
    const run = () => {
      const made = routerOf(spec);
      return { made, log: drawTraffic(made, seed, 500, 5, labelsOf) };
    };
    const { made, log } = run();
    assert.equal(made.openCharges, 0, `seed ${seed}`);
    for (const { id } of made.endpointRows(0)) assert.deepEqual(account(made, id), NOTHING, `seed ${seed}: ${id}`);
    for (const { decision } of log) if (decision?.kind === "routed" && decision.prefill !== undefined) shared++;
    const places = (steps: typeof log) =>
      steps.map(({ decision }) => (decision?.kind === "routed" ? placesOf(decision) : decision?.reason));
    assert.deepEqual(places(run().log), places(log), `seed ${seed}`);
  }
  assert.ok(shared > 300, `${shared} requests were shared`);
});

test("a prefill that fails of a request that is not there, or that has none, is stray and changes nothing", () => {
  const made = fleet(["p0", "d0", "b0"]);
  const before = made.strayInputs;
  made.accept({ kind: "prefill-failed", at: 1, requestId: "nobody", fault: "connect" });
  assert.equal(made.strayInputs, before + 1);
  const alone = fleet(["b0"]);
  assert.equal(ask(alone, "r").prefill, undefined);
  const rows = alone.endpointRows(20);
  alone.accept({ kind: "prefill-failed", at: 20, requestId: "r", fault: "connect" });
  assert.equal(alone.strayInputs, before + 1);
  assert.deepEqual(alone.endpointRows(20), rows);
});
