import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { CascadeJudge } from "#core/path/cascade/cascade-judge.ts";
import { Cascade } from "#core/path/cascade/cascade.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { Input } from "#core/input/input.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "../../state.ts";

const STEP = { model: "small", logprobMin: -0.5 };

function router(): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: loadProfile("gnomon").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const [id, model] of [
    ["s", "small"],
    ["l", "large"],
  ] as const) {
    const endpoint = { id, models: [model], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

describe("an answer of a cascade", () => {
  const judge = (escalationsInFlightMax = 1) => new CascadeJudge({ escalationsInFlightMax, heldBytesMax: 100 });

  test("is kept at the threshold and above it, given up below", () => {
    assert.equal(judge().keeps(STEP, -0.5, 8), "sure");
    assert.equal(judge().keeps(STEP, -0.500001, 8), undefined);
    assert.equal(judge().keeps({ model: "large" }, -9, 8), "sure");
    assert.equal(judge().keeps(STEP, 0, 0), "unread");
  });

  test("is kept where as many escalations are under way as may be", () => {
    const one = judge();
    one.began();
    assert.equal(one.keeps(STEP, -9, 8), "full");
    one.ended();
    assert.equal(one.keeps(STEP, -9, 8), undefined);
  });

  test("is held within the bound of bytes", () => {
    const one = judge();
    assert.ok(one.hold(60));
    assert.ok(!one.hold(41));
    one.letGo(60);
    assert.ok(one.hold(100));
  });
});

describe("a request that is escalated", () => {
  /** One request at the small model, with its first token; and the router that reports of it, with one that listens. */
  function underWay() {
    const [own, peer] = [router(), router()];
    const news = new OwnNews();
    let sequence = 0;
    const accept = (input: Parameters<Router["accept"]>[0]) => {
      const decision = own.accept(input);
      news.follow(input, decision);
      if (news.size > 0) {
        const head = { kind: "peer-reported", at: input.at, peer: "p", epoch: 1, sequence: ++sequence } as const;
        peer.accept({ ...head, news: news.take() });
      }
      return decision;
    };
    const asked = request({ id: "r", model: "small", promptTokens: 40, blocks: chain(1, 2) });
    accept({ kind: "request-arrived", at: 1, request: asked });
    accept({ kind: "first-token", at: 5, requestId: "r" });
    return { own, peer, accept, asked };
  }
  const loads = (made: Router) => made.endpointRows(20).map(({ id, requestsInFlight }) => [id, requestsInFlight]);
  const next = request({ id: "r", model: "large", promptTokens: 50, blocks: chain(2, 2) });

  test("is charged at the other model's endpoint alone, and released there, in all routers", () => {
    const { own, peer, accept } = underWay();
    const from = { kind: "request-escalated", at: 10, requestId: "r", meanLogprob: -1, tokens: 8 } as const;
    const decision = accept({ ...from, request: next });
    assert.ok(decision?.kind === "routed" && decision.endpoint === "l");
    for (const made of [own, peer]) {
      assert.deepEqual(loads(made), [
        ["l", 1],
        ["s", 0],
      ]);
    }
    const counts = { promptTokens: 50, cachedTokens: 0, outputTokens: 4 };
    accept({ kind: "request-finished", at: 20, requestId: "r", outcome: "ok", ...counts });
    assert.deepEqual([own.openCharges, own.inFlight, own.strayInputs], [0, 0, 0]);
    for (const made of [own, peer]) {
      assert.deepEqual(loads(made), [
        ["l", 0],
        ["s", 0],
      ]);
    }
  });

  test("leaves its prompt's blocks where they were computed, and is expected at the other", () => {
    const { own, accept, asked } = underWay();
    accept({ kind: "request-escalated", at: 10, requestId: "r", meanLogprob: -1, tokens: 8, request: next });
    for (const [again, endpoint] of [
      [asked, "s"],
      [next, "l"],
    ] as const) {
      const decision = own.accept({ kind: "request-arrived", at: 30, request: { ...again, id: endpoint } });
      assert.ok(decision.kind === "routed" && decision.endpoint === endpoint && decision.hitTokens === 32);
    }
  });

  test("stays where nobody takes it, and its answer goes on", () => {
    const { own, accept } = underWay();
    accept({ kind: "endpoint-cordoned", at: 6, endpoint: "l" });
    const judge = new CascadeJudge({ escalationsInFlightMax: 1, heldBytesMax: 1 });
    const ways = { accept: (input: Input) => own.accept(input), again: (input: Input) => own.accept(input) };
    const spec = { name: "c", steps: [STEP, { model: "large" }], judgedTokensMax: 8 };
    const cascade = new Cascade(spec, judge, { now: () => 10, router: ways as unknown as PathRouter });
    assert.equal(cascade.judging, true);
    assert.deepEqual(cascade.judge("r", { meanLogprob: -1, tokens: 8 }, next), { kind: "keep", why: "no-endpoint" });
    assert.deepEqual([cascade.judging, cascade.number], [false, 0]);
    cascade.ended();
    assert.equal(judge.escalationsInFlight, 0);
    own.accept({
      kind: "request-finished",
      at: 20,
      requestId: "r",
      outcome: "ok",
      promptTokens: 40,
      cachedTokens: 0,
      outputTokens: 4,
    });
    assert.deepEqual([own.openCharges, own.inFlight, own.strayInputs], [0, 0, 0]);
  });
});
