import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { request } from "../state.ts";

const LIMITS = {
  limits: {
    quota: {
      type: "tenant-quota",
      per: "tenant",
      requestsMax: 4,
      byTenant: {},
      onLimit: "reject",
      retryMicros: 1_000,
    },
  },
} as const satisfies Partial<AdmissionSpec>;

/** Routers that have the same limits, and what each has not reported yet. */
function routers(
  count: number,
  admission: Partial<AdmissionSpec> = LIMITS,
): { readonly router: Router; readonly news: OwnNews; sequence: number }[] {
  return Array.from({ length: count }, () => {
    const router = new Router({
      seed: 1,
      profiles: { default: loadProfile("gnomon").spec },
      defaultProfile: "default",
      index: new ApproximateIndex(),
      blockTokens: 16,
      staleAfterMicros: 1_000_000,
      admission: admission as AdmissionSpec,
    });
    const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 64 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
    return { router, news: new OwnNews(), sequence: 0 };
  });
}

/**
 * 40 requests of one tenant, to the routers in turn; news reach the others after so many requests. How many were let
 * in.
 */
function letIn(all: ReturnType<typeof routers>, every: number): number {
  let placed = 0;
  for (let i = 0; i < 40; i++) {
    const one = all[i % all.length]!;
    const input = { kind: "request-arrived", at: i, request: request({ id: `r${i}`, tenant: "t" }) } as const;
    const decision = one.router.accept(input);
    one.news.follow(input, decision);
    if (decision.kind === "routed") placed++;
    if ((i + 1) % every === 0) for (const [number] of all.entries()) report(all, number, i);
  }
  return placed;
}

function report(all: ReturnType<typeof routers>, number: number, at: number): void {
  const from = all[number]!;
  if (from.news.size === 0) return;
  const head = { kind: "peer-reported", at, peer: `p${number}`, epoch: 1, sequence: ++from.sequence } as const;
  const news = from.news.take();
  all.forEach(({ router }, other) => other !== number && router.accept({ ...head, news }));
}

test("a quota holds for all routers; it is exceeded by what others let in before the news, and without news by each", () => {
  assert.equal(letIn(routers(1), 1), 4);
  assert.equal(letIn(routers(4), 1), 4);
  // News after each turn of all four routers: nobody lets in a second one before it knows of the others.
  assert.equal(letIn(routers(4), 4), 4);
  assert.equal(letIn(routers(2), 40), 8);
  const lag = letIn(routers(4), 8);
  assert.ok(lag <= 4 + 3 * 2, `${lag} were let in`);
});

test("what a peer held of a quota is free again when it ends there, and when the peer is gone", () => {
  const all = routers(2);
  const [one, two] = all as [(typeof all)[0], (typeof all)[0]];
  for (let i = 0; i < 4; i++) {
    const input = { kind: "request-arrived", at: i, request: request({ id: `r${i}`, tenant: "t" }) } as const;
    one.news.follow(input, one.router.accept(input));
  }
  report(all, 0, 4);
  const asked = (id: string, at: number) =>
    two.router.accept({ kind: "request-arrived", at, request: request({ id, tenant: "t" }) }).kind;
  const end = (router: Router, requestId: string, at: number) => {
    const counts = { promptTokens: 20, cachedTokens: 0, outputTokens: 5 };
    const input = { kind: "request-finished", at, requestId, outcome: "ok", ...counts } as const;
    const decision = router.accept(input);
    if (router === one.router) one.news.follow(input, decision);
  };
  assert.equal(asked("x", 5), "rejected");
  end(two.router, "x", 5);
  end(one.router, "r0", 6);
  report(all, 0, 6);
  assert.equal(asked("y", 7), "routed");
  assert.equal(asked("z", 8), "rejected");
  end(two.router, "z", 8);
  two.router.accept({ kind: "peer-left", at: 9, peer: "p0" });
  for (const id of ["k", "l", "m"]) assert.equal(asked(id, 10), "routed");
  assert.equal(asked("n", 11), "rejected");
});

/**
 * Requests of two users of one tenant, to two routers in turn that get each other's news at once: how many each is let
 * in.
 */
function letInByUser(limit: AdmissionSpec["limits"][string]): number[] {
  const all = routers(2, { limits: { limit } });
  const placed = [0, 0];
  for (let i = 0; i < 40; i++) {
    const user = (i >> 1) % 2;
    const asked = request({ id: `r${i}`, tenant: "t", user: `u${user}`, outputTokensMax: 10 });
    const input = { kind: "request-arrived", at: i, request: asked } as const;
    const one = all[i % 2]!;
    const decision = one.router.accept(input);
    one.news.follow(input, decision);
    if (decision.kind === "routed") placed[user]!++;
    report(all, i % 2, i);
  }
  return placed;
}

test("limits of users hold for all routers, and what a request may make counts at each of them as where it was let in", () => {
  const options = { per: "user", onLimit: "reject" } as const;
  const windowMicros = 1_000_000_000;
  assert.deepEqual(letInByUser({ type: "rate-limit", requestsMax: 5, windowMicros, ...options }), [5, 5]);
  const usage = { type: "usage-quota", byTenant: {}, outputTokensAssumed: 1_000, windowMicros, ...options } as const;
  assert.deepEqual(letInByUser({ ...usage, requestsMax: 5 }), [5, 5]);
  assert.deepEqual(letInByUser({ ...usage, outputTokensMax: 70 }), [7, 7]);
});
