import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { policyOf } from "#serve/policy/policy.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { askedRollout } from "#serve/rollout/rollout-spec.ts";
import { type ArmEffect, outcomeRollout } from "../../../bench/rollout/outcome-rollout.ts";
import { drawnTraffic } from "../../../bench/rollout/outcome-traffic.ts";
import { servePlan } from "../../../src/cli/serve/serve-options.ts";

const PLAN = servePlan({ set: ["routing.profile=gnomon"], endpoint: ["http://127.0.0.1:9"] }, {});
const POLICY = policyOf(PLAN, PLAN.config);
const SECOND = 1_000_000;
/** What a person writes. */
const FEW_LINES = { name: "to-lmetric", arms: { control: "gnomon", other: "lmetric" } };

test("a rollout of a few lines alternates short windows, has limits, and awaits predictions where there are any", () => {
  const { plan, rules } = askedRollout(FEW_LINES, POLICY, true);
  assert.deepEqual(plan.design, { kind: "switchback", windowMicros: 20 * SECOND, washoutMicros: 4 * SECOND });
  assert.deepEqual(rules.guardrails, defaultGuardrails());
  assert.equal(rules.awaitsPredictions, true);
  assert.equal(askedRollout({ ...FEW_LINES, adjusted: false }, POLICY, true).rules.awaitsPredictions, undefined);
  assert.equal(askedRollout(FEW_LINES, POLICY, false).rules.awaitsPredictions, undefined);
  const refused = (error: unknown) =>
    error instanceof ConfigError && /^adjusted: .*rollout\.predict/.test(error.lines[0]!);
  assert.throws(() => askedRollout({ ...FEW_LINES, adjusted: true }, POLICY, false), refused);
});

test("windows that a document names are as it has them; others are as long as their design asks for", () => {
  const of = (design: object) => askedRollout({ ...FEW_LINES, design }, POLICY, true).plan.design;
  assert.deepEqual(of({ kind: "switchback", windowMillis: 60_000 }), {
    kind: "switchback",
    windowMicros: 60 * SECOND,
    washoutMicros: 12 * SECOND,
  });
  assert.equal(of({ kind: "canary" }).windowMicros, 600 * SECOND);
  assert.equal(of({ kind: "split" }).windowMicros, 60 * SECOND);
  // The washout is held against the window that there is.
  const washoutMillis = 20_000;
  assert.throws(() => of({ kind: "switchback", washoutMillis }), ConfigError);
});

const HARM: Readonly<Record<string, ArmEffect>> = {
  "errors ten-fold": (outcome, { fault }) => ({ ...outcome, failed: fault < 0.03 }),
  "the longest first tokens twice as long": (outcome) =>
    outcome.ttft > 1.5 ? { ...outcome, ttft: 2 * outcome.ttft } : outcome,
  "3 % of first tokens ten-fold": (outcome, { tail }) =>
    tail < 0.03 ? { ...outcome, ttft: 10 * outcome.ttft } : outcome,
};

for (const [what, effect] of Object.entries(HARM)) {
  for (const design of [undefined, "canary", "split"])
    test(`${what}: a rollout of a few lines is taken back within two hours, design: ${design ?? "as it is left out"}`, () => {
      const { plan, rules } = askedRollout({ ...FEW_LINES, ...(design !== undefined && { design }) }, POLICY, true);
      for (const seed of design === undefined ? [1, 2] : [1]) {
        const seconds = 7200;
        const { steps } = outcomeRollout({
          traffic: drawnTraffic(seed, seconds, 6),
          design: plan.design,
          seed,
          seconds,
          plannedCount: rules.plannedCount,
          guardrails: rules.guardrails,
          speed: 1.5,
          effect,
          predicts: rules.awaitsPredictions === true,
          accepts: () => true,
        });
        assert.equal(steps.at(-1)?.step, "rollback", `seed ${seed}`);
      }
    });
}
