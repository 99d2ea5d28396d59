import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ADMIT_ALL, type AdmissionSpec, type QueueSpec } from "#core/admission/admission-spec.ts";
import type { LimitSpec } from "#core/admission/create.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { Router } from "#core/router.ts";
import { request } from "./state.ts";

const LEAST_BUSY: ProfileSpec = {
  filters: [],
  scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};
const QUEUE: QueueSpec = {
  requestsMax: 4,
  promptTokensMax: 1_000_000,
  ttlMicros: 1_000,
  waitAt: 1,
  fairness: "least-served",
  inputWeight: 1,
  outputWeight: 2,
  shares: {},
  emptyPool: { requestsMax: 0, ttlMicros: 5_000, models: [] },
};
const CLASSES = { scores: { critical: 4, standard: 3, batch: -1 }, defaultScore: 3 };

const spec = (more: Partial<AdmissionSpec>): AdmissionSpec => ({ ...ADMIT_ALL, classes: CLASSES, ...more });

/** A router over endpoints that are full with two requests each. */
class Host {
  readonly router: Router;
  readonly inputs: Input[] = [];
  readonly decisions: (Decision | undefined)[] = [];
  readonly #options;

  constructor(admission: AdmissionSpec | undefined, endpoints = 1) {
    this.#options = {
      seed: 1,
      profiles: { default: LEAST_BUSY },
      defaultProfile: "default",
      blockTokens: 16,
      staleAfterMicros: 1_000_000,
      admission,
    };
    this.router = new Router({ ...this.#options, index: new ApproximateIndex() });
    for (let i = 0; i < endpoints; i++) this.join(`e${i}`);
  }

  accept(input: Input): Decision | undefined {
    this.inputs.push(input);
    const decision = this.router.accept(input);
    this.decisions.push(decision);
    return decision;
  }

  join(id: string, at = 0, labels: Record<string, string> = {}): void {
    const endpoint = { id, models: ["m"], labels, kvCapacityTokens: 16_000, concurrencyMax: 2 };
    this.accept({ kind: "endpoint-joined", at, endpoint });
  }

  arrives(id: string, at: number, more: Partial<Parameters<typeof request>[0]> = {}): Decision {
    return this.accept({ kind: "request-arrived", at, request: request({ model: "m", ...more, id }) })!;
  }

  ends(requestId: string, at: number, outputTokens: number | undefined = 4): void {
    const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens };
    this.accept({ kind: "request-finished", at, requestId, outcome: "ok", ...counts });
  }

  /** As both hosts do after every input: who goes on, in order, and how. */
  turns(at: number): string[] {
    const taken: string[] = [];
    for (;;) {
      const requestId = this.router.admission.due(at);
      if (requestId === undefined) return taken;
      const decision = this.accept({ kind: "request-released", at, requestId });
      if (decision === undefined || decision.kind === "queued") return taken;
      taken.push(decision.kind === "routed" ? requestId : `${requestId} ${decision.reason}`);
    }
  }

  /** What a fresh router makes of the same inputs. */
  replayed(): (Decision | undefined)[] {
    const fresh = new Router({ ...this.#options, index: new ApproximateIndex() });
    return this.inputs.map((input) => fresh.accept(input));
  }
}

const word = ({ kind, reason }: Decision) => (kind === "routed" ? kind : `${kind} ${reason}`);

test("without a spec nothing is held back, and nothing is counted", () => {
  const host = new Host(undefined);
  for (let i = 0; i < 20; i++) assert.equal(host.arrives(String(i), i).kind, "routed");
  assert.equal(host.router.admission.waiting, 0);
  assert.equal(host.router.admission.nextAt, Infinity);
});

test("a full pool lets wait, in order, and releases as it gets room; what waits too long is refused", () => {
  const host = new Host(spec({ queue: QUEUE }));
  assert.deepEqual(
    ["a", "b", "c", "d", "e"].map((id, i) => word(host.arrives(id, i))),
    ["routed", "routed", "queued saturated", "queued saturated", "queued saturated"],
  );
  assert.deepEqual(host.turns(10), []);
  host.ends("a", 20);
  assert.equal(word(host.arrives("f", 21)), "queued saturated", "nobody overtakes");
  assert.deepEqual(host.turns(22), ["c"]);
  assert.equal(host.router.admission.nextAt, 1_003);
  assert.deepEqual(host.turns(1_010), ["d queue-timeout", "e queue-timeout"]);
  host.ends("b", 1_011);
  assert.deepEqual(host.turns(1_012), ["f"]);
  assert.equal(host.router.admission.waiting, 0);
});

test("classes go strictly in order, and the newest of a lower one makes room in a full queue", () => {
  const host = new Host(spec({ queue: { ...QUEUE, requestsMax: 2 } }));
  for (const id of ["a", "b"]) host.arrives(id, 0);
  host.arrives("batch-1", 1, { sloClass: "batch" });
  host.arrives("batch-2", 2, { sloClass: "batch" });
  assert.equal(word(host.arrives("batch-3", 3, { sloClass: "batch" })), "rejected queue-full");
  assert.equal(word(host.arrives("urgent", 4, { sloClass: "critical" })), "queued saturated");
  assert.deepEqual(host.turns(5), ["batch-2 queue-evicted"]);
  host.ends("a", 6);
  host.ends("b", 6);
  assert.deepEqual(host.turns(7), ["urgent", "batch-1"]);
});

test("in a full queue the longest line makes room for a tenant with less in it", () => {
  const host = new Host(spec({ queue: QUEUE }));
  for (const id of ["a", "b"]) host.arrives(id, 0);
  for (let i = 0; i < 4; i++) host.arrives(`flood-${i}`, 1, { tenant: "flood" });
  assert.equal(word(host.arrives("flood-4", 2, { tenant: "flood" })), "rejected queue-full");
  assert.equal(word(host.arrives("other", 3, { tenant: "other" })), "queued saturated");
  assert.deepEqual(host.turns(4), ["flood-3 queue-evicted"]);
});

test("within a class tenants are served by their shares, whatever they ask for", () => {
  const shares = { large: 3 };
  const host = new Host(spec({ queue: { ...QUEUE, requestsMax: 100_000, ttlMicros: 1e12, shares } }), 1);
  let at = 1;
  let next = 0;
  const served = new Map<string, number>();
  const running: string[] = [];
  const tenantOf = new Map<string, string>();
  const arrive = (tenant: string): void => {
    const id = `${tenant}-${next++}`;
    tenantOf.set(id, tenant);
    // The flood asks ten times as often as the others.
    if (
      host.arrives(id, at++, { tenant, promptTokens: tenant === "flood" ? 50 : 100, blocks: EMPTY_CHAIN }).kind ===
      "routed"
    )
      running.push(id);
  };
  for (let round = 0; round < 400; round++) {
    for (let i = 0; i < 10; i++) arrive("flood");
    for (const tenant of ["small", "large"]) for (let i = 0; i < 3; i++) arrive(tenant);
    const done = running.shift()!;
    host.ends(done, at++, 20);
    const tenant = tenantOf.get(done)!;
    if (round > 20) served.set(tenant, (served.get(tenant) ?? 0) + (tenant === "flood" ? 50 : 100) + 2 * 20);
    running.push(...host.turns(at++));
  }
  const share = (tenant: string) => served.get(tenant)! / served.get("small")!;
  assert.ok(Math.abs(share("large") - 3) < 0.15, `three shares get ${share("large")}`);
  assert.ok(Math.abs(share("flood") - 1) < 0.15, `one share that floods gets ${share("flood")}`);
});

test("a tenant that comes back after a pause has saved nothing up", () => {
  const host = new Host(spec({ queue: { ...QUEUE, requestsMax: 100, ttlMicros: 1e12 } }));
  let at = 1;
  const running = ["a", "b"].map((id) => (host.arrives(id, 0, { tenant: "busy" }), id));
  for (let i = 0; i < 40; i++) host.arrives(`busy-${i}`, at++, { tenant: "busy", promptTokens: 100 });
  const step = (): string[] => {
    host.ends(running.shift()!, at++);
    const taken = host.turns(at++);
    running.push(...taken);
    return taken;
  };
  for (let i = 0; i < 10; i++) step();
  for (let i = 0; i < 10; i++) host.arrives(`late-${i}`, at++, { tenant: "late", promptTokens: 100 });
  const order = Array.from({ length: 8 }, step)
    .flat()
    .map((id) => id.split("-")[0]);
  assert.equal(order.filter((tenant) => tenant === "late").length, 4, order.join(" "));
});

test("classes below 0 are shed where the pool is saturated, others never", () => {
  const host = new Host(spec({ shedAt: 1 }));
  assert.equal(word(host.arrives("a", 0, { sloClass: "batch" })), "routed");
  assert.equal(word(host.arrives("b", 1)), "routed");
  assert.equal(word(host.arrives("c", 2, { sloClass: "batch" })), "rejected shed");
  assert.equal(word(host.arrives("d", 3)), "routed");
});

test("an empty pool lets wait within a budget of its own, until an endpoint comes or the time is over", () => {
  const emptyPool = { requestsMax: 2, ttlMicros: 5_000, models: ["cold"] };
  const host = new Host(spec({ queue: { ...QUEUE, emptyPool } }), 0);
  assert.deepEqual(
    ["a", "b", "c"].map((id) => word(host.arrives(id, 1))),
    ["queued no-endpoint", "queued no-endpoint", "rejected no-endpoint"],
  );
  assert.deepEqual(host.turns(2_000), []);
  host.join("late", 3_000);
  assert.deepEqual(host.turns(3_001), ["a", "b"]);
  assert.equal(word(host.arrives("d", 3_002, { model: "cold" })), "queued no-endpoint", "others have endpoints");
  assert.equal(word(host.arrives("e", 3_002, { model: "nobody" })), "rejected unknown-model");
  assert.deepEqual(host.turns(8_002), ["d queue-timeout"]);
});

test("the cap per model and role is held for the life of a request and released once", () => {
  const modelCap = { requestsMax: 1, byModel: { "m/decode": 2 }, roleLabel: "role" };
  const host = new Host(spec({ modelCap }), 0);
  host.join("p", 0, { role: "prefill" });
  host.join("d", 0, { role: "decode" });
  assert.deepEqual(
    ["1", "2", "3", "4"].map((id) => word(host.arrives(id, 1))),
    ["routed", "routed", "routed", "rejected model-cap"],
  );
  host.ends("4", 2);
  host.accept({ kind: "attempt-failed", at: 2, requestId: "1", fault: "connect" });
  host.accept({ kind: "request-retried", at: 2, requestId: "1" });
  assert.equal(word(host.arrives("5", 3)), "rejected model-cap", "a retry gives nothing back");
  host.ends("5", 3);
  for (const id of ["1", "2", "3"]) host.ends(id, 4);
  assert.deepEqual(
    ["6", "7", "8", "9"].map((id) => word(host.arrives(id, 5))),
    ["routed", "routed", "routed", "rejected model-cap"],
  );
});

test("all limits must admit, and one that refuses leaves nothing taken at the others", () => {
  const limits: Record<string, LimitSpec> = {
    rate: { type: "rate-limit", requestsMax: 3, windowMicros: 1_000, per: "tenant", onLimit: "reject" },
    mine: { type: "tenant-quota", per: "tenant", requestsMax: 1, byTenant: {}, onLimit: "reject", retryMicros: 500 },
  };
  const host = new Host(spec({ limits }), 4);
  assert.equal(word(host.arrives("a", 0)), "routed");
  for (let i = 0; i < 5; i++) {
    const refused = host.arrives(`r${i}`, 1);
    assert.ok(refused.kind === "rejected" && refused.limit === "mine" && refused.retryMicros === 500);
    host.ends(`r${i}`, 1);
  }
  host.ends("a", 2);
  assert.equal(word(host.arrives("b", 3)), "routed");
  host.ends("b", 4);
  assert.equal(word(host.arrives("c", 5)), "routed");
  host.ends("c", 6);
  const refused = host.arrives("d", 7);
  assert.ok(refused.kind === "rejected" && refused.limit === "rate" && refused.retryMicros === 993);
});

test("a quota of tokens takes the ceiling, gives back what was not needed, and slides", () => {
  const limits: Record<string, LimitSpec> = {
    day: {
      type: "usage-quota",
      per: "user",
      windowMicros: 1_000,
      outputTokensMax: 100,
      byTenant: {},
      outputTokensAssumed: 10,
      onLimit: "reject",
    },
  };
  const host = new Host(spec({ limits }), 8);
  const asks = (id: string, at: number, user: string, outputTokensMax?: number) =>
    word(host.arrives(id, at, { user, outputTokensMax }));
  assert.equal(asks("a", 0, "ann", 80), "routed");
  assert.equal(asks("b", 1, "ann", 30), "rejected usage-quota");
  assert.equal(asks("c", 1, "bob", 30), "routed", "another user has another quota");
  host.ends("a", 2, 5);
  assert.equal(asks("d", 3, "ann", 90), "routed", "75 of 80 were given back");
  assert.equal(asks("e", 3, "ann", 101), "rejected usage-quota", "it never fits");
  const refused = host.arrives("f", 1_000, { user: "ann", outputTokensMax: 60 });
  assert.ok(refused.kind === "rejected" && refused.retryMicros !== undefined);
  const at = 1_000 + refused.retryMicros;
  assert.equal(asks("g", at - 10, "ann", 60), "rejected usage-quota");
  assert.equal(asks("h", at, "ann", 60), "routed", "Retry-After is when it fits");
});

test("a delayed request goes on when its limit lets it, without holding up other tenants", () => {
  const limits: Record<string, LimitSpec> = {
    rate: { type: "rate-limit", requestsMax: 1, windowMicros: 500, per: "tenant", onLimit: "delay" },
  };
  const host = new Host(spec({ limits, queue: QUEUE }), 4);
  assert.equal(word(host.arrives("a1", 0, { tenant: "a" })), "routed");
  assert.equal(word(host.arrives("a2", 1, { tenant: "a" })), "queued rate-limit");
  assert.equal(word(host.arrives("b1", 2, { tenant: "b" })), "routed");
  assert.deepEqual(host.turns(3), []);
  assert.equal(host.router.admission.nextAt, 500);
  assert.deepEqual(host.turns(500), ["a2"]);
});

test("priority classes become vLLM's priority in the decision", () => {
  const host = new Host(spec({ priority: { type: "slo-based", scores: { critical: 9 }, defaultScore: 2 } }));
  const [first, second] = [host.arrives("a", 0, { sloClass: "critical", priority: -99 }), host.arrives("b", 0)];
  assert.ok(first.kind === "routed" && first.priority === -9);
  assert.ok(second.kind === "routed" && second.priority === -2);
});

test("another policy counts on: requests in flight, buckets, and what waits", () => {
  const profiles = { default: LEAST_BUSY };
  const change = (host: Host, at: number, admission: AdmissionSpec | undefined): void => {
    const policy = { version: 2, source: "admin", profiles, defaultProfile: "default" };
    host.accept({ kind: "policy-changed", at, ...policy, ...(admission && { admission }) });
  };
  const capped = (requestsMax: number): AdmissionSpec =>
    spec({ limits: { cap: { type: "hard-cap", requestsMax, onLimit: "reject", retryMicros: 1 } } });
  const host = new Host(undefined, 4);
  for (const id of ["a", "b", "c"]) host.arrives(id, 0);
  change(host, 1, capped(4));
  assert.deepEqual(
    ["d", "e"].map((id) => word(host.arrives(id, 2))),
    ["routed", "rejected hard-cap"],
  );
  host.ends("e", 2);
  change(host, 3, capped(5));
  assert.deepEqual(
    ["f", "g"].map((id) => word(host.arrives(id, 4))),
    ["routed", "rejected hard-cap"],
  );
  host.ends("g", 4);
  for (const id of ["a", "b", "c", "d", "f"]) host.ends(id, 5);
  change(host, 6, spec({ queue: QUEUE }));
  for (let i = 0; i < 9; i++) host.arrives(`q${i}`, 7);
  assert.equal(host.router.admission.waiting, 1);
  change(host, 8, undefined);
  assert.deepEqual(host.turns(9), ["q8"], "without a queue nobody waits");
  assert.deepEqual(host.replayed(), host.decisions);
});

test("a cap per model that comes later counts what is in flight, and one that changes counts it once", () => {
  const change = (host: Host, at: number, requestsMax: number, roleLabel = "role"): void => {
    const modelCap = { requestsMax, byModel: {}, roleLabel };
    const policy = { version: 2, source: "admin", profiles: { default: LEAST_BUSY }, defaultProfile: "default" };
    host.accept({ kind: "policy-changed", at, ...policy, admission: spec({ modelCap }) });
  };
  const uses = (host: Host) => host.router.admission.modelCap!.uses().map(({ subject, used }) => [subject, used]);
  const host = new Host(undefined, 0);
  host.join("d", 0, { role: "decode", other: "x" });
  for (const id of ["a", "b"]) host.arrives(id, 0);
  change(host, 1, 3);
  assert.deepEqual(uses(host), [["m/decode", 2]]);
  change(host, 2, 3);
  assert.deepEqual(uses(host), [["m/decode", 2]], "it held them already");
  assert.deepEqual(
    ["c", "d"].map((id) => word(host.arrives(id, 3))),
    ["routed", "rejected model-cap"],
  );
  change(host, 4, 3, "other");
  assert.deepEqual(uses(host), [["m/x", 3]], "by another label it begins anew");
  for (const id of ["a", "b", "c"]) host.ends(id, 5);
  assert.deepEqual(uses(host), []);
  assert.deepEqual(host.replayed(), host.decisions);
});

const steps = fc.array(
  fc.record({
    gap: fc.integer({ min: 0, max: 300 }),
    what: fc.constantFrom("arrive", "arrive", "arrive", "end", "end", "leave", "join", "fail", "change"),
    tenant: fc.constantFrom("a", "b", "c"),
    sloClass: fc.constantFrom("", "critical", "batch"),
    promptTokens: fc.integer({ min: 1, max: 60 }),
    which: fc.nat(),
    /** Hosts may ask whose turn it is as often as they like. */
    looks: fc.integer({ min: 0, max: 3 }),
  }),
  { maxLength: 120 },
);

const drawnSpec = fc.record({
  requestsMax: fc.integer({ min: 1, max: 6 }),
  perTenant: fc.integer({ min: 1, max: 4 }),
  onLimit: fc.constantFrom("reject" as const, "delay" as const),
  shed: fc.boolean(),
});

function specOf({ requestsMax, perTenant, onLimit, shed }: typeof drawnSpec extends fc.Arbitrary<infer T> ? T : never) {
  return spec({
    limits: {
      bucket: {
        type: "token-bucket",
        bucketTokens: 100,
        refillPerSecond: 60_000,
        cost: "prompt-tokens",
        per: "tenant",
        onEmpty: onLimit,
      },
      mine: { type: "tenant-quota", per: "tenant", requestsMax: perTenant, byTenant: {}, onLimit, retryMicros: 300 },
    },
    ...(shed && { shedAt: 1 }),
    queue: { ...QUEUE, requestsMax, promptTokensMax: 150, emptyPool: { requestsMax: 2, ttlMicros: 700, models: [] } },
  });
}

test("law: every request is decided once, bounds hold, nothing is left behind, and a replay decides the same", () => {
  fc.assert(
    fc.property(steps, drawnSpec, drawnSpec, (given, drawn, other) => {
      const host = new Host(specOf(drawn), 2);
      const open = new Set<string>();
      const waiting = new Set<string>();
      const inFlight = new Map<string, string>();
      let most = drawn.requestsMax;
      let at = 1;
      let joined = 2;
      const settle = (decision: Decision, id: string): void => {
        waiting.delete(id);
        if (decision.kind === "queued") waiting.add(id);
        else if (decision.kind === "routed") inFlight.set(id, decision.endpoint);
        else {
          open.delete(id);
          host.ends(id, at, undefined);
        }
      };
      const turns = (): void => {
        for (;;) {
          const requestId = host.router.admission.due(at);
          if (requestId === undefined) return;
          assert.ok(waiting.has(requestId), "only who waits has a turn");
          const decision = host.accept({ kind: "request-released", at, requestId })!;
          settle(decision, requestId);
          if (decision.kind === "queued") return;
        }
      };
      given.forEach(({ gap, what, which, looks, ...asked }, i) => {
        at += gap;
        const running = [...inFlight.keys()];
        const one = running[which % Math.max(1, running.length)];
        if (what === "arrive") {
          const id = `r${i}`;
          open.add(id);
          settle(host.arrives(id, at, asked), id);
        } else if (what === "end" && one !== undefined) {
          inFlight.delete(one);
          open.delete(one);
          host.ends(one, at, which % 50);
        } else if (what === "leave") {
          const leaver = [...open][which % Math.max(1, open.size)];
          if (leaver !== undefined) {
            for (const set of [open, waiting, inFlight]) set.delete(leaver);
            host.accept({
              kind: "request-finished",
              at,
              requestId: leaver,
              outcome: "aborted",
              promptTokens: undefined,
              cachedTokens: undefined,
              outputTokens: undefined,
            });
          }
        } else if (what === "join") {
          if (which % 2 === 0) host.join(`e${joined++}`, at);
          else host.accept({ kind: "endpoint-left", at, endpoint: `e${which % joined}` });
        } else if (what === "fail" && one !== undefined) {
          host.accept({ kind: "attempt-failed", at, requestId: one, fault: "connect" });
          const retried = host.accept({ kind: "request-retried", at, requestId: one })!;
          if (retried.kind === "rejected") {
            inFlight.delete(one);
            settle(retried, one);
          }
        } else if (what === "change") {
          most = Math.max(most, other.requestsMax);
          host.accept({
            kind: "policy-changed",
            at,
            source: "admin",
            version: 2,
            profiles: { default: LEAST_BUSY },
            defaultProfile: "default",
            admission: specOf(other),
          });
        }
        for (let look = 0; look < looks; look++) host.router.admission.due(at);
        turns();
        assert.ok(waiting.size <= most + 2, `${waiting.size} wait`);
        assert.equal(host.router.admission.waiting, waiting.size);
      });
      for (let rounds = 0; open.size > 0; rounds++) {
        assert.ok(rounds < 1_000, "what waits comes to an end");
        for (const id of inFlight.keys()) {
          open.delete(id);
          host.ends(id, at, 1);
        }
        inFlight.clear();
        at = Math.max(at + 1, Math.min(at + 1_000, Math.ceil(host.router.admission.nextAt)));
        turns();
      }
      assert.equal(host.router.inFlight, 0);
      assert.equal(host.router.admission.waiting, 0);
      assert.equal(host.router.admission.nextAt, Infinity);
      assert.deepEqual(host.replayed(), host.decisions);
    }),
    { numRuns: 150 },
  );
});
