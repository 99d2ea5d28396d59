import assert from "node:assert/strict";
import { test } from "node:test";
import type { Routed } from "#core/input/decision.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { decisionView } from "#live/status/status-view.ts";
import { decisionTable } from "#cli/explain/decision-table.ts";
import { explainCommand } from "#cli/explain/explain.ts";
import { decideState, stateOf } from "#cli/explain/explain-state.ts";

const STATE = {
  request: { model: "m", promptTokens: 1000 },
  endpoints: [
    { id: "b", load: { running: 1, waiting: 0, kvUtilization: 0.1 }, ageMillis: 9000 },
    { id: "a", load: { running: 3, waiting: 1, kvUtilization: 0.4 }, hitTokens: 640 },
    { id: "c", requestsInFlight: 20 },
    { id: "d", models: ["other"] },
    { id: "e", cordoned: true },
  ],
};

const weighted = loadProfile("weighted");

const decided = (profile: typeof weighted, state: unknown, from = "state") =>
  decideState(profile, stateOf(state, from));

test("a state gives the decision that its formulas give by hand", () => {
  const decision = decided(weighted, STATE) as Routed;
  const { breakdown } = decision;
  assert.deepEqual(
    breakdown.candidates.map((row) => [row.endpoint, row.freshness, row.effectiveLoad, row.removedBy]),
    [
      ["a", "fresh", 4, ""],
      ["b", "stale", 0, ""],
      ["c", "unknown", 20, ""],
      ["d", "unknown", 0, "unknown-model"],
      ["e", "unknown", 0, "cordoned"],
    ],
  );
  const expected = [
    (3 / 7) * (40 / 62) + (2 / 7) * (16 / 20) + (2 / 7) * 0.6,
    (2 / 7) * 1 + (2 / 7) * 1,
    (2 / 7) * 0 + (2 / 7) * 1,
  ];
  expected.forEach((total, i) =>
    assert.ok(Math.abs(breakdown.totals[i]! - total) < 1e-12, `${breakdown.totals[i]} ${total}`),
  );
  assert.deepEqual(
    [decision.endpoint, decision.reason, decision.hitTokens, decision.usedLedger],
    ["a", "prefix-affinity", 640, true],
  );
});

test("the state that --help shows is one", () => {
  let help = "";
  const command = explainCommand().configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  const [, state = ""] = /\n\n( {2}\{"request"[^]*?\})\n\n/.exec(help) ?? [];
  const decision = decided(loadProfile("gnomon"), JSON.parse(state)) as Routed;
  assert.deepEqual(
    decision.breakdown.candidates.map((row) => [row.endpoint, row.freshness]),
    [
      ["a", "fresh"],
      ["b", "unknown"],
    ],
  );
});

test("a state and the JSON of a live decision print the same table", () => {
  const decision = decided(weighted, STATE);
  const view = decisionView({ decision, model: "m", promptTokens: 1000, decisionMicros: 3, came: {} });
  const table = decisionTable(JSON.parse(JSON.stringify(view)), "decision");
  const lines = table.split("\n");
  assert.match(
    lines[0]!,
    /^profile weighted picks a because of prefix-affinity, expecting 640 cached tokens; the ledger stands in/,
  );
  assert.match(
    lines[1]!,
    /endpoint +signals +load +kv +in flight +prefill +hit +prefix-affinity ×0\.429 +queue-depth ×0\.286 +kv-utilization ×0\.286 +total/,
  );
  assert.match(lines[2]!, /→ +a +fresh 0 ms +4 +0\.4000 +0 +0 +640 +0\.6452 +0\.8000 +0\.6000 +0\.6765/);
  assert.match(lines[5]!, /d +unknown .* removed by unknown-model$/);
  assert.match(lines[6]!, /e +unknown .* removed by cordoned$/);
});

test("ties and refusals are explained", () => {
  const same = { request: { promptTokens: 10 }, endpoints: [{ id: "a" }, { id: "b" }] };
  const tie = decisionTable(JSON.parse(JSON.stringify(decisionView(kept(decided(weighted, same))))), "");
  assert.match(tie, /because of tie, expecting 0 cached tokens; 2 share the highest total: a, b/);
  for (const [state, reason] of [
    [{ request: { promptTokens: 1 }, endpoints: [] }, "no-endpoint"],
    [{ request: { model: "m", promptTokens: 1 }, endpoints: [{ id: "a", models: ["n"] }] }, "unknown-model"],
    [{ request: { promptTokens: 1 }, endpoints: [{ id: "a", cordoned: true }] }, "no-endpoint"],
  ] as const) {
    const decision = decided(weighted, state);
    assert.deepEqual([decision.kind, decision.reason], ["rejected", reason]);
  }
});

test("every shipped profile decides every state, alike each time", () => {
  for (const name of profileNames()) {
    const profile = loadProfile(name);
    const [first, again] = [decided(profile, STATE), decided(profile, STATE)];
    assert.deepEqual([first.kind, first.reason], [again.kind, again.reason], name);
    if (first.kind === "routed") assert.ok(["a", "b", "c"].includes(first.endpoint), name);
  }
});

test("a bad state is refused with the path and what is accepted", () => {
  const bad = {
    request: { promptTokens: -1, prompt: "secret" },
    endpoints: [{ load: { kvUtilization: 2 }, kvCapacityTokens: 0, concurrencyMax: 0 }],
  };
  assert.throws(
    () => decided(weighted, bad, "state.json"),
    (error) => {
      assert.ok(error instanceof ConfigError);
      const text = error.lines.join("\n");
      assert.match(text, /request\.promptTokens: expected an integer in \[0, 1000000000\], got -1 \(state\.json\)/);
      assert.match(text, /request\.prompt: expected one of model, /);
      assert.match(text, /endpoints\[0\]\.id: expected a string that is not empty, got nothing/);
      assert.match(text, /endpoints\[0\]\.load\.kvUtilization: expected a number in \[0, 1\], got 2/);
      for (const name of ["kvCapacityTokens", "concurrencyMax"])
        assert.match(
          text,
          new RegExp(`endpoints\\[0\\]\\.${name}: expected a number in \\[1, 1000000000000\\], got 0`),
        );
      assert.equal(text.includes("secret"), false);
      return true;
    },
  );
  assert.throws(() => decisionTable({ profile: 1 }, "d.json"), /profile: expected a string, got 1 \(d\.json\)/);
});

function kept(decision: ReturnType<typeof decided>) {
  return { decision, model: undefined, promptTokens: undefined, decisionMicros: 0, came: {} };
}

const SHARED = {
  request: { model: "m", promptTokens: 4000 },
  endpoints: [
    { id: "p1", labels: { "llm-d.ai/role": "prefill" }, prefillTokensQueued: 9000, requestsInFlight: 3 },
    { id: "p2", labels: { "llm-d.ai/role": "prefill" } },
    { id: "d1", labels: { "llm-d.ai/role": "decode" }, requestsInFlight: 5 },
    { id: "d2", labels: { "llm-d.ai/role": "decode" } },
  ],
};

test("a profile with a stage for prompts shows both, or why one endpoint does both", () => {
  const profile = loadProfile("gnomon-pd");
  const shared = decided(profile, SHARED) as Routed;
  assert.deepEqual([shared.endpoint, shared.prefill?.endpoint], ["d2", "p2"]);
  assert.deepEqual(
    shared.prefill?.breakdown.candidates.map(({ endpoint, removedBy }) => [endpoint, removedBy]),
    [
      ["d1", "role"],
      ["d2", "answers"],
      ["p1", ""],
      ["p2", ""],
    ],
  );
  const shown = (decision: Routed) =>
    decisionTable(decisionView({ decision, model: "m", promptTokens: 4000, decisionMicros: 1, came: {} }), "state");
  assert.match(
    shown(shared),
    /picks d2 because[^]*removed by role[^]*its prompt is computed at p2 because of[^]*removed by answers/,
  );
  const short = decided(profile, { ...SHARED, request: { model: "m", promptTokens: 100 } }) as Routed;
  assert.equal(short.prefill, undefined);
  assert.match(shown(short), /its prompt is computed there too: short/);
});
