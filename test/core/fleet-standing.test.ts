import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EndpointRules, OutlierRules } from "#core/endpoint/endpoint-rules.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { chain, request } from "./state.ts";
import { drawTraffic } from "./traffic.ts";

const SECOND = MICROS_PER_SECOND;
const ROUND_ROBIN: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "round-robin", parameters: {} } };
const OUTLIERS: OutlierRules = {
  intervalMicros: SECOND,
  requestsMin: 10,
  failureShare: 0.3,
  slowFactor: 4,
  ejectMicros: 10 * SECOND,
  ejectMicrosMax: 60 * SECOND,
};
/** Opens for nothing, so that looks alone eject. */
const BREAKER = {
  failuresMax: 1_000_000,
  pauseMicros: SECOND,
  pauseMicrosMax: SECOND,
  jitterShare: 0,
  saturatedPauseMicros: 0,
  drainingPauseMicros: 0,
};

function router(rules: Partial<EndpointRules>, ids: readonly string[] = ["a", "b", "c", "d"]): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: ROUND_ROBIN },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: SECOND,
    breaker: BREAKER,
    endpointRules: { floorShare: 0.5, ...rules },
  });
  for (const id of ids) join(made, id, 0);
  return made;
}

function join(made: Router, id: string, at: number): void {
  const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
  made.accept({ kind: "endpoint-joined", at, endpoint });
}

let number = 0;

/** One request from its arrival to its end; where it went, "" for nowhere. */
function serve(made: Router, at: number, how: (endpoint: string) => Fault | "ok" | number = () => "ok"): string {
  const id = `request-${number++}`;
  const decision = made.accept({ kind: "request-arrived", at, request: request({ id }) });
  const endpoint = decision.kind === "routed" ? decision.endpoint : "";
  const went = endpoint === "" ? "ok" : how(endpoint);
  const counts = { promptTokens: 10, cachedTokens: 0, outputTokens: 11 };
  if (typeof went === "number") {
    made.accept({ kind: "first-token", at, requestId: id });
    made.accept({ kind: "request-finished", at: at + 10 * went, requestId: id, outcome: "ok", ...counts });
    return endpoint;
  }
  if (went !== "ok") made.accept({ kind: "attempt-failed", at, requestId: id, fault: went });
  const outcome = went === "ok" ? "ok" : "failed";
  made.accept({ kind: "request-finished", at, requestId: id, outcome, ...counts, outputTokens: 1 });
  return endpoint;
}

/** Where `count` requests went, one each millisecond. */
function run(made: Router, from: number, count: number, how?: (endpoint: string) => Fault | "ok" | number) {
  const went: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const endpoint = serve(made, from + i * 1_000, how);
    went[endpoint] = (went[endpoint] ?? 0) + 1;
  }
  return went;
}

const row = (made: Router, id: string, at: number) => made.endpointRows(at).find((one) => one.id === id)!;

test("an endpoint that fails every third request, and so trips no breaker in a row, is left alone and comes back", () => {
  const made = router({ outliers: OUTLIERS });
  let n = 0;
  const how = (endpoint: string): Fault | "ok" => (endpoint === "b" && n++ % 2 === 0 ? "status" : "ok");
  run(made, 0, 1000, how);
  const later = run(made, SECOND, 400);
  assert.equal(later["b"], undefined);
  assert.deepEqual([row(made, "b", SECOND).ejected, row(made, "b", SECOND).ejections.failures], ["failures", 1]);
  // Within a fifth of 10 s it is back.
  const before = run(made, 8 * SECOND, 40)["b"];
  const after = run(made, 13 * SECOND + 1, 40)["b"];
  assert.deepEqual([before, after], [undefined, 10]);
});

test("faults that all endpoints have, that say it is full or leaving, or that are few, eject nobody", () => {
  const cases: ((endpoint: string) => Fault | "ok")[] = [
    () => "status",
    (endpoint) => (endpoint === "b" ? "saturated" : "ok"),
    (endpoint) => (endpoint === "b" ? "draining" : "ok"),
  ];
  for (const how of cases) {
    const made = router({ outliers: OUTLIERS });
    run(made, 0, 1500, how);
    assert.ok(
      made.endpointRows(2 * SECOND).every(({ ejected }) => ejected === ""),
      how.toString(),
    );
  }
  const few = router({ outliers: OUTLIERS });
  run(few, 0, 36, (endpoint) => (endpoint === "b" ? "status" : "ok"));
  run(few, SECOND, 4);
  assert.ok(few.endpointRows(2 * SECOND).every(({ ejected }) => ejected === ""));
});

test("an endpoint whose tokens take four times the others' median is left alone; one that takes three times is not", () => {
  for (const [factor, ejected] of [
    [4, "slow"],
    [3, ""],
  ] as const) {
    const made = router({ outliers: OUTLIERS });
    run(made, 0, 400, (endpoint) => (endpoint === "c" ? 10_000 * factor : 10_000));
    run(made, 2 * SECOND, 4);
    assert.equal(row(made, "c", 2 * SECOND).ejected, ejected, String(factor));
  }
});

test("however many are found, the floor stays: ejected ones first, then those whose checks fail", () => {
  const made = router({ outliers: { ...OUTLIERS, failureShare: 0.5 }, floorShare: 0.75 });
  run(made, 0, 1000, (endpoint) => (endpoint === "b" ? "status" : "ok"));
  run(made, SECOND, 4);
  assert.equal(run(made, SECOND + 10_000, 30)["b"], undefined, "three of four are left");
  made.accept({ kind: "endpoint-checked", at: 1.1 * SECOND, endpoint: "a", healthy: false });
  const went = run(made, 1.1 * SECOND, 30);
  assert.deepEqual(Object.keys(went).sort(), ["b", "c", "d"], "two would be below the floor");
  for (const endpoint of ["c", "d", "b"])
    made.accept({ kind: "endpoint-checked", at: 1.2 * SECOND, endpoint, healthy: false });
  assert.deepEqual(
    Object.keys(run(made, 1.2 * SECOND, 40)).sort(),
    ["a", "b", "c", "d"],
    "no verdict empties the fleet",
  );
});

test("an endpoint whose checks fail gets nothing until they succeed, and the decision names why", () => {
  const made = router({ floorShare: 0 });
  made.accept({ kind: "endpoint-checked", at: 1, endpoint: "b", healthy: false });
  const decision = made.accept({ kind: "request-arrived", at: 2, request: request({ id: "one" }) });
  const candidate = decision.breakdown.candidates.find(({ endpoint }) => endpoint === "b")!;
  assert.equal(candidate.removedBy, "unhealthy");
  assert.equal(run(made, 3, 30)["b"], undefined);
  made.accept({ kind: "endpoint-checked", at: SECOND, endpoint: "b", healthy: true });
  assert.ok(run(made, SECOND, 40)["b"]! >= 9);
});

test("each ejection is longer, up to the longest, and a look without a finding takes one back", () => {
  const made = router({ outliers: { ...OUTLIERS, ejectMicros: SECOND, ejectMicrosMax: 2.5 * SECOND } });
  const out: number[] = [];
  let at = 0;
  for (let times = 0; times < 4; times++) {
    while (row(made, "b", at).ejected === "") {
      serve(made, at, (endpoint) => (endpoint === "b" ? "status" : "ok"));
      at += 1_000;
    }
    const from = at;
    while (row(made, "b", at).ejected !== "") {
      serve(made, at);
      at += 1_000;
    }
    out.push((at - from) / SECOND);
  }
  [1, 2, 2.5, 2.5].forEach((usual, i) => assert.ok(Math.abs(out[i]! / usual - 1) < 0.21, `${i}: ${out[i]}`));
});

test("slow start: a new endpoint's share grows from its least to all of it over the window, and the rest is shared by the others", () => {
  const slowStart = { windowMicros: 10 * SECOND, shareMin: 0.1 };
  const made = router({ slowStart });
  assert.ok(
    Object.values(run(made, 1_000, 400)).every((count) => count === 100),
    "those that begin together share evenly",
  );
  join(made, "e", 100 * SECOND);
  const shares = [0, 2.5, 5, 7.5, 10].map((elapsed) => {
    const copy = run(made, (100 + elapsed) * SECOND, 2000);
    return (copy["e"] ?? 0) / 2000;
  });
  // Of five endpoints, about a fifth of the requests, times its share.
  [0.1, 0.325, 0.55, 0.775, 1].forEach((share, i) => {
    const usual = share / (4 + share);
    assert.ok(Math.abs(shares[i]! - usual) < 0.05, `${i}: ${shares[i]} of ${usual}`);
  });
  assert.ok(shares.every((share, i) => i === 0 || share > shares[i - 1]!));
});

test("slow start begins again for who was cordoned, failed its checks, was ejected or had its breaker open; alone, it gets everything", () => {
  const rules = { outliers: OUTLIERS, slowStart: { windowMicros: 100 * SECOND, shareMin: 0.1 } };
  const at = 1_000 * SECOND;
  const back: [string, (made: Router) => void][] = [
    [
      "cordoned",
      (made) => {
        made.accept({ kind: "endpoint-cordoned", at: at - 9, endpoint: "b" });
        made.accept({ kind: "endpoint-uncordoned", at: at - 1, endpoint: "b" });
      },
    ],
    [
      "unhealthy",
      (made) => {
        made.accept({ kind: "endpoint-checked", at: at - 9, endpoint: "b", healthy: false });
        made.accept({ kind: "endpoint-checked", at: at - 1, endpoint: "b", healthy: true });
      },
    ],
  ];
  for (const [name, begin] of back) {
    const made = router(rules);
    begin(made);
    assert.ok(row(made, "b", at).share < 0.2, name);
    assert.ok((run(made, at, 1000)["b"] ?? 0) < 60, name);
  }
  const alone = router(rules, ["a"]);
  assert.equal(run(alone, 1, 50)["a"], 50);
});

test("with rules too, same inputs give same decisions, charges are conserved, and nobody is refused while somebody serves", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), (seed) => {
      const rules = {
        outliers: { ...OUTLIERS, intervalMicros: 1_000, requestsMin: 2 },
        slowStart: { windowMicros: 5_000, shareMin: 0.2 },
      };
      const [one, other] = [router(rules, []), router(rules, [])];
      const log = drawTraffic(one, seed, 200);
      for (const { input, decision } of log) {
        assert.deepEqual(other.accept(input), decision);
        if (decision?.kind === "rejected" && decision.reason === "no-endpoint")
          assert.ok(
            decision.breakdown.candidates.every(
              ({ removedBy }) => !["unhealthy", "outlier", "slow-start"].includes(removedBy),
            ),
          );
      }
      assert.equal(one.openCharges, 0);
    }),
    { numRuns: 30 },
  );
});

test("one that sleeps is never let back, whatever the others are; where no other could serve, that is the reason", () => {
  const made = router({ floorShare: 1 }, ["a", "b"]);
  const sleep = (at: number, endpoint: string, asleep: boolean): void =>
    void made.accept({ kind: "endpoint-slept", at, endpoint, asleep, ...(asleep && { emptied: true }) });
  sleep(1, "a", true);
  made.accept({ kind: "endpoint-checked", at: 1, endpoint: "b", healthy: false });
  assert.deepEqual(run(made, 2, 10), { b: 10 });
  sleep(SECOND, "b", true);
  const decision = made.accept({ kind: "request-arrived", at: SECOND, request: request({ id: "nowhere" }) });
  assert.deepEqual([decision.kind, decision.reason], ["rejected", "asleep"]);
  const unknown = request({ id: "unknown", model: "other" });
  assert.equal(made.accept({ kind: "request-arrived", at: SECOND, request: unknown }).kind, "rejected");
  sleep(2 * SECOND, "a", false);
  assert.deepEqual(run(made, 2 * SECOND, 10), { a: 10 });
});

test("what an engine's cache held is not expected there any more once it gave its memory up, and is once it was only paused", () => {
  const made = router({}, ["a"]);
  const hits = (at: number): number => {
    const id = `chain-${at}`;
    const decision = made.accept({
      kind: "request-arrived",
      at,
      request: request({ id, promptTokens: 64, blocks: chain(1, 4) }),
    });
    made.accept({ kind: "first-token", at, requestId: id });
    const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 1 };
    made.accept({ kind: "request-finished", at, requestId: id, outcome: "ok", ...counts });
    return decision.kind === "routed" ? decision.hitTokens : -1;
  };
  assert.deepEqual([hits(1), hits(2)], [0, 48]);
  for (const [at, expected] of [
    [10, 48],
    [20, 0],
  ] as const) {
    made.accept({ kind: "endpoint-slept", at, endpoint: "a", asleep: true, ...(expected === 0 && { emptied: true }) });
    assert.equal(hits(at + 1), -1);
    made.accept({ kind: "endpoint-slept", at: at + 2, endpoint: "a", asleep: false });
    assert.equal(hits(at + 3), expected);
  }
});
