import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import type { RolloutStep } from "#core/rollout/rollout-state.ts";
import { Replay } from "#shadow/recorded/replay.ts";
import { Simulation } from "#sim/simulation.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../trace/line-encoder.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { chain } from "../core/state.ts";
import { planOf, plannedOf, RULES, stepOf } from "../core/rollout/rollout-case.ts";
import { HEADER } from "../trace/trace-samples.ts";
import { cluster, engines, listed } from "./cluster.ts";

const SECOND = 1_000_000;
const PROFILES = { "profile-0": loadProfile("gnomon").spec, "profile-1": loadProfile("always-busiest").spec };
const GUARDRAILS = [{ figure: "ttft.p90", relativeMax: 2, samplesMin: 20 }] as const;

const REQUESTS = 2_000;
const ENGINE = {
  check: false,
  kvBlocks: 4001,
  stepTime: { kind: "coefficients", baseMicros: 6000, perPrefillTokenMicros: 17, perDecodeMicros: 6 },
} as const;

/** A prompt of 100 blocks that shares nothing, 62 of them a second. */
function asked(number: number): ReturnType<typeof listed> {
  const arrival = listed(number, number * 16_000, 1600, 8);
  return { ...arrival, route: { ...arrival.route, blocks: chain(number, 100) } };
}

interface Run {
  /** Written and read back. */
  readonly items: () => readonly TraceItem[];
  readonly steps: readonly RolloutStep[];
  readonly arms: ReadonlyMap<string, number>;
}

/** Traffic that three engines bear and one does not, with a rollout to the busiest one. */
function rollout(design: Design, profiles = PROFILES): Run {
  const requests = Array.from({ length: REQUESTS }, (_, i) => asked(i));
  const log: { input: Input; decision: Decision | undefined }[] = [];
  const stood = cluster(profiles["profile-0"], engines(3, ENGINE), {
    check: false,
    arrivals: new ListedArrivals(requests),
    fleetEvents: [
      { ...plannedOf({ ...planOf(design), model: "" }, 0, { ...RULES, guardrails: GUARDRAILS }), profiles },
      stepOf("start", 0),
    ],
    rolloutLookMicros: SECOND / 2,
    observe: (input, decision) => log.push({ input, decision }),
  });
  const simulation = new Simulation(stood);
  simulation.run();
  const router = { ...HEADER.router, ...stood.router, breaker: undefined };
  const items = (): TraceItem[] => {
    const encoder = new LineEncoder({ blockTokens: 16 });
    const decoder = new TraceDecoder(encoder.header({ ...HEADER, router } satisfies TraceHeader));
    const records = log.map(({ input, decision }) => decoder.decode(encoder.record(input, decision)));
    return [{ kind: "run", header: decoder.header }, ...records];
  };
  const steps = log.flatMap(({ input }) => (input.kind === "rollout-step" ? [input] : []));
  const arms = new Map<string, number>();
  for (const { decision } of log) {
    const arm: string = decision?.rollout?.arm ?? "";
    arms.set(arm, (arms.get(arm) ?? 0) + 1);
  }
  return { items, steps, arms };
}

/** The rollout that harms by each design, once. */
const harmful = new Map<Design, Run>();
function harmfulRollout(design: Design): Run {
  const run = harmful.get(design) ?? rollout(design);
  harmful.set(design, run);
  return run;
}

function replayed(items: readonly TraceItem[]) {
  const replay = new Replay();
  for (const item of items) replay.take(item);
  return replay.result();
}

const DESIGNS: readonly Design[] = [
  { kind: "switchback", windowMicros: SECOND, washoutMicros: SECOND / 10 },
  { kind: "split", windowMicros: 8 * SECOND, by: "request" },
  { kind: "canary", windowMicros: 4 * SECOND, by: "session", stepPercents: [25, 50, 100] },
];

for (const design of DESIGNS) {
  test(`${design.kind}: a worse profile is taken back by its guardrail, and the trace replays alike through it`, () => {
    const { items, steps, arms } = harmfulRollout(design);
    // A canary's first step does no harm; half of the requests are more than one engine bears beside what the control
    // sends.
    const made = steps.map(({ step }) => step);
    const [begun, advances, last] = [made[0], made.slice(1, -1), made.at(-1)];
    assert.deepEqual([begun, last], ["start", "rollback"]);
    assert.ok(advances.every((step) => step === "advance") && (design.kind === "canary" || advances.length === 0));
    const { by, reason } = steps.at(-1)!;
    assert.equal(by, "judge");
    assert.ok((arms.get("arm-1") ?? 0) >= 20 && (arms.get("arm-0") ?? 0) >= 20);
    // A canary goes back for whatever is surely worse by more than its margin.
    const limit = /^arm-1: ttft\.p90 is [\d.]+ s, at least [\d.]+ s: above [\d.]+ s, 2 times the control's/;
    assert.match(
      reason,
      design.kind === "canary" ? /^arm-1: ([a-z0-9]+\.[a-z0-9]+ is surely higher|ttft\.p90 is)/ : limit,
    );
    const result = replayed(items());
    assert.deepEqual([result.differences, result.unverifiable], [0, 0], result.first?.what ?? "");
    assert.equal(result.decisions, REQUESTS);
  });
}

test("a profile beside itself is not taken back", () => {
  const same = { "profile-0": PROFILES["profile-0"], "profile-1": PROFILES["profile-0"] };
  for (const design of DESIGNS) {
    const steps = rollout(design, same).steps.map(({ step }) => step);
    const advances = steps.slice(1);
    assert.ok(advances.every((step) => step === "advance") && (design.kind === "canary" || advances.length === 0));
  }
});

test("replay notices a step that the judge did not ask for, and a step that is missing", () => {
  const items = harmfulRollout(DESIGNS[1]!).items();
  const isBack = (item: TraceItem): boolean =>
    item.kind === "record" && item.input.kind === "rollout-step" && item.input.by === "judge";
  const early = [...items.slice(0, 100), ...items.filter(isBack), ...items.slice(100)];
  assert.match(replayed(early).first?.what ?? "", /the judge asked for rollback .* and for none when replayed/);
  assert.match(replayed(items.filter((item) => !isBack(item))).first?.what ?? "", /profile|rollout/);
});
