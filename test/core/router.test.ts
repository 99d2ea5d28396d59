import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { PluginSpec } from "#core/plugin/spec.ts";
import { loadProfile } from "#config/profile-file.ts";
import { Router } from "#core/router.ts";
import { chain, load, request } from "./state.ts";
import { drawTraffic } from "./traffic.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

const DEFAULT_PROFILE = loadProfile("gnomon").spec;

function router(ids: readonly string[], models: readonly string[] = []): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: DEFAULT_PROFILE },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of ids) {
    made.accept({
      kind: "endpoint-joined",
      at: 0,
      endpoint: { id, models, labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 },
    });
  }
  return made;
}

const ask = (made: Router, id: string, at = 10, more: Partial<Parameters<typeof request>[0]> = {}): Decision =>
  made.accept({ kind: "request-arrived", at, request: request({ ...more, id }) });
const fail = (made: Router, requestId: string, at: number, fault: Fault = "connect") =>
  made.accept({ kind: "attempt-failed", at, requestId, fault });
const finish = (made: Router, requestId: string, at = 50) =>
  made.accept({
    kind: "request-finished",
    at,
    requestId,
    outcome: "ok",
    promptTokens: 10,
    cachedTokens: 0,
    outputTokens: 4,
  });
const endpointOf = (decision: Decision) =>
  decision.kind === "routed" ? decision.endpoint : assert.fail(decision.reason);

test("answers side by side show the time per token of one of them", () => {
  const made = router(["a"]);
  ask(made, "r", 10, { sequences: 3 });
  made.accept({ kind: "first-token", at: 1_000, requestId: "r" });
  const end = { outcome: "ok", promptTokens: 10, cachedTokens: 0, outputTokens: 33 } as const;
  made.accept({ kind: "request-finished", at: 2_000, requestId: "r", ...end });
  assert.equal(made.endpointRows(2_000)[0]!.tpotMicros, 100);
});

test("conservation: when all requests are over, every charge of every endpoint is released", () => {
  for (const seed of drawnSeeds(30, 100)) {
    const made = router([]);
    const log = drawTraffic(made, seed, 500);
    const arrived = log.filter(({ input }) => input.kind === "request-arrived").length;
    const finished = log.filter(({ input }) => input.kind === "request-finished").length;
    assert.equal(finished, arrived, `seed ${seed}`);
    assert.equal(made.inFlight, 0, `seed ${seed}`);
    assert.equal(made.openCharges, 0, `seed ${seed}`);
    for (const row of made.endpointRows(0)) {
      assert.deepEqual(
        [row.requestsInFlight, row.prefillTokensQueued, row.decodeTokens, row.promptTokensInFlight],
        [0, 0, 0, 0],
        `seed ${seed}: ${row.id}`,
      );
    }
  }
});

test("a prompt whose attempt died before its first token is no longer expected there; one that gave tokens is", () => {
  const blocks = chain(5, 20);
  const hitsAfter = (happens: (made: Router) => void): number => {
    const made = router(["a"]);
    ask(made, "first", 10, { blocks, promptTokens: 320 });
    happens(made);
    const decision = ask(made, "second", 100, { blocks, promptTokens: 320 });
    return decision.kind === "routed" ? decision.hitTokens : assert.fail(decision.reason);
  };
  const firstToken = (made: Router) => made.accept({ kind: "first-token", at: 20, requestId: "first" });
  const end = (made: Router, outcome: "failed" | "aborted" | "timeout") =>
    made.accept({
      kind: "request-finished",
      at: 50,
      requestId: "first",
      outcome,
      promptTokens: undefined,
      cachedTokens: undefined,
      outputTokens: undefined,
    });
  assert.equal(
    hitsAfter((made) => fail(made, "first", 20)),
    0,
    "failed before its first token",
  );
  for (const outcome of ["failed", "aborted", "timeout"] as const) {
    assert.equal(
      hitsAfter((made) => end(made, outcome)),
      0,
      `${outcome} before its first token`,
    );
    const begun = hitsAfter((made) => {
      firstToken(made);
      end(made, outcome);
    });
    assert.equal(begun, 304, `${outcome} after its first token`);
  }
  assert.equal(
    hitsAfter((made) => finish(made, "first")),
    304,
    "finished",
  );
});

test("a retry leaves out every endpoint that was tried, and is refused when none is left", () => {
  const made = router(["a", "b", "c"]);
  const tried = [endpointOf(ask(made, "r"))];
  for (let attempt = 2; attempt <= 3; attempt++) {
    fail(made, "r", 10 + attempt);
    const decision = made.accept({ kind: "request-retried", at: 10 + attempt, requestId: "r" });
    assert.equal(decision.attempt, attempt);
    tried.push(endpointOf(decision));
  }
  assert.deepEqual([...tried].sort(), ["a", "b", "c"]);
  fail(made, "r", 20);
  const last = made.accept({ kind: "request-retried", at: 20, requestId: "r" });
  assert.equal(last.kind === "rejected" && last.reason, "no-endpoint");
});

test("no endpoint, none that serves the model, none but cordoned ones: each is refused with its own reason", () => {
  const none = ask(router([]), "r");
  assert.equal(none.kind === "rejected" && none.reason, "no-endpoint");
  const other = ask(router(["a"], ["x"]), "r");
  assert.equal(other.kind === "rejected" && other.reason, "unknown-model");
  const made = router(["a"]);
  made.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "a" });
  const cordoned = ask(made, "r");
  assert.equal(cordoned.kind === "rejected" && cordoned.reason, "no-endpoint");
  assert.equal(cordoned.breakdown.candidates[0]?.removedBy, "cordoned");
  made.accept({ kind: "endpoint-uncordoned", at: 20, endpoint: "a" });
  assert.equal(endpointOf(ask(made, "s", 21)), "a");
});

test("unknown is not zero: an endpoint that was never scraped is judged by the ledger, not taken for idle", () => {
  const made = router(["a", "b"]);
  for (let i = 0; i < 6; i++) made.accept({ kind: "endpoint-cordoned", at: i, endpoint: "b" });
  for (let i = 0; i < 6; i++) ask(made, `a${i}`, i + 1, { blocks: chain(50 + i, 3) });
  made.accept({ kind: "endpoint-uncordoned", at: 8, endpoint: "b" });
  made.accept({
    kind: "load-observed",
    at: 9,
    endpoint: "b",
    load: load({ running: 2, waiting: 0, kvUtilization: 0.1 }),
  });
  const decision = ask(made, "r", 10, { blocks: chain(99, 3) });
  assert.equal(endpointOf(decision), "b");
  assert.ok(decision.kind === "routed" && decision.usedLedger);
  const [a, b] = decision.breakdown.candidates;
  assert.deepEqual([a?.freshness, a?.loadAgeMicros, a?.effectiveLoad], ["unknown", -1, 6]);
  assert.deepEqual([b?.freshness, b?.loadAgeMicros, b?.effectiveLoad], ["fresh", 1, 2]);
});

test("a scrape adds the load of others to our own, and stops counting when it is stale", () => {
  const made = router(["a"]);
  ask(made, "one", 1);
  made.accept({
    kind: "load-observed",
    at: 5,
    endpoint: "a",
    load: load({ running: 4, waiting: 3, kvUtilization: 0.5 }),
  });
  ask(made, "two", 6);
  assert.equal(made.endpointRows(7)[0]?.effectiveLoad, 8, "two of ours and the six of others");
  finish(made, "one");
  assert.equal(made.endpointRows(60)[0]?.effectiveLoad, 7);
  const stale = made.endpointRows(2_000_000)[0];
  assert.deepEqual([stale?.freshness, stale?.effectiveLoad], ["stale", 1]);
});

test("a burst between two scrapes spreads: the ledger sees what the gauges do not", () => {
  const made = router(["a", "b", "c", "d"]);
  for (const id of ["a", "b", "c", "d"]) {
    made.accept({
      kind: "load-observed",
      at: 1,
      endpoint: id,
      load: load({ running: 0, waiting: 0, kvUtilization: 0 }),
    });
  }
  const counts = new Map<string, number>();
  for (let i = 0; i < 40; i++) {
    const endpoint = endpointOf(ask(made, `r${i}`, 2, { blocks: chain(200 + i, 5) }));
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  }
  assert.deepEqual([...counts.values()], [10, 10, 10, 10]);
});

test("affinity does not feed a hot endpoint: the guard moves one shared prefix on when its holder runs far ahead", () => {
  const made = router(["a", "b", "c"]);
  const loads = new Map<string, number>();
  for (let i = 0; i < 60; i++) {
    const endpoint = endpointOf(ask(made, `r${i}`, 2 + i, { blocks: chain(7, 50) }));
    loads.set(endpoint, (loads.get(endpoint) ?? 0) + 1);
  }
  assert.ok(Math.max(...loads.values()) <= 1.25 * 20 + 5, JSON.stringify([...loads]));
});

test("a failed attempt takes its prefix back, a finished one leaves it", () => {
  const made = router(["a", "b"]);
  const first = endpointOf(ask(made, "r", 10, { blocks: chain(3, 8) }));
  fail(made, "r", 11);
  const second = endpointOf(made.accept({ kind: "request-retried", at: 11, requestId: "r" }));
  made.accept({ kind: "first-token", at: 12, requestId: "r" });
  finish(made, "r", 13);
  const rows = new Map(made.endpointRows(14).map((row) => [row.id, row.indexBlocks]));
  assert.deepEqual([rows.get(first), rows.get(second)], [0, 8]);
});

test("a late word about a request that is over is counted and changes nothing", () => {
  const made = router(["a"]);
  ask(made, "r");
  finish(made, "r");
  finish(made, "r");
  made.accept({ kind: "first-token", at: 60, requestId: "r" });
  fail(made, "r", 61);
  assert.equal(made.strayInputs, 3);
  assert.equal(made.endpointRows(70)[0]?.requestsInFlight, 0);
});

test("a draining endpoint is left alone at once, and tried again by one request after its pause", () => {
  const made = router(["a", "b"]);
  const drained = endpointOf(ask(made, "r", 10));
  fail(made, "r", 11, "draining");
  const other = drained === "a" ? "b" : "a";
  for (let i = 0; i < 8; i++) assert.equal(endpointOf(ask(made, `x${i}`, 20 + i, { blocks: chain(60 + i, 2) })), other);
  const later = [0, 1, 2].map((i) => endpointOf(ask(made, `y${i}`, 20_000_000 + i, { blocks: chain(80 + i, 2) })));
  assert.equal(later.filter((endpoint) => endpoint === drained).length, 1, "one probe, no more until it answered");
});

test("when every breaker is open the request is sent all the same", () => {
  const made = router(["a", "b"]);
  for (const id of ["r", "s"]) {
    ask(made, id, 10);
    fail(made, id, 11, "draining");
    made.accept({ kind: "request-retried", at: 11, requestId: id });
    fail(made, id, 12, "draining");
  }
  assert.equal(ask(made, "t", 13).kind, "routed");
});

test("a suspended endpoint takes nothing while another may serve, comes back one request at a time, and never empties the fleet", () => {
  const made = router(["a", "b"]);
  const suspend = (endpoint: string, at: number) =>
    made.accept({ kind: "endpoint-suspended", at, endpoint, reason: "silent" });
  const standings = () => made.endpointRows(10).map(({ standing }) => standing);
  ask(made, "waits", 10);
  suspend("a", 11);
  assert.equal(made.hasTaker(11, "waits"), true);
  for (let i = 0; i < 20; i++) assert.equal(endpointOf(ask(made, `b${i}`, 11 + i)), "b");
  suspend("b", 40);
  assert.equal(made.hasTaker(40, "waits"), false, "nobody that is well is left");
  const chosen = ask(made, "all hang", 41);
  assert.equal(chosen.kind, "routed", "an endpoint that may hang is better than none");
  for (const id of ["waits", "all hang"]) finish(made, id, 45);
  for (let i = 0; i < 20; i++) finish(made, `b${i}`, 45);
  made.accept({ kind: "endpoint-resumed", at: 50, endpoint: "a", servedUntilWell: 2 });
  assert.deepEqual(standings(), ["returning", "hung"]);
  assert.equal(endpointOf(ask(made, "served", 60)), "a");
  made.accept({ kind: "endpoint-resumed", at: 61, endpoint: "b", servedUntilWell: 0 });
  for (let i = 0; i < 9; i++) assert.equal(endpointOf(ask(made, `c${i}`, 62)), "b", "one at a time");
});

test("an endpoint that is back gets more with each first token, not with whole answers alone, whatever it still had", () => {
  const broken = router(["a", "b"]);
  for (let i = 0; i < 3; i++) {
    ask(broken, `f${i}`, 10 + i, { subset: ["a"] });
    fail(broken, `f${i}`, 10 + i);
  }
  const hung = router(["a", "b"]);
  for (let i = 0; i < 3; i++) ask(hung, `kept${i}`, 10, { subset: ["a"] });
  hung.accept({ kind: "endpoint-suspended", at: 20, endpoint: "a", reason: "silent" });
  hung.accept({ kind: "endpoint-resumed", at: 30, endpoint: "a", servedUntilWell: 8 });
  for (const made of [broken, hung]) {
    const at = 40_000_000;
    made.accept({ kind: "endpoint-cordoned", at, endpoint: "a" });
    ask(made, "elsewhere", at);
    made.accept({ kind: "endpoint-uncordoned", at, endpoint: "a" });
    assert.equal(made.hasTaker(at, "elsewhere"), true);
    ask(made, "probe", at + 1, { subset: ["a"] });
    assert.equal(made.hasTaker(at + 2, "elsewhere"), false, "one at first");
    made.accept({ kind: "first-token", at: at + 3, requestId: "probe" });
    assert.equal(made.hasTaker(at + 3, "elsewhere"), true);
    for (const id of ["second", "third"]) ask(made, id, at + 4, { subset: ["a"] });
    assert.equal(made.hasTaker(at + 4, "elsewhere"), false, "then two more");
  }
});

test("who left an endpoint that hung or was lost may go back there once it is back; who is still with it may not", () => {
  for (const back of ["resumed", "joined"]) {
    const made = router(["a"]);
    for (const id of ["left", "stays"]) assert.equal(endpointOf(ask(made, id)), "a");
    made.accept({ kind: "first-token", at: 12, requestId: "stays" });
    fail(made, "left", 20, "hung");
    const again = (at: number) => made.accept({ kind: "request-retried", at, requestId: "left" });
    assert.equal(again(21).kind, "rejected", "it was tried");
    const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    if (back === "joined") {
      made.accept({ kind: "endpoint-left", at: 30, endpoint: "a", lost: true });
      assert.equal(made.hasTaker(30, "stays"), false);
      made.accept({ kind: "endpoint-joined", at: 40, endpoint });
      assert.equal(made.hasTaker(40, "stays"), true, "the process is another one");
    } else {
      made.accept({ kind: "endpoint-suspended", at: 30, endpoint: "a", reason: "silent" });
      made.accept({ kind: "endpoint-resumed", at: 40, endpoint: "a", servedUntilWell: 0 });
      assert.equal(made.hasTaker(40, "stays"), false, "it is there");
    }
    assert.equal(endpointOf(again(41)), "a");
    for (const id of ["left", "stays"]) finish(made, id, 50);
    assert.equal(made.openCharges, 0);
  }
});

test("an idle taker has nobody that waits and is less busy even with the request; any other one is not asked to relieve", () => {
  const made = router(["a", "b"]);
  made.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "b" });
  for (let i = 0; i < 4; i++) ask(made, `a${i}`);
  made.accept({ kind: "endpoint-uncordoned", at: 11, endpoint: "b" });
  const idle = (at: number) => made.hasTaker(at, "a0", "idle");
  assert.deepEqual([idle(12), made.hasTaker(12, "gone", "idle")], [true, false]);
  assert.equal(endpointOf(ask(made, "b0", 13, { subset: ["b"] })), "b");
  assert.equal(idle(14), false, "somebody waits for a first token there");
  made.accept({ kind: "first-token", at: 15, requestId: "b0" });
  assert.equal(idle(15), true, "two, of four there");
  made.accept({ kind: "load-observed", at: 16, endpoint: "b", load: load({ running: 1, waiting: 1 }) });
  assert.equal(idle(16), false, "somebody else's request waits there");
  made.accept({ kind: "load-observed", at: 17, endpoint: "b", load: load({ running: 1, waiting: 0 }) });
  for (const id of ["a2", "a3"]) finish(made, id, 18);
  assert.deepEqual([idle(19), made.hasTaker(19, "a0")], [false, true], "as busy as the other one with it");
});

test("a hung endpoint is taken after one whose breaker is open, where no other is left", () => {
  const made = router(["a", "b"]);
  made.accept({ kind: "endpoint-suspended", at: 1, endpoint: "a", reason: "stalled" });
  for (let i = 0; i < 3; i++) {
    ask(made, `r${i}`, 10 + i);
    fail(made, `r${i}`, 10 + i);
  }
  assert.equal(made.endpointRows(20)[1]!.breaker, "open");
  assert.equal(endpointOf(ask(made, "next", 20)), "b");
});

test("what the data plane does not allow is never chosen, and an empty subset leaves nobody", () => {
  const made = router(["a", "b", "c"]);
  for (let i = 0; i < 20; i++) assert.equal(endpointOf(ask(made, `r${i}`, 10, { subset: ["c"] })), "c");
  const none = ask(made, "none", 10, { subset: [] });
  assert.equal(none.kind === "rejected" && none.reason, "no-endpoint");
  const foreign = ask(made, "foreign", 10, { subset: ["x"] });
  assert.equal(foreign.kind === "rejected" && foreign.reason, "no-endpoint");
  assert.deepEqual(
    foreign.breakdown.candidates.map(({ removedBy }) => removedBy),
    ["subset", "subset", "subset"],
  );
});

test("a retry stays within what the data plane allows", () => {
  const made = router(["a", "b", "c"]);
  const first = endpointOf(ask(made, "r", 10, { subset: ["a", "c"] }));
  fail(made, "r", 11);
  const second = endpointOf(made.accept({ kind: "request-retried", at: 12, requestId: "r" }));
  assert.deepEqual([first, second].toSorted(), ["a", "c"]);
  assert.equal(made.hasTaker(13, "r"), false);
});

test("a request that a proxy took elsewhere is charged and expected there, and released once", () => {
  const blocks = chain(5, 20);
  const made = router(["a", "b"]);
  const chosen = endpointOf(ask(made, "r", 10, { blocks, promptTokens: 320 }));
  const other = chosen === "a" ? "b" : "a";
  fail(made, "r", 11);
  made.accept({ kind: "request-moved", at: 12, requestId: "r", endpoint: other });
  const inFlight = () => made.endpointRows(20).map(({ id, requestsInFlight }) => `${id} ${requestsInFlight}`);
  assert.deepEqual(inFlight(), [`a ${other === "a" ? 1 : 0}`, `b ${other === "b" ? 1 : 0}`]);
  made.accept({ kind: "first-token", at: 30, requestId: "r" });
  finish(made, "r", 40);
  assert.equal(made.openCharges, 0);
  const next = ask(made, "next", 50, { blocks, promptTokens: 320 });
  assert.equal(endpointOf(next), other);
  assert.ok(next.kind === "routed" && next.hitTokens > 0);
});

test("a move takes the charge along without a failure before it, and one to nowhere is a stray", () => {
  const made = router(["a", "b"]);
  const chosen = endpointOf(ask(made, "r"));
  const other = chosen === "a" ? "b" : "a";
  made.accept({ kind: "request-moved", at: 12, requestId: "r", endpoint: chosen });
  made.accept({ kind: "request-moved", at: 12, requestId: "r", endpoint: other });
  assert.deepEqual(
    made.endpointRows(20).flatMap(({ id, requestsInFlight }) => (requestsInFlight > 0 ? [id] : [])),
    [other],
  );
  assert.equal(made.strayInputs, 0);
  made.accept({ kind: "request-moved", at: 13, requestId: "r", endpoint: "gone" });
  made.accept({ kind: "request-moved", at: 13, requestId: "nobody", endpoint: "a" });
  assert.equal(made.strayInputs, 2);
  finish(made, "r");
  assert.equal(made.openCharges, 0);
});

test("a filter that takes none for what they are is no saturation, and with one that counts load it is", () => {
  const label = { plugin: "label", parameters: { key: "role", values: "decode", allowMissing: false } };
  const full = { plugin: "concurrency-saturation", parameters: { requestsMax: 1 } };
  const reasonOf = (filters: readonly PluginSpec[], roles: readonly string[]): string => {
    const base = loadProfile("gnomon").spec;
    const made = new Router({
      seed: 1,
      profiles: { default: { ...base, filters } },
      defaultProfile: "default",
      index: new ApproximateIndex(),
      blockTokens: 16,
      staleAfterMicros: 1_000_000,
    });
    roles.forEach((role, i) =>
      made.accept({
        kind: "endpoint-joined",
        at: 0,
        endpoint: { id: `e${i}`, models: [], labels: { role }, kvCapacityTokens: 16_000, concurrencyMax: 8 },
      }),
    );
    ask(made, "first");
    const decision = ask(made, "second");
    return decision.kind === "rejected" ? decision.reason : decision.kind;
  };
  assert.equal(reasonOf([label], ["prefill", "prefill"]), "excluded");
  assert.equal(reasonOf([label, full], ["prefill"]), "excluded");
  assert.equal(reasonOf([label, full], ["decode", "prefill"]), "saturated");
  assert.equal(reasonOf([full, label], ["decode"]), "saturated");
});
