import "../property-seed.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { finished } from "#core/base/finished.ts";
import { percentile } from "#core/base/quantile.ts";
import { loadProfile } from "#config/profile-file.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { recordedLedger } from "#shadow/why/recorded-ledger.ts";
import { slowAnswers } from "#shadow/why/slow-answers.ts";
import { namedCauses } from "#shadow/why/named-causes.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { explained } from "../../bench/why/explained.ts";
import { ENGINE, INJECTED, injectedTrace, partOf, SIGNALS } from "../../bench/why/injected-cause.ts";

/** Where lost tokens show what was injected, and how. */
const TOKENS_SHOW = { index: "index", cache: "evicted", policy: "policy" } as const;

for (const cause of INJECTED) {
  test(`what was injected is named first: ${cause}`, async () => {
    // A cache that is too small shows once it is full.
    const { tokens, slow } = await explained(
      injectedTrace({ cause, seed: 1, conversations: cause === "cache" ? 150 : 80 }),
      "llm-d",
    );
    assert.equal(namedCauses(slow)[0]?.part, partOf(cause));
    const sum = slow.parts.reduce((all, { micros }) => all + micros, 0);
    assert.ok(Math.abs(sum - slow.micros) < 1e-6 * slow.micros);
    assert.equal(tokens.hit + tokens.losses.reduce((all, one) => all + one.tokens, 0), tokens.possible);
    if (cause in TOKENS_SHOW) assert.equal(tokens.losses[0]!.loss, TOKENS_SHOW[cause as keyof typeof TOKENS_SHOW]);
  });
}

test("where nothing was injected no cause has a tenth of the mean", async () => {
  const { slow } = await explained(injectedTrace({ cause: "none", seed: 1, conversations: 80 }), "llm-d");
  assert.ok(
    slow.parts.every(({ part, micros }) => ["load", "own"].includes(part) || Math.abs(micros) < 0.1 * slow.micros),
  );
});

/** Recorded traffic with anything wrong in it, and any question to it. */
const ASKED = fc.record({
  cause: fc.constantFrom(...INJECTED, "none" as const, "load" as const),
  seed: fc.nat({ max: 1_000 }),
  conversations: fc.integer({ min: 1, max: 30 }),
  workload: fc.constantFrom("chat" as const, "agents" as const),
  inForce: fc.constantFrom("llm-d", "round-robin", "gnomon"),
  against: fc.constantFrom("llm-d", "gnomon", "random"),
  isIndexWrong: fc.boolean(),
  time: fc.constantFrom("ttft" as const, "e2e" as const),
  of: fc.constantFrom("mean" as const, 50, 99),
  worldsMax: fc.constantFrom(4, 64),
  kvBlocks: fc.constantFrom(1_200, 8_000),
});
const RUNS = 15;

test("whatever was recorded and is asked, all parts add up to what was observed, and all tokens to the prompts", async () => {
  await fc.assert(
    fc.asyncProperty(ASKED, async ({ against, isIndexWrong, time, of, worldsMax, kvBlocks, ...asked }) => {
      const items = injectedTrace(asked);
      const run = await readRecordedRun(streamOf(items));
      const slow = finished(
        slowAnswers({
          setting: recordedSetting(run, { engine: { ...ENGINE, kvBlocks }, residuals: undefined, signals: SIGNALS }),
          inForce: inForceOf(run.header, run.fleetEvents),
          otherwise: { name: against, spec: loadProfile(against).spec },
          observed: run.observed,
          isIndexWrong,
          figure: { time, of },
          worldsMax,
          replicas: 0,
          seed: asked.seed,
        }),
      );
      const hot = slow.hotTenant?.tenant;
      const seen = run.observed
        .filter(({ ok }, i) => ok && (hot === undefined || run.workload[i]!.tenant !== hot))
        .map(({ ttftMicros, e2eMicros }) => (time === "ttft" ? ttftMicros : e2eMicros))
        .sort((a, b) => a - b);
      if (slow.requests > 0) {
        assert.equal(slow.requests, seen.length);
        const whole =
          of === "mean"
            ? seen.reduce((sum, one) => sum + one, 0) / seen.length
            : percentile(Float64Array.from(seen), of);
        const sum = slow.parts.reduce((all, { micros }) => all + micros, 0);
        assert.ok(Math.abs(sum - whole) <= 1e-6 * whole && slow.micros === sum, `${sum} of ${whole}`);
      }
      const { rows } = await recordedLedger(streamOf(items), () => kvBlocks - 1, Infinity);
      assert.equal(rows.length, run.workload.length);
      for (const { promptTokens, possible, hit, losses } of rows) {
        assert.equal(hit + losses.reduce((all, { tokens }) => all + tokens, 0), possible);
        assert.ok(possible <= promptTokens && losses.every(({ tokens }) => tokens > 0));
      }
    }),
    { numRuns: RUNS },
  );
});

async function* streamOf(items: readonly TraceItem[]): AsyncGenerator<TraceItem> {
  yield* items;
}
