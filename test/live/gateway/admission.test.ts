import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, describe, test } from "node:test";

import { ADMIT_ALL, type AdmissionSpec } from "#core/admission/admission-spec.ts";
import { REFUSAL_REASONS } from "#core/admission/held.ts";
import { nowMicros } from "#live/base/clock.ts";
import { ERRORS } from "#live/http/errors.ts";

import { ClientKeys, plainKeys } from "#live/http/client-auth.ts";

import { CHAT, type Got, IDENTITY, LOWEST_ID_FIRST, type Rig, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, chatAnswer, headerOf, jsonReply } from "./stub-engine.ts";

const MINUTE_MICROS = 60_000_000;
const QUEUE = {
  requestsMax: 8,
  promptTokensMax: 1_000_000,
  ttlMicros: MINUTE_MICROS,
  waitAt: 1,
  fairness: "least-served",
  inputWeight: 1,
  outputWeight: 2,
  shares: {},
  emptyPool: { requestsMax: 8, ttlMicros: MINUTE_MICROS, models: [] },
} as const;
const ONE_EACH = { ...ADMIT_ALL.saturation, requestsMax: 1 };

/** A gateway that lets in as the spec states, put into force while it runs, and engines that answer when they are to. */
async function admitting(
  t: TestContext,
  more: Partial<AdmissionSpec>,
  engines = 1,
): Promise<{ rig: Rig; answer: () => void; change: (more: Partial<AdmissionSpec>) => void }> {
  const held: (() => unknown)[] = [];
  const reply: Reply = (_request, socket) => void held.push(() => socket.write(jsonReply(200, chatAnswer("hello"))));
  const rig = await startRig(Array.from({ length: engines }, () => reply));
  t.after(() => rig.close());
  let version = 2;
  const change = (spec: Partial<AdmissionSpec>): void => {
    const policy = { profiles: { default: LOWEST_ID_FIRST }, defaultProfile: "default" };
    const admission = { ...ADMIT_ALL, ...spec };
    rig.intake.accept({
      kind: "policy-changed",
      at: nowMicros(),
      version: version++,
      source: "admin",
      ...policy,
      admission,
    });
  };
  change(more);
  return { rig, answer: () => held.shift()!(), change };
}

const sha256 = (key: string): Buffer => createHash("sha256").update(key).digest();
const looked = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await looked();
}

describe("admission", () => {
  test("what a limit refuses is refused at once, in the shape of its API, with when to come back", async (t) => {
    const limits: AdmissionSpec["limits"] = {
      "per-minute": {
        type: "rate-limit",
        requestsMax: 1,
        windowMicros: MINUTE_MICROS,
        per: "tenant",
        onLimit: "reject",
      },
    };
    const { rig, answer } = await admitting(t, { limits });
    const first = ask(rig.url, CHAT, { headers: { "x-tenant-id": "a" } });
    await until(() => rig.engines[0]!.requests.length === 1);
    const refused = await ask(rig.url, CHAT, { headers: { "x-tenant-id": "a" } });
    assert.equal(refused.status, 429);
    assert.equal(refused.headers["x-gnomon-reason"], "rate-limit");
    const seconds = Number(refused.headers["retry-after"]);
    assert.ok(seconds > 55 && seconds <= 60, `retry-after ${seconds}`);
    assert.deepEqual([errorOf(refused).type, errorOf(refused).code], ["RateLimitError", 429]);
    const headers = { "x-tenant-id": "a", "anthropic-version": "2023-06-01" };
    const messages = await ask(rig.url, { ...CHAT, max_tokens: 4 }, { path: "/v1/messages", headers });
    const { type, error } = JSON.parse(messages.body) as { type: string; error: { type: string } };
    assert.deepEqual([messages.status, type, error.type], [429, "error", "rate_limit_error"]);
    answer();
    assert.equal((await first).status, 200);
    assert.deepEqual(rig.gateway.counters.limited, { "per-minute": 2 });
    assert.deepEqual(rig.gateway.counters.refused, { "rate-limit": 2 });
    const other = ask(rig.url, CHAT, { headers: { "x-tenant-id": "b" } });
    await until(() => rig.engines[0]!.requests.length === 2);
    answer();
    assert.equal((await other).status, 200, "another tenant has a limit of its own");
  });

  test("a full cap is 503 at once, and the place is free again on every path, once", async (t) => {
    const modelCap = { requestsMax: 1, byModel: {}, roleLabel: "role" };
    const { rig, answer } = await admitting(t, { modelCap });
    const abort = new AbortController();
    const left = fetch(`${rig.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(CHAT),
      signal: abort.signal,
    }).catch(() => {});
    await until(() => rig.engines[0]!.requests.length === 1);
    const refused = await ask(rig.url, CHAT);
    assert.deepEqual([refused.status, refused.headers["x-gnomon-reason"]], [503, "model-cap"]);
    assert.equal(refused.headers["retry-after"], "1");
    abort.abort();
    await left;
    await until(() => rig.router.inFlight === 0);
    const second = ask(rig.url, CHAT);
    await until(() => rig.engines[0]!.requests.length === 2);
    answer();
    answer();
    assert.equal((await second).status, 200);
  });

  test("requests wait for room and go on in turn; whoever leaves meanwhile is forgotten", async (t) => {
    const { rig, answer } = await admitting(t, { saturation: ONE_EACH, queue: QUEUE });
    const names = ["a", "b", "c", "d"];
    const abort = new AbortController();
    const answers: Promise<Got | void>[] = [];
    for (const [i, name] of names.entries()) {
      const body = { ...CHAT, user: name };
      const headers = { "content-type": "application/json" };
      if (name === "c") {
        const init = { method: "POST", headers, body: JSON.stringify(body), signal: abort.signal };
        answers.push(
          fetch(`${rig.url}/v1/chat/completions`, init).then(
            () => {},
            () => {},
          ),
        );
      } else answers.push(ask(rig.url, body));
      await until(() => rig.router.inFlight === i + 1);
    }
    assert.equal(rig.router.admission.waiting, 3);
    assert.deepEqual(rig.gateway.counters.queued, { saturated: 3 });
    abort.abort();
    await until(() => rig.router.admission.waiting === 2);
    for (let served = 1; served <= 3; served++) {
      await until(() => rig.engines[0]!.requests.length === served);
      assert.equal(rig.router.endpointRows(nowMicros())[0]!.requestsInFlight, 1);
      answer();
    }
    await Promise.all(answers);
    assert.deepEqual(
      rig.engines[0]!.requests.map(({ body }) => (JSON.parse(body.toString()) as { user: string }).user),
      ["a", "b", "d"],
    );
    assert.deepEqual(rig.summaries.map(({ outcome }) => outcome).sort(), ["aborted", "ok", "ok", "ok"]);
    assert.equal(rig.summaries.filter(({ queuedMicros }) => queuedMicros > 0).length, 2);
  });

  test("a wait has an end, by the clock alone", async (t) => {
    const { rig, answer } = await admitting(t, { saturation: ONE_EACH, queue: { ...QUEUE, ttlMicros: 20_000 } });
    const served = ask(rig.url, CHAT);
    await until(() => rig.engines[0]!.requests.length === 1);
    const got = await ask(rig.url, { ...CHAT, stream: true });
    assert.deepEqual([got.status, got.headers["x-gnomon-reason"]], [503, "queue-timeout"]);
    answer();
    assert.equal((await served).status, 200);
  });

  test("an empty pool answers 503 with when to come back, or lets wait for an endpoint", async (t) => {
    const { rig, answer, change } = await admitting(t, {});
    rig.intake.accept({ kind: "endpoint-left", at: nowMicros(), endpoint: "a" });
    const refused = await ask(rig.url, CHAT);
    assert.deepEqual([refused.status, refused.headers["x-gnomon-reason"]], [503, "no-endpoint"]);
    assert.ok(Number(refused.headers["retry-after"]) > 0);
    change({ queue: QUEUE });
    const waits = ask(rig.url, CHAT);
    await until(() => rig.router.admission.waiting === 1);
    const endpoint = { id: "a", models: ["tiny"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    rig.intake.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
    await until(() => rig.engines[0]!.requests.length === 1);
    answer();
    assert.equal((await waits).status, 200);
  });

  test("the policy's priority goes to the engine in place of the client's", async (t) => {
    const priority = { type: "slo-based", scores: {}, defaultScore: 7 } as const;
    const { rig, answer } = await admitting(t, { priority });
    const got = ask(rig.url, CHAT, { headers: { "x-vllm-priority": "-100" } });
    await until(() => rig.engines[0]!.requests.length === 1);
    assert.equal(headerOf(rig.engines[0]!.requests[0]!, "x-vllm-priority"), "-7");
    answer();
    assert.equal((await got).status, 200);
  });

  test("a key's tenant and class stand, whatever the request states", async (t) => {
    const bound = { tenant: "acme", key: "", sloClass: "batch", sloClasses: ["critical"] };
    const keys = new ClientKeys([...plainKeys(["open"]), { sha256: sha256("bound"), client: bound }]);
    const reply: Reply = (_request, socket) => void socket.write(jsonReply(200, chatAnswer("hello")));
    const rig = await startRig([reply], {
      clientAuth: keys.of,
      identity: { ...IDENTITY, sloHeaders: ["x-class"] },
    });
    t.after(() => rig.close());
    const asks = (key: string, sloClass: string, from: object = {}) =>
      ask(
        rig.url,
        { ...CHAT, user: "ann" },
        { headers: { "x-api-key": key, "x-class": sloClass, "x-tenant-id": "other", ...from } },
      );
    for (const sloClass of ["", "critical", "standard"]) assert.equal((await asks("bound", sloClass)).status, 200);
    assert.equal((await asks("open", "standard")).status, 200);
    const refused = await asks("nobody", "");
    assert.deepEqual([refused.status, errorOf(refused).code], [401, 401]);
    const arrived = rig.inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request] : []));
    assert.deepEqual(
      arrived.map(({ tenant, sloClass }) => [tenant, sloClass]),
      [
        ["acme", "batch"],
        ["acme", "critical"],
        ["acme", "batch"],
        [arrived[3]!.tenant, "standard"],
      ],
    );
    assert.match(arrived[3]!.tenant, /^key-[0-9a-f]{16}$/);
    assert.match(arrived[0]!.user!, /^user-[0-9a-f]{16}$/);
  });

  test("every reason to refuse has a status, and one that asks to come back", () => {
    for (const reason of REFUSAL_REASONS) {
      assert.ok([429, 503].includes(ERRORS[reason].status), reason);
      assert.ok(ERRORS[reason].retryAfter! > 0, reason);
    }
  });
});
