import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision, Routed } from "#core/input/decision.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "./state.ts";

const PROFILE = loadProfile("gnomon").spec;
const IDLE = { requestsInFlight: 0, prefillTokensQueued: 0 };

function fleetOf(...ids: readonly string[]) {
  const index = new ApproximateIndex();
  const made = new Router({
    seed: 1,
    profiles: { default: PROFILE },
    defaultProfile: "default",
    index,
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of ids) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

const BLOCKS = chain(1, 4);
const arrive = (made: Router, id: string) =>
  routed(made.accept({ kind: "request-arrived", at: 10, request: request({ id, promptTokens: 64, blocks: BLOCKS }) }));
const hedge = (made: Router, requestId: string) => made.accept({ kind: "request-hedged", at: 20, requestId });
const finish = (made: Router, requestId: string) => {
  const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
  made.accept({ kind: "request-finished", at: 50, requestId, outcome: "ok", ...counts });
};
const rowOf = (made: Router, endpoint: string) => made.endpointRows(60).find(({ id }) => id === endpoint)!;
const routed = (decision: Decision): Routed => (decision.kind === "routed" ? decision : assert.fail(decision.reason));
/** What the next request with the same prompt is believed to find at an endpoint. */
function hitsAt(made: Router, endpoint: string): number {
  const { breakdown } = made.accept({
    kind: "request-arrived",
    at: 100,
    request: request({ id: "next", promptTokens: 64, blocks: BLOCKS }),
  });
  return breakdown.candidates.find((one) => one.endpoint === endpoint)!.hitTokens;
}

test("a second endpoint is charged beside the first one, and never the same one", () => {
  const made = fleetOf("a", "b");
  const first = arrive(made, "x");
  const second = routed(hedge(made, "x"));
  assert.notEqual(second.endpoint, first.endpoint);
  assert.equal(second.attempt, 2);
  assert.equal(made.openCharges, 2);
  assert.deepEqual([rowOf(made, "a").requestsInFlight, rowOf(made, "b").requestsInFlight], [1, 1]);
  assert.throws(() => hedge(made, "x"), /waits at one endpoint/);
});

test("the first one answers: the second one's charge and blocks are gone, and its breaker knows nothing", () => {
  const made = fleetOf("a", "b");
  const first = arrive(made, "x");
  const second = routed(hedge(made, "x"));
  made.accept({ kind: "hedge-settled", at: 30, requestId: "x", winner: "first" });
  assert.equal(made.openCharges, 1);
  assert.equal(rowOf(made, second.endpoint).requestsInFlight, 0);
  made.accept({ kind: "first-token", at: 31, requestId: "x" });
  finish(made, "x");
  assert.equal(made.openCharges, 0);
  assert.equal(hitsAt(made, second.endpoint), 0);
  assert.ok(hitsAt(fleetOf("a"), "a") === 0 && first.endpoint !== second.endpoint);
});

test("the second one answers: the request is its, from its own charge to its blocks", () => {
  const made = fleetOf("a", "b");
  const first = arrive(made, "x");
  const second = routed(hedge(made, "x"));
  made.accept({ kind: "hedge-settled", at: 30, requestId: "x", winner: "second" });
  assert.equal(rowOf(made, first.endpoint).requestsInFlight, 0);
  made.accept({ kind: "first-token", at: 31, requestId: "x" });
  assert.equal(rowOf(made, second.endpoint).requestsInFlight, 1);
  finish(made, "x");
  assert.equal(made.openCharges, 0);
  assert.ok(hitsAt(made, second.endpoint) > 0);
  assert.equal(made.strayInputs, 0);
});

test("one that fails counts for its breaker, a retry leaves both out, and a third takes it", () => {
  const made = fleetOf("a", "b", "c");
  const first = arrive(made, "x");
  const second = routed(hedge(made, "x"));
  made.accept({ kind: "hedge-settled", at: 30, requestId: "x", winner: "first", fault: "connect" });
  made.accept({ kind: "attempt-failed", at: 31, requestId: "x", fault: "connect" });
  const third = made.accept({ kind: "request-retried", at: 32, requestId: "x" });
  assert.deepEqual([first.endpoint, second.endpoint, routed(third).endpoint].toSorted(), ["a", "b", "c"]);
  assert.equal(routed(third).attempt, 2, "a second endpoint that came to nothing is no attempt");
  finish(made, "x");
  assert.equal(made.openCharges, 0);
});

test("where no second endpoint is, nothing is charged; a request that is over settles nothing", () => {
  const made = fleetOf("a");
  arrive(made, "x");
  assert.equal(hedge(made, "x").kind, "rejected");
  assert.equal(made.openCharges, 1);
  finish(made, "x");
  made.accept({ kind: "hedge-settled", at: 60, requestId: "x", winner: "second" });
  assert.equal(made.strayInputs, 1);
});

test("whatever becomes of requests at two endpoints, all is released", () => {
  const step = fc.constantFrom("hedge", "first", "second", "failed", "token", "finish");
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), step), { maxLength: 60 }), (steps) => {
      const made = fleetOf("a", "b", "c");
      const open = new Map<string, "one" | "two" | "answering">();
      let at = 10;
      for (const [i, what] of steps) {
        const id = `r${i}`;
        const state = open.get(id);
        at++;
        if (state === undefined) {
          arrive(made, id);
          open.set(id, "one");
        } else if (what === "hedge" && state === "one") {
          if (made.accept({ kind: "request-hedged", at: 20, requestId: id }).kind === "routed") open.set(id, "two");
        } else if ((what === "first" || what === "second") && state === "two") {
          made.accept({ kind: "hedge-settled", at: 30, requestId: id, winner: what });
          made.accept({ kind: "first-token", at: 30, requestId: id });
          open.set(id, "answering");
        } else if (what === "failed" && state === "two") {
          made.accept({ kind: "hedge-settled", at: 30, requestId: id, winner: "second", fault: "cut" });
          open.set(id, "answering");
        } else if (what === "finish") {
          finish(made, id);
          open.delete(id);
        }
      }
      for (const id of open.keys()) finish(made, id);
      assert.equal(made.openCharges, 0);
      for (const row of made.endpointRows(at)) {
        assert.deepEqual(
          { requestsInFlight: row.requestsInFlight, prefillTokensQueued: row.prefillTokensQueued },
          IDLE,
        );
      }
    }),
  );
});

test("peers get to know of a second endpoint when it answers", () => {
  const made = fleetOf("a", "b");
  const news = new OwnNews();
  const tell = (input: Parameters<Router["accept"]>[0]) => news.follow(input, made.accept(input as never));
  tell({ kind: "request-arrived", at: 10, request: request({ id: "x", promptTokens: 64, blocks: BLOCKS }) });
  news.take();
  tell({ kind: "request-hedged", at: 20, requestId: "x" });
  assert.equal(news.size, 0);
  tell({ kind: "hedge-settled", at: 30, requestId: "x", winner: "second" });
  const [failed, charged] = news.take();
  assert.equal(failed?.kind, "failed");
  assert.ok(charged?.kind === "charged" && charged.attempt === 2);
});
