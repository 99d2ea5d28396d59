import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import { simulate } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const SECOND = MICROS_PER_SECOND;
/** Every step takes 10 ms. */
const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

const happens = (kind: EngineEvent["kind"], at: number, engine: number): EngineEvent => ({
  kind,
  at,
  endpoint: `engine_00${engine}`,
});

function play(
  arrivals: readonly ListedArrival[],
  fleetEvents: readonly EngineEvent[],
  overrides: Partial<SimulationOptions> = {},
) {
  const inputs: Input[] = [];
  const result = simulate(
    cluster(ROUND_ROBIN, engines(2, { stepTime: STEP }), {
      arrivals: new ListedArrivals(arrivals),
      fleetEvents,
      observe: (input) => void inputs.push(input),
      tokenGaps: false,
      ...overrides,
    }),
  );
  return { ...result, inputs };
}

test("an answer whose engine is killed goes on at another one, behind the tokens that its client has", () => {
  const { requests, path, inputs, outcomes } = play([listed(0, 0, 100, 50)], [happens("engine-killed", 205_000, 0)]);
  assert.deepEqual([requests.completed, requests.cut, path.cuts, path.continuations], [1, 0, 0, 1]);
  const on = inputs.find((input) => input.kind === "request-continued");
  assert.ok(on?.kind === "request-continued");
  assert.equal(on.fault, "cut");
  assert.ok(on.outputTokens >= 18 && on.outputTokens <= 20, String(on.outputTokens));
  const end = inputs.find((input) => input.kind === "request-finished");
  assert.ok(end?.kind === "request-finished");
  assert.deepEqual([end.outcome, end.promptTokens, end.outputTokens], ["ok", 100, 50]);
  assert.equal(outcomes.outputTokens[0], 50);
  // One step more than undisturbed: the prefill of prompt and answer so far is one, and makes the next token.
  const undisturbed = play([listed(0, 0, 100, 50)], []);
  const added = outcomes.e2e[0]! - undisturbed.outcomes.e2e[0]!;
  assert.ok(added >= 0 && added <= 20_000, `${added} us`);
  assert.equal(outcomes.ttft[0], undisturbed.outcomes.ttft[0]);
});

test("answers go on from a hung engine after a second of silence, and again from the next one", () => {
  const arrivals = Array.from({ length: 40 }, (_, i) => listed(i, i * 50_000, 50, 400));
  const { requests, path } = play(arrivals, [happens("engine-hung", 1.5 * SECOND, 0)]);
  assert.deepEqual([requests.completed, path.cuts], [40, 0]);
  assert.ok(path.continuations >= 10, `${path.continuations} went on`);
});

test("where the rules or the budget do not let it go on, it is cut", () => {
  const arrivals = Array.from({ length: 8 }, (_, i) => listed(i, i, 50, 100));
  const killed = [happens("engine-killed", 305_000, 0)];
  const never = play(arrivals, killed, { rules: { ...PATH_RULES, settings: { retryRatio: 0, continuationsMax: 0 } } });
  assert.deepEqual([never.path.continuations, never.path.cuts, never.requests.cut], [0, 4, 4]);
  const poor = play(arrivals, killed, { rules: { ...PATH_RULES, settings: { retryRatio: 0, retryBurst: 3 } } });
  assert.deepEqual([poor.path.continuations, poor.path.cuts], [3, 1]);
});
