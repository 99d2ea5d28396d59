import assert from "node:assert/strict";
import { test } from "node:test";
import { Intake } from "#live/base/intake.ts";
import { warmUp } from "#live/warm-up/warm-up.ts";
import { emptyRouter } from "../discovery/fleet-under-test.ts";

const COMMON = { profiles: ["default"], blockTokens: 16 };

test("all shapes are run, retries included, and everything that was charged is released", async () => {
  const intake = new Intake(emptyRouter());
  const kinds = new Map<string, number>();
  const lengths = new Set<number>();
  const texts: number[] = [];
  intake.listen({
    accepted: (input, decision) => {
      kinds.set(input.kind, (kinds.get(input.kind) ?? 0) + 1);
      if (input.kind === "request-arrived") lengths.add(input.request.blocks.length);
      if (decision !== undefined) assert.equal(decision.kind, "routed");
    },
  });
  const also = (text: string) => void texts.push(text.length);
  const report = await warmUp({ ...COMMON, intake, requestsPerShape: 10, budgetMillis: 60_000, also });
  assert.deepEqual([report.requests, report.complete], [40, true]);
  assert.deepEqual(
    [...lengths].sort((a, b) => a - b),
    [12, 125, 500, 2000],
  );
  assert.deepEqual(texts.slice(0, 2), [800, 8000]);
  assert.deepEqual([kinds.get("request-arrived"), kinds.get("request-retried")], [40, 4]);
  assert.equal(kinds.get("request-finished"), 40);
  assert.deepEqual([intake.router.inFlight, intake.router.openCharges], [0, 0]);
});

test("the budget ends it, and leaves nothing open", async () => {
  const intake = new Intake(emptyRouter());
  const report = await warmUp({ ...COMMON, intake, requestsPerShape: 1_000_000, budgetMillis: 0 });
  assert.deepEqual([report.requests, report.complete], [0, false]);
  const some = await warmUp({ ...COMMON, intake: new Intake(emptyRouter()), requestsPerShape: 1e6, budgetMillis: 200 });
  assert.ok(some.requests > 0 && !some.complete);
  assert.equal(intake.router.openCharges, 0);
});

test("other work gets its turn meanwhile", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  await warmUp({ ...COMMON, intake: new Intake(emptyRouter()), requestsPerShape: 100, budgetMillis: 60_000 });
  clearInterval(timer);
  assert.ok(turns > 1);
});
