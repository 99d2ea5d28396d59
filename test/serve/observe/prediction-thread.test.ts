import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { Intake } from "#live/base/intake.ts";
import { PredictionThread } from "#serve/observe/prediction-thread.ts";
import { servePlan } from "../../../src/cli/serve/serve-options.ts";
import { plannedOf, planOf, RULES, stepOf } from "../../core/rollout/rollout-case.ts";
import { request } from "../../core/state.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const SECOND = 1_000_000;
const PLAN = servePlan({ set: ["routing.profile=gnomon"], endpoint: ["http://127.0.0.1:9"] }, {});
const { spec } = PLAN.profile;
const SPLIT = { kind: "split", windowMicros: 10 * SECOND, by: "request" } as const;

/** A router with an engine, before anybody predicts, and a thread that is not needed yet. */
function rig(t: TestContext) {
  const router = new Router({
    seed: 1,
    profiles: { gnomon: spec },
    defaultProfile: "gnomon",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: SECOND,
  });
  const intake = new Intake(router);
  const inputs: Input[] = [];
  intake.listen({ accepted: (input) => void inputs.push(input) });
  const failures: string[] = [];
  const thread = new PredictionThread({
    shadow: { ...PLAN.config.shadow, predictMillis: 100, calibrate: "off", cpuShareMax: 1, requestsMin: 10 },
    scrapeMillis: 1000,
    run: {
      id: "r",
      startWallMicros: 0,
      router: { ...HEADER.router, profiles: { gnomon: spec }, defaultProfile: "gnomon" },
      hash: HEADER.hash,
      endpoints: [],
    },
    intake,
    report: ({ detail }) => void failures.push(detail),
  });
  t.after(() => thread.close());
  const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: 160_000, concurrencyMax: 8 };
  intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  let asked = 0;
  const ask = (count: number, from: number) => {
    for (let i = 0; i < count; i++) {
      const at = from + i * SECOND;
      const id = `r${asked++}`;
      intake.accept({ kind: "request-arrived", at, request: request({ id, session: id }) });
      intake.accept({ kind: "first-token", at: at + 50_000, requestId: id });
      const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
      intake.accept({ kind: "request-finished", at: at + 90_000, requestId: id, outcome: "ok", ...counts });
    }
  };
  return { router, intake, inputs, failures, thread, ask };
}

test("where no shadow runs, a thread is there while a rollout awaits predictions: it predicts what comes, and ends with it", async (t) => {
  const { router, intake, inputs, failures, thread, ask } = rig(t);
  const { rollouts } = router;
  ask(20, SECOND);
  thread.follow(rollouts);
  assert.equal(thread.isRunning, false);
  const planned = plannedOf({ ...planOf(SPLIT), model: "" }, 30 * SECOND, {
    ...RULES,
    guardrails: [],
    awaitsPredictions: true,
  });
  intake.accept({ ...planned, profiles: { "profile-0": spec, "profile-1": spec } });
  thread.follow(rollouts);
  assert.equal(thread.isRunning, true);
  intake.accept(stepOf("start", 31 * SECOND));
  ask(60, 32 * SECOND);
  const { awaited } = rollouts.watch("try")!.judge;
  assert.equal(awaited.size, 60);
  for (let waited = 0; awaited.predicted < 50; waited += 20) {
    assert.ok(waited < 60_000, `${awaited.predicted} predicted, ${awaited.unpredicted} not; ${failures.join("; ")}`);
    thread.follow(rollouts);
    await sleep(20);
  }
  assert.equal(awaited.unpredicted, 0);
  const predicted = inputs.flatMap((input) => (input.kind === "rollout-predicted" ? input.requests : []));
  assert.ok(predicted.every(([, ttft, , e2e]) => ttft !== null && e2e !== null && ttft > 0 && e2e > ttft));
  const lastAt = inputs.at(-1)!.at;
  intake.accept(stepOf("rollback", Math.max(lastAt, 100 * SECOND)));
  thread.follow(rollouts);
  assert.equal(thread.isRunning, false);
  assert.deepEqual(failures, []);
});

test("a rollout that awaits no predictions starts no thread", (t) => {
  const { router, intake, thread } = rig(t);
  const planned = plannedOf({ ...planOf(SPLIT), model: "" }, SECOND);
  intake.accept({ ...planned, profiles: { "profile-0": spec, "profile-1": spec } });
  intake.accept(stepOf("start", 2 * SECOND));
  thread.follow(router.rollouts);
  assert.equal(thread.isRunning, false);
});
