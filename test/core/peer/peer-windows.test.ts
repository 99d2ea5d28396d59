import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadProfile } from "#config/profile-file.ts";
import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import { windowsOf } from "#core/admission/windows-elsewhere.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import type { PeerNews } from "#core/request/peer-news.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { request } from "../state.ts";

const WINDOW = 1_000_000;
const LIMITS = {
  quota: {
    type: "usage-quota",
    per: "tenant",
    requestsMax: 4,
    byTenant: {},
    outputTokensAssumed: 10,
    windowMicros: WINDOW,
    onLimit: "reject",
  },
  rate: { type: "rate-limit", per: "tenant", requestsMax: 4, windowMicros: WINDOW, onLimit: "reject" },
  bucket: {
    type: "token-bucket",
    per: "tenant",
    bucketTokens: 4,
    refillPerSecond: 1e-6,
    cost: "requests",
    onEmpty: "reject",
  },
} as const satisfies AdmissionSpec["limits"];

/** A router whose clock began so long before or after the others', and what it has not reported. */
class One {
  readonly router: Router;
  readonly news = new OwnNews();
  readonly #name: string;
  readonly #began: number;
  #sequence = 0;

  constructor(name: string, limits: AdmissionSpec["limits"], began = 0) {
    this.#name = name;
    this.#began = began;
    this.router = new Router({
      seed: 1,
      profiles: { default: loadProfile("gnomon").spec },
      defaultProfile: "default",
      index: new ApproximateIndex(),
      blockTokens: 16,
      staleAfterMicros: 1_000_000,
      admission: { limits } as unknown as AdmissionSpec,
    });
    const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 640 };
    this.router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }

  asks(id: string, at: number): boolean {
    const arrived = { kind: "request-arrived", at: at - this.#began, request: request({ id, tenant: "t" }) } as const;
    const decision = this.router.accept(arrived);
    this.news.follow(arrived, decision);
    return decision.kind === "routed";
  }

  ends(requestId: string, at: number): void {
    const counts = { promptTokens: 20, cachedTokens: 0, outputTokens: 5 };
    const input = { kind: "request-finished", at: at - this.#began, requestId, outcome: "ok", ...counts } as const;
    this.news.follow(input, this.router.accept(input));
  }

  report(to: readonly One[], at: number): void {
    const news = this.news.take();
    if (news.length > 0) this.#send(to, at, news);
  }

  snapshot(to: readonly One[], at: number): void {
    this.report(to, at);
    const { windows } = windowsOf(this.router.admission.limits, at - this.#began);
    this.#send(to, at, [...windows, ...this.news.snapshot()], true);
  }

  used(at: number): number {
    return [...this.router.admission.limits.values()][0]!.uses(at - this.#began)[0]?.used ?? 0;
  }

  #send(to: readonly One[], at: number, news: readonly PeerNews[], snapshot?: true): void {
    const sequence = ++this.#sequence;
    for (const one of to) {
      const head = { kind: "peer-reported", at: at - one.#began, peer: this.#name, epoch: 1, sequence } as const;
      if (one !== this) one.router.accept({ ...head, ...(snapshot && { snapshot }), news });
    }
  }
}

for (const [name, limit] of Object.entries(LIMITS)) {
  test(`${name}: both routers replaced one after the other, what was used counts on until its window ends`, () => {
    const limits = { [name]: limit };
    const old = [new One("p0", limits), new One("p1", limits)] as const;
    for (let i = 0; i < 4; i++) {
      assert.equal(old[i % 2]!.asks(`r${i}`, i), true);
      old[i % 2]!.report(old, i);
    }
    // The last one stays in flight, so that it comes as a charge and in the window.
    for (const i of [0, 1, 2]) old[i % 2]!.ends(`r${i}`, 10 + i);
    for (const one of old) one.report(old, 20);
    // p0 goes and one comes, then p1 goes and one comes.
    const first = new One("new0", limits, 100);
    old[1].snapshot([first], 101);
    assert.ok(Math.abs(first.used(101) - 4) < 0.01, `${first.used(101)} used`);
    assert.equal(first.asks("x0", 102), false);
    const last = new One("new1", limits, 200);
    first.snapshot([last], 201);
    assert.ok(Math.abs(last.used(201) - 4) < 0.01, `${last.used(201)} used`);
    assert.equal(last.asks("y", WINDOW / 2), false);
    if (name !== "bucket") assert.equal(last.asks("z", 2 * WINDOW + 1_000), true);
  });
}

test("a router that starts never counts more than was let in, in any order of snapshots and reports", () => {
  const step = fc.record({ by: fc.nat(1), what: fc.constantFrom("ask", "report", "snapshot") });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 20 }),
      fc.array(step, { maxLength: 20 }),
      fc.constantFrom("quota", "rate", "bucket"),
      (before, after, kind) => {
        const { [kind]: limit } = LIMITS as AdmissionSpec["limits"];
        const wide = { ...limit!, ...(kind === "bucket" ? { bucketTokens: 100 } : { requestsMax: 100 }) };
        const limits = { [kind]: wide } as AdmissionSpec["limits"];
        const old = [new One("p0", limits), new One("p1", limits)];
        const fresh = new One("new", limits, 100);
        let placed = 0;
        const go = (steps: typeof before, to: readonly One[], from: number) => {
          for (const [i, { by, what }] of steps.entries()) {
            const at = from + i;
            if (what === "ask" && old[by]!.asks(`r${at}`, at)) placed++;
            if (what === "report") old[by]!.report(to, at);
            if (what === "snapshot") old[by]!.snapshot(to, at);
            assert.ok(fresh.used(Math.max(101, at)) <= placed + 0.01, `${fresh.used(at)} of ${placed}`);
          }
        };
        go(before, old, 0);
        go(after, [...old, fresh], 101);
        for (const one of old) one.report([...old, fresh], 200);
        for (const one of old) one.snapshot([fresh], 201);
        assert.ok(fresh.used(202) <= placed + 0.01, `${fresh.used(202)} of ${placed}`);
      },
    ),
  );
});
