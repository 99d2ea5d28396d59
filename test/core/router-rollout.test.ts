import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { Router } from "#core/router.ts";
import { planOf, plannedOf, stepOf, WINDOW_MICROS } from "./rollout/rollout-case.ts";
import { chain, request } from "./state.ts";

const ENDPOINTS = ["a", "b", "c", "d"];
const PROFILES = { "profile-0": loadProfile("gnomon").spec, "profile-1": loadProfile("round-robin").spec };
const BY_SESSION = { windowMicros: WINDOW_MICROS, by: "session" } as const;

/** A router with four endpoints, two of each pool, and a rollout that runs from 1 on. */
function running(design: Design, remembered?: (prompt: number, conversation: number) => void): Router {
  const router = bare(remembered);
  router.accept({ ...plannedOf(planOf(design)), profiles: PROFILES });
  router.accept(stepOf("start", 1));
  return router;
}

function bare(sessionRemembered?: (prompt: number, conversation: number) => void): Router {
  const router = new Router({
    seed: 1,
    profiles: { usual: loadProfile("llm-d").spec },
    defaultProfile: "usual",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
    ...(sessionRemembered && { sessionRemembered }),
  });
  ENDPOINTS.forEach((id, i) => {
    const endpoint = { id, models: [], labels: { pool: `pool-${i % 2}` }, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  });
  return router;
}

const ask = (router: Router, id: string, at = 10, more: Partial<Parameters<typeof request>[0]> = {}): Decision =>
  router.accept({ kind: "request-arrived", at, request: request({ model: "llama", ...more, id }) });

test("the arm decides by which profile, the decision names rollout, arm and window; nobody else's requests are touched", () => {
  const router = running({ kind: "split", ...BY_SESSION });
  const arms = new Set<string>();
  for (let i = 0; i < 60; i++) {
    const { profile, rollout } = ask(router, `r${i}`, 10 + i, { session: `s${i}` });
    assert.equal(rollout?.name, "try");
    assert.equal(rollout?.window, 0);
    assert.equal(profile, rollout?.arm === "arm-0" ? "profile-0" : "profile-1");
    arms.add(rollout?.arm ?? "");
  }
  assert.deepEqual([...arms].sort(), ["arm-0", "arm-1"]);
  for (const more of [{ model: "qwen" }, { ownProfile: true as const }]) {
    const decision = ask(router, "other", 100, more);
    assert.deepEqual([decision.profile, decision.rollout], ["usual", undefined]);
    router.accept({ ...finished("other"), at: 101 });
  }
  router.accept(stepOf("rollback", 200));
  const decision = ask(router, "after", 201);
  assert.deepEqual([decision.profile, decision.rollout], ["usual", undefined]);
});

const finished = (requestId: string) =>
  ({
    kind: "request-finished",
    at: 0,
    requestId,
    outcome: "ok",
    promptTokens: 16,
    cachedTokens: 0,
    outputTokens: 4,
  }) as const;

test("a retried request stays on its arm, in the window in which it came", () => {
  const router = running({ kind: "switchback", windowMicros: WINDOW_MICROS, washoutMicros: 1 });
  const at = WINDOW_MICROS - 5;
  const first = ask(router, "r", at);
  router.accept({ kind: "attempt-failed", at: at + 1, requestId: "r", fault: "connect" });
  const again = router.accept({ kind: "request-retried", at: at + WINDOW_MICROS, requestId: "r" });
  assert.deepEqual(again.rollout, first.rollout);
  assert.equal(again.profile, first.profile);
});

test("an arm of a pool uses its endpoints alone; where none of them may serve, the request goes elsewhere and is not counted", () => {
  const router = running({ kind: "pools", ...BY_SESSION, label: "pool" });
  const where = (decision: Decision) =>
    decision.kind === "routed" ? ENDPOINTS.indexOf(decision.endpoint) % 2 : assert.fail(decision.reason);
  for (let i = 0; i < 40; i++) {
    const decision = ask(router, `r${i}`, 10 + i, { session: `s${i}` });
    assert.equal(decision.rollout?.arm, `arm-${where(decision)}`);
  }
  const watch = router.rollouts.watch("try")!;
  const counted = watch.inFlight;
  let inPool = 0;
  for (const id of ["a", "c"]) router.accept({ kind: "endpoint-cordoned", at: 100, endpoint: id });
  for (let i = 0; i < 40; i++) {
    const decision = ask(router, `q${i}`, 110 + i, { session: `s${i}` });
    assert.equal(where(decision), 1);
    const outside = decision.rollout?.arm === "arm-0";
    assert.equal(decision.rollout?.outsidePool, outside ? true : undefined);
    if (!outside) inPool++;
  }
  assert.ok(inPool > 0 && inPool < 40);
  assert.equal(watch.inFlight, counted + inPool);
});

test("with the design shadow the control routes all, and what the other arm would have done has no consequence", () => {
  const design = { kind: "shadow", windowMicros: WINDOW_MICROS } as const;
  const alone = bare();
  const router = running(design);
  alone.accept({
    kind: "policy-changed",
    at: 1,
    version: 2,
    source: "",
    profiles: PROFILES,
    defaultProfile: "profile-0",
  });
  for (let i = 0; i < 50; i++) {
    const more = { session: `s${i % 7}`, blocks: chain(i % 7, 10), promptTokens: 160 };
    const [decision, plain] = [ask(router, `r${i}`, 10 + i, more), ask(alone, `r${i}`, 10 + i, more)];
    assert.ok(decision.kind === "routed" && plain.kind === "routed");
    assert.deepEqual([decision.endpoint, decision.profile], [plain.endpoint, "profile-0"]);
    assert.equal(decision.rollout?.alternatives?.length, 1);
  }
  const [, other] = router.rollouts.watch("try")!.agreements;
  assert.equal(other?.decisions, 50);
  assert.ok(other.agreed < 50);
});

test("a policy that lacks an arm's profile does not take it away while the rollout is under way", () => {
  const router = running({ kind: "split", ...BY_SESSION });
  const profiles = { usual: loadProfile("sticky").spec };
  router.accept({ kind: "policy-changed", at: 5, version: 2, source: "file", profiles, defaultProfile: "usual" });
  const names = Array.from({ length: 40 }, (_, i) => ask(router, `r${i}`, 10 + i, { session: `s${i}` }).profile);
  assert.deepEqual([...new Set(names)].sort(), ["profile-0", "profile-1"]);
});

test("a conversation that names no session stays on its arm, across a restart too", () => {
  const keys: number[] = [];
  const remembered = (prompt: number, conversation: number): void => void keys.push(prompt, conversation);
  const router = running({ kind: "split", ...BY_SESSION }, remembered);
  const turns = (made: Router, from: number, to: number, at: number): Map<number, Set<string>> => {
    const arms = new Map<number, Set<string>>();
    for (let turn = from; turn < to; turn++) {
      for (let conversation = 0; conversation < 40; conversation++) {
        const blocks = chain(conversation, 2 * (turn + 1));
        const { rollout } = ask(made, `${turn}.${conversation}`, at + turn, {
          blocks,
          promptTokens: 16 * blocks.length,
        });
        arms.set(conversation, (arms.get(conversation) ?? new Set()).add(rollout!.arm));
      }
    }
    return arms;
  };
  const before = turns(router, 0, 3, 10);
  for (const arms of before.values()) assert.equal(arms.size, 1);
  assert.equal(keys.length, 2 * 3 * 40);

  const again = bare();
  const [state] = router.rollouts.book;
  const moved = { ...state!, startedAt: state!.startedAt - 1000, at: state!.at - 1000 };
  const { rules } = router.rollouts.spec("try")!;
  again.accept({ kind: "rollout-restored", at: 0, state: moved, rules, profiles: PROFILES });
  again.accept({ kind: "sessions-restored", at: 0, keys });
  const after = turns(again, 3, 5, 10);
  assert.deepEqual(after, before);
  const forgetful = bare();
  forgetful.accept({ kind: "rollout-restored", at: 0, state: moved, rules, profiles: PROFILES });
  assert.notDeepEqual(turns(forgetful, 3, 5, 10), before);
});
