import assert from "node:assert/strict";
import { test } from "node:test";
import { Guard, type SavedGuard } from "#core/rollout/judge/guard.ts";
import type { ComparedArms } from "#core/rollout/judge/relative-limits.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";

const LIMITS = [{ figure: "ttft.p90", absoluteMax: 1_000_000, samplesMin: 1 }] as const;

function outcome(slice: number): RolloutOutcome {
  return {
    arm: 1,
    window: 0,
    counted: true,
    stretch: 0,
    slice,
    cluster: "",
    status: "ok",
    times: { ttft: 1_000, tpot: undefined, e2e: 2_000 },
    endpoint: "a",
    promptTokens: 1,
    cachedTokens: 0,
  };
}

test("a stretch keeps how many requests of each slice ended, through being saved and loaded", () => {
  const setting = { level: 0.05 };
  const guard = new Guard(2, LIMITS, setting);
  for (const slice of [4, 4, 5, 4]) guard.observe(outcome(slice));
  const slices = (of: Guard) => of.saved().arms[1]!.map((stretch) => stretch.slices);
  const ended = [
    [4, 3],
    [5, 1],
  ];
  assert.deepEqual(slices(guard), [ended]);
  const loaded = new Guard(2, LIMITS, setting, JSON.parse(JSON.stringify(guard.saved())) as SavedGuard);
  loaded.observe(outcome(5));
  assert.deepEqual(slices(loaded), [[ended[0], [5, 2]]]);
});

test("of requests that have not ended an arm has those of its own latest stretch", () => {
  const guard = new Guard(3, [{ figure: "overdue-rate", absoluteMax: 0.5, samplesMin: 1 }], { level: 0.05 });
  const open = (arm: number, stretch: number, seconds: number) => {
    return { arm, stretch, slice: 0, ageMicros: seconds * 1_000_000, ttftMicros: undefined };
  };
  const readings = guard.readings(
    [open(1, 0, 60), open(1, 1, 1), open(2, 1, 60), open(2, 1, 60), open(0, 1, 60)],
    {} as ComparedArms,
  );
  assert.deepEqual(
    readings.map(({ value }) => value),
    [0, 1],
  );
});
