import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { armSessions } from "#shadow/rollout/arm-sessions.ts";
import { judgedRollout, recordedControl } from "#shadow/rollout/judged-rollout.ts";
import { movedJudge } from "#core/rollout/judge/moved-judge.ts";
import type { JudgeRules } from "#core/rollout/judge/judge-rules.ts";
import { replayedRollouts } from "#shadow/rollout/replayed-rollouts.ts";
import { awaitedRequests } from "#shadow/rollout/awaited-requests.ts";
import { requestPredictions } from "#shadow/rollout/request-predictions.ts";
import { judgeOptions, twoArmPlan } from "#shadow/job/two-arm-plan.ts";
import { readRecordedRun, RunBook } from "#shadow/recorded/recorded-run.ts";
import { Simulation } from "#sim/simulation.ts";
import { NO_LATENCY } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { CASE_ENGINE, CASE_SIGNALS, caseSetting, caseWorkload } from "../question/what-if-case.ts";

const SECOND = 1_000_000;
const PROFILES = { control: loadProfile("gnomon").spec, other: loadProfile("always-busiest").spec };

/** A trace of a split by request, as a gateway would have recorded it. */
function recorded(more: Partial<JudgeRules> = {}): TraceItem[] {
  const { workload, endpoints } = caseSetting(caseWorkload());
  const router = { seed: 9, profiles: PROFILES, defaultProfile: "control", blockTokens: 16, staleAfterMicros: SECOND };
  const items: TraceItem[] = [
    { kind: "run", header: { ...HEADER, endpoints: [], router: { ...router, breaker: undefined } } },
  ];
  const plan = twoArmPlan({ kind: "split", windowMicros: SECOND, by: "request" }, 5);
  const { plan: _plan, ...options } = judgeOptions(plan, 0.05, 100);
  const rules = { ...options, ...more };
  const start = {
    kind: "rollout-step",
    at: 0,
    rollout: plan.name,
    step: "start",
    arm: "",
    reason: "",
    by: "",
  } as const;
  new Simulation({
    router,
    engines: endpoints.map((endpoint) => ({
      endpoint: { ...endpoint, kvCapacityTokens: 1999 * 16, concurrencyMax: 256 },
      config: CASE_ENGINE,
    })),
    arrivals: new WorkloadArrivals([...workload], {
      seed: 9,
      blockTokens: 16,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: 1,
    }),
    fleetEvents: [{ kind: "rollout-planned", at: 0, plan, rules, profiles: PROFILES }, start],
    rolloutLookMicros: SECOND,
    signals: CASE_SIGNALS,
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: true,
    observe: (input, decision) =>
      items.push({
        kind: "record",
        input,
        decision: decision && {
          ...decision,
          breakdown: { ...decision.breakdown, candidates: [], endpointCount: 3, digest: 0 },
        },
      }),
  }).run();
  return items;
}

async function* iterated(items: readonly TraceItem[]): AsyncGenerator<TraceItem> {
  yield* items;
}

test("a recorded rollout is judged as it was, and narrower with what the simulator predicts of its requests", async () => {
  const items = recorded();
  const control = await recordedControl(iterated(items), undefined);
  assert.ok(typeof control !== "string");
  assert.deepEqual(control.control, PROFILES.control);
  const { workload, requestIds, endpoints } = await readRecordedRun(iterated(items));
  const setting = { ...caseSetting(workload), endpoints };
  const judged = await judgedRollout(control, setting, requestIds!, iterated(items));
  const counts = judged.arms.map(({ tally }) => tally.counts.requests);
  // The first one comes at the very start, before it.
  assert.equal(counts[0]! + counts[1]!, workload.length - 1);
  assert.ok(Math.min(...counts) > workload.length / 3, counts.join(" "));
  const e2e = judged.differences.find(({ measured }) => measured.metric === "e2e" && measured.figure === "mean")!;
  assert.equal(e2e.measured.varianceLeft, 1);
  assert.ok(e2e.adjusted.varianceLeft < 0.8, `${e2e.adjusted.varianceLeft}`);
  assert.ok(e2e.adjusted.high - e2e.adjusted.low < e2e.measured.high - e2e.measured.low);
  // Both are estimates of the same.
  const apart = Math.abs(e2e.adjusted.mean - e2e.measured.mean);
  assert.ok(apart < (e2e.measured.high - e2e.measured.low) / 2, `${apart}`);
});

test("where the trace has no request a rollout is judged by what was measured before the restart", async () => {
  const items = recorded();
  const before = await replayedRollouts(iterated(items));
  const watch = before.rollouts.watch("plan")!;
  const { rules, profiles } = before.rollouts.spec("plan")!;
  const judge = movedJudge(watch.judge.saved(), -5 * SECOND);
  const { state } = watch;
  const input = { kind: "rollout-restored", at: 0, state, rules, profiles, judge } as const;
  const restarted: TraceItem[] = [items[0]!, { kind: "record", input, decision: undefined }];
  const control = await recordedControl(iterated(restarted), undefined);
  assert.ok(typeof control !== "string");
  const { workload, requestIds = [], endpoints } = await readRecordedRun(iterated(restarted));
  assert.equal(workload.length, 0);
  const setting = { ...caseSetting(caseWorkload()), workload, endpoints };
  const judged = await judgedRollout(control, setting, requestIds, iterated(restarted));
  const { measured, adjusted } = judged.differences.find(
    ({ measured: one }) => one.metric === "e2e" && one.figure === "mean",
  )!;
  assert.deepEqual(measured, watch.judge.difference(1, "e2e", "mean"));
  assert.deepEqual(adjusted, measured);
  assert.ok(Number.isFinite(measured.mean));
});

test("a start that came to nothing takes no recorded rollout away, and of one that is known from it alone it is all there is", async () => {
  const items = recorded();
  const { rollouts } = await replayedRollouts(iterated(items));
  const { state, judge } = rollouts.watch("plan")!;
  const { rules, profiles } = rollouts.spec("plan")!;
  const input = { kind: "rollout-restored", at: 0, state, rules, profiles, judge: judge.saved() } as const;
  const restarted: TraceItem[] = [items[0]!, { kind: "record", input, decision: undefined }];
  for (const after of [[items[0]!], restarted]) {
    const found = await replayedRollouts(iterated([...items, ...after]));
    assert.deepEqual(found.rollouts.watch("plan")!.judge.totals, judge.totals);
    assert.deepEqual(
      await armSessions(iterated([...items, ...after]), "plan"),
      await armSessions(iterated(items), "plan"),
    );
  }
  const without = items.filter((item) => item.kind !== "record" || !item.input.kind.startsWith("rollout"));
  const alone = await recordedControl(iterated([...without, ...restarted]), undefined);
  assert.equal(typeof alone === "string" ? alone : alone.rollout, "plan");
});

test("the shadow predicts requests that wait for it, each once, and the judge's interval is narrower; the inputs replay alike", async () => {
  const items = recorded({ awaitsPredictions: true });
  const { header, rollouts } = await replayedRollouts(iterated(items), undefined, false);
  const book = new RunBook();
  let at = 0;
  for (const item of items) {
    if (item.kind !== "record") continue;
    book.take(item.input, item.decision?.kind === "routed" ? item.decision.endpoint : undefined);
    ({ at } = item.input);
  }
  let asked = 0;
  const known = () => {
    asked++;
    const run = book.close(header);
    return { run, setting: { ...caseSetting(run.workload), endpoints: run.endpoints } };
  };
  const { judge } = rollouts.watch("plan")!;
  const waiting = judge.awaited.size;
  assert.ok(waiting > 50, `${waiting}`);
  const [predictions] = requestPredictions(awaitedRequests(rollouts), at, known);
  assert.equal(predictions?.rollout, "plan");
  const { requests } = predictions;
  // Those that ended of late share engines with requests that are not known yet.
  assert.ok(requests.length > 0 && requests.length < waiting, `${requests.length} of ${waiting}`);
  // Of gateways that judge together each predicts its own: one that this run does not hold is another's.
  const [awaited] = awaitedRequests(rollouts);
  const strange = { ...awaited!, requests: [["another's", 0] as const] };
  assert.deepEqual(requestPredictions([{ ...strange, isShared: true }], at, known), []);
  const [unknown] = requestPredictions([strange], at, known);
  assert.deepEqual(unknown?.requests, [["another's", null, null, null]]);
  const input = { kind: "rollout-predicted", at, ...predictions } as const;
  rollouts.predicted(input);
  assert.deepEqual([judge.awaited.predicted, judge.awaited.size], [requests.length, waiting - requests.length]);
  assert.equal(requestPredictions(awaitedRequests(rollouts), at, known).length, 0);
  rollouts.predicted({
    ...input,
    requests: requestPredictions(awaitedRequests(rollouts), Infinity, known)[0]!.requests,
  });
  assert.equal(judge.awaited.size, 0);
  // What came before it has ended, or had its time.
  judge.advance(at + 3600 * SECOND);
  const { varianceLeft } = judge.difference(1, "e2e", "mean");
  assert.ok(varianceLeft < 0.8, `${varianceLeft}`);
  assert.deepEqual(requestPredictions(awaitedRequests(rollouts), at, known), []);
  assert.equal(asked, 5, "nothing is simulated where nothing waits");
  const again = await replayedRollouts(iterated([...items, { kind: "record", input, decision: undefined }]));
  assert.equal(again.rollouts.watch("plan")!.judge.awaited.predicted, requests.length);
});

test("for a trace without the rollout that is asked for, those that it has are listed", async () => {
  const items = recorded();
  assert.equal(await recordedControl(iterated(items), "none such"), "expected plan");
  const without = items.filter((item) => item.kind !== "record" || !item.input.kind.startsWith("rollout-"));
  assert.equal(await recordedControl(iterated(without), undefined), "the trace has no rollout");
});
