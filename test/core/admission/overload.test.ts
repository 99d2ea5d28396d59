import assert from "node:assert/strict";
import { test } from "node:test";
import type { QueueSpec } from "#core/admission/admission-spec.ts";
import { DrainRate } from "#core/admission/drain-rate.ts";
import type { Decision } from "#core/input/decision.ts";
import { Heap } from "#core/base/heap.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { request } from "../state.ts";

const SECOND = 1_000_000;
const TENANTS = ["large", "small-1", "small-2"] as const;
type Tenant = (typeof TENANTS)[number];

const QUEUE: QueueSpec = {
  requestsMax: 1_000,
  promptTokensMax: 1e9,
  ttlMicros: 5 * SECOND,
  waitAt: 1,
  fairness: "least-served",
  inputWeight: 1,
  outputWeight: 1,
  shares: { large: 2 },
  emptyPool: { requestsMax: 0, ttlMicros: 1, models: [] },
};

interface Outcome {
  readonly accepted: number[];
  /** Waits of those that were refused after they had waited. */
  readonly refusedLate: number[];
  refusedAtOnce: number;
  readonly served: Record<Tenant, number>;
}

/** A router with these endpoints, each with room for 16 requests; all others wait in `queue`. */
function routerBefore(endpoints: readonly string[], plain: ProfileSpec, queue: QueueSpec): Router {
  const router = new Router({
    seed: 1,
    profiles: { plain },
    defaultProfile: "plain",
    index: new DualIndex(),
    blockTokens: 16,
    staleAfterMicros: SECOND,
    admission: {
      limits: {},
      classes: { scores: {}, defaultScore: 0 },
      saturation: { waitingMax: 1_000, kvUtilizationMax: 0.8, requestsMax: 16 },
      queue,
    },
  });
  for (const id of endpoints) {
    const endpoint = { id, models: ["m"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return router;
}

/**
 * Two endpoints with room for 16 requests of 200 to 600 ms each, so 80 a second, in virtual time; three tenants ask for a
 * third each. The first ten seconds do not count.
 */
function overload(queue: QueueSpec, perSecond: number, seconds: number): Outcome {
  const scorers = [{ plugin: "queue-depth", weight: 1, parameters: {} }];
  const profile: ProfileSpec = { filters: [], scorers, picker: { plugin: "max-score", parameters: {} } };
  const router = routerBefore(["a", "b"], profile, queue);
  const random = randomFor(7, 1);
  const events = new Heap<{ at: number; number: number; run: () => void }>((a, b) =>
    a.at === b.at ? a.number < b.number : a.at < b.at,
  );
  const outcome: Outcome = {
    accepted: [],
    refusedLate: [],
    refusedAtOnce: 0,
    served: { large: 0, "small-1": 0, "small-2": 0 },
  };
  const arrivals = new Map<string, { at: number; tenant: Tenant }>();
  let [now, number] = [0, 0];
  const later = (at: number, run: () => void): void => events.push({ at, number: number++, run });
  const ended = (requestId: string, outputTokens: number | undefined): void => {
    const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens };
    router.accept({
      kind: "request-finished",
      at: now,
      requestId,
      outcome: outputTokens === undefined ? "refused" : "ok",
      ...counts,
    });
    const { at, tenant } = arrivals.get(requestId)!;
    if (outputTokens === undefined) {
      if (now > at) outcome.refusedLate.push(now - at);
      else outcome.refusedAtOnce++;
    } else if (at > 10 * SECOND) {
      outcome.accepted.push(now - at);
      outcome.served[tenant]++;
    }
    turns();
  };
  const decided = ({ kind, requestId }: Decision): void => {
    const tokens = 10 + random.below(21);
    if (kind === "routed") later(now + tokens * 20_000, () => ended(requestId, tokens));
    else if (kind === "rejected") later(now, () => ended(requestId, undefined));
  };
  const turns = (): void => {
    for (let id = router.admission.due(now); id !== undefined; id = router.admission.due(now)) {
      decided(router.accept({ kind: "request-released", at: now, requestId: id }));
    }
  };
  const arrive = (i: number): void => {
    const [id, tenant] = [`r${i}`, TENANTS[i % 3]!];
    arrivals.set(id, { at: now, tenant });
    decided(router.accept({ kind: "request-arrived", at: now, request: request({ id, model: "m", tenant }) }));
    turns();
    if (now < seconds * SECOND) later(now + Math.round(SECOND / perSecond), () => arrive(i + 1));
  };
  later(0, () => arrive(0));
  for (let next = events.first; next !== undefined; next = events.first) {
    events.remove(next);
    now = next.at;
    next.run();
  }
  return outcome;
}

test("a tenant is charged with all tokens that its request's answers are expected to have, and in the end with those they had", () => {
  const profile: ProfileSpec = { filters: [], scorers: [], picker: { plugin: "random", parameters: {} } };
  const router = routerBefore(["a"], profile, QUEUE);
  const counters = router.admission.shared.counters()!;
  const arrive = (id: string, sequences: number) => {
    const asked = request({ id, tenant: id, promptTokens: 1, sequences });
    router.accept({ kind: "request-arrived", at: 1, request: asked });
    return counters.of(id);
  };
  const end = { promptTokens: 1, cachedTokens: 0, outputTokens: 256, outcome: "ok" } as const;
  assert.equal(arrive("first", 4), 1);
  router.accept({ kind: "request-finished", at: 2, requestId: "first", ...end });
  assert.equal(counters.of("first"), 1 + 256);
  // Of four answers of 64 tokens, 1 is expected of each by now.
  assert.deepEqual([arrive("one", 1), arrive("three", 3)], [1 + 1, 1 + 3]);
});

function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(0.99 * (values.length - 1))]!;
}

test("three times what endpoints take: those let in wait no longer than expected, refusals come at once, shares are kept", () => {
  const queue = { ...QUEUE, expectedMicrosMax: 180_000 };
  const usual = overload(queue, 76, 60);
  const { accepted, refusedLate, refusedAtOnce, served } = overload(queue, 240, 60);
  const ratio = p99(accepted) / p99(usual.accepted);
  assert.ok(ratio < 1.5, `p99 is ${ratio.toFixed(2)} times that at capacity`);
  assert.equal(refusedLate.length, 0);
  assert.ok(refusedAtOnce > 5_000, `${refusedAtOnce} refused`);
  assert.ok(accepted.length > 0.98 * 50 * 80, `${accepted.length} served, so that nothing stands idle`);
  const small = (served["small-1"] + served["small-2"]) / 2;
  assert.ok(Math.abs(served.large / small - 2) < 0.1, JSON.stringify(served));
  assert.ok(Math.abs(served["small-1"] / small - 1) < 0.05, JSON.stringify(served));
  assert.equal(usual.refusedAtOnce + usual.refusedLate.length, 0, "nobody is refused whom endpoints can take");
});

test("without an expected wait whoever fits the queue waits", () => {
  const { accepted, refusedLate } = overload({ ...QUEUE, requestsMax: 100 }, 240, 30);
  assert.ok(p99(accepted) > (2 * SECOND) / 2, "as long as the queue is");
  assert.ok(refusedLate.length > 0, "others make room for whoever has less");
});

test("first come, first served: all that wait go before", () => {
  const queue = { ...QUEUE, fairness: "first-come", expectedMicrosMax: 180_000 } as const;
  const { accepted, refusedLate } = overload(queue, 240, 30);
  assert.ok(p99(accepted) < 0.9 * SECOND, String(p99(accepted)));
  assert.equal(refusedLate.length, 0);
});

test("the rate is that of times in which others wait, and a stop makes it slower", () => {
  const rate = new DrainRate();
  assert.equal(rate.gapMicros(0), undefined);
  for (let i = 0; i < 20; i++) rate.went(1_000 * i, 5);
  assert.equal(rate.gapMicros(19_000), 1_000);
  assert.ok(rate.gapMicros(60_000)! > 2_900, "nobody went on for 41 ms");
  rate.went(20_000, 0);
  rate.went(9_000_000, 3);
  assert.equal(rate.gapMicros(9_000_000), 1_000, "nobody waited in between");
  rate.emptied();
  rate.went(19_000_000, 3);
  assert.equal(rate.gapMicros(19_000_000), 1_000);
});
