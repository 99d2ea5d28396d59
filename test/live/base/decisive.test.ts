import assert from "node:assert/strict";
import { test } from "node:test";
import type { Routed } from "#core/input/decision.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { decisiveText } from "#live/base/decisive.ts";
import { request } from "../../core/state.ts";

function router(profile: string, endpoints: readonly string[]): Router {
  const { name, spec } = loadProfile(profile);
  const made = new Router({
    seed: 1,
    profiles: { [name]: spec },
    defaultProfile: name,
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 3_000_000,
  });
  for (const id of endpoints) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

/** A prompt of whole blocks, the same for the same `text`. */
function ask(made: Router, at: number, id: string, text: number, promptTokens = 100): Routed {
  const length = Math.floor(promptTokens / 16);
  const hashes = Int32Array.from({ length: 2 * length }, (_, i) => text * 1_000 + i);
  const asked = request({ id, promptTokens, blocks: { hashes, length, blockTokens: 16 } });
  const decision = made.accept({ kind: "request-arrived", at, request: asked });
  assert.equal(decision.kind, "routed");
  return decision;
}

const exact = { promptTokens: 100, exact: true };

test("a hit is explained by how much is cached there and at the next best, and what waiting that saves", () => {
  const made = router("gnomon", ["a", "b"]);
  const first = ask(made, 1, "q1", 7);
  assert.equal(
    decisiveText(first, exact),
    "tie; none of its 100 tokens cached; first token expected in 12 ms, at the next best in 12 ms; equal to 1 more, decided by the tie rule",
  );
  const done = { outcome: "ok", promptTokens: 100, cachedTokens: 0, outputTokens: 4 } as const;
  made.accept({ kind: "request-finished", at: 2, requestId: "q1", ...done });
  const second = ask(made, 3, "q2", 7);
  assert.match(
    decisiveText(second, exact),
    /^predicted-latency; 96 of 100 tokens cached there, next best 0; the next best adds [\d.]+ times the waiting; first token expected in \d+ ms, at the next best in \d+ ms$/,
  );
  assert.match(decisiveText(second, { promptTokens: 100, exact: false }), /; about 96 of 100 tokens cached there/);
});

test("load that differs is given in requests and queued tokens", () => {
  const made = router("gnomon", ["a", "b"]);
  ask(made, 1, "q1", 7, 4_000);
  const other = decisiveText(ask(made, 2, "q2", 8, 4_000), { promptTokens: 4_000, exact: true });
  assert.match(
    other,
    /; none of its 4000 tokens cached; 0 requests there, next best 1; 0 prompt tokens queued there, next best 4000; /,
  );
});

test("the only endpoint is explained by what removed the others", () => {
  assert.equal(decisiveText(ask(router("gnomon", ["a"]), 1, "q", 1), exact), "only; there is no other endpoint");
  const made = router("gnomon", ["a", "b", "c"]);
  made.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "a" });
  made.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "b" });
  assert.equal(decisiveText(ask(made, 2, "q", 1), exact), "only; the others were removed: 2 by cordoned");
});

test("under every profile it begins with the decision's word, and is a short header of printable ASCII", () => {
  for (const name of profileNames()) {
    const made = router(name, ["a", "b", "c"]);
    for (let i = 0; i < 12; i++) {
      const decision = ask(made, i, `q${i}`, i % 3, 100 + 10 * i);
      const text = decisiveText(decision, { promptTokens: 100 + 10 * i, exact: i % 2 === 0 });
      assert.equal(text.split("; ")[0], decision.reason, name);
      assert.match(text, /^[\x20-\x7e]{1,255}$/, name);
      assert.doesNotMatch(text, /NaN|undefined|Infinity/, name);
    }
  }
});
