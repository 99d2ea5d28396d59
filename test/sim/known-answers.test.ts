import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import type { Decision } from "#core/input/decision.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { Replay } from "#shadow/recorded/replay.ts";
import { PackedWorkload, columnsOf } from "#shadow/recorded/packed-workload.ts";
import { simulate } from "#sim/simulate.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../trace/line-encoder.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { HEADER } from "../trace/trace-samples.ts";
import { cluster, engines, WEIGHTED } from "./cluster.ts";

const STEP = { kind: "coefficients", baseMicros: 4000, perPrefillTokenMicros: 30, perDecodeMicros: 100 } as const;
const TURNS = 6;
const CONVERSATIONS = 5;
const TURN_TOKENS = 130;
const ANSWER_TOKENS = 61;

/** Conversations whose turns repeat all before them, answers included. */
const WORKLOAD: readonly WorkloadRequest[] = Array.from({ length: CONVERSATIONS * TURNS }, (_, index) => {
  const session = Math.floor(index / TURNS);
  const turn = index % TURNS;
  const promptTokens = (turn + 1) * TURN_TOKENS + turn * ANSWER_TOKENS;
  const ids = Float64Array.from({ length: Math.floor(promptTokens / 16) }, (_, block) => 1_000 * session + block);
  return {
    ...LENGTHS_ONLY,
    index,
    arrivalMicros: 40_000 * session,
    session: `s${session}`,
    turn,
    thinkMicros: turn === 0 ? undefined : 50_000,
    promptTokens,
    outputTokens: ANSWER_TOKENS,
    blockIds: ids,
  };
});

function run(workload: Iterable<WorkloadRequest>, answers: "recorded" | "known") {
  const arrivals = new WorkloadArrivals(workload, {
    seed: 1,
    blockTokens: 16,
    timeoutMicros: Infinity,
    timeScale: 1,
    rateScale: 1,
    answers,
  });
  const seen: { input: Input; decision: Decision | undefined }[] = [];
  const specs = engines(2, { stepTime: STEP, kvBlocks: 4_000 });
  const observe = (input: Input, decision: Decision | undefined) => void seen.push({ input, decision });
  const { outcomes } = simulate(cluster(WEIGHTED, specs, { arrivals, observe }));
  const sum = (values: ArrayLike<number>) => Array.from(values).reduce((total, value) => total + value, 0);
  return { expected: sum(outcomes.expectedTokens), found: sum(outcomes.cachedTokens), outcomes, seen };
}

test("a router that knows answers expects what its engines hold; one that does not, a part of it", () => {
  const { outcomes } = run(WORKLOAD, "known");
  assert.deepEqual([...outcomes.expectedTokens], [...outcomes.cachedTokens]);
  const unknown = run(WORKLOAD, "recorded");
  assert.ok(unknown.expected < 0.95 * unknown.found, `${unknown.expected} of ${unknown.found}`);
  assert.ok(unknown.expected > 0.5 * unknown.found);
});

async function* items(seen: ReturnType<typeof run>["seen"]): AsyncGenerator<TraceItem> {
  const encoder = new LineEncoder({ blockTokens: 16 });
  const router = { ...HEADER.router, seed: 7, profiles: { tested: WEIGHTED }, defaultProfile: "tested" };
  const header = { ...HEADER, router: { ...router, staleAfterMicros: 3_000_000, breaker: undefined } };
  const decoder = new TraceDecoder(encoder.header(header));
  yield { kind: "run", header };
  for (const { input, decision } of seen) yield decoder.decode(encoder.record(input, decision));
}

test("answers stand in a trace: its replay decides alike, and its simulation knows them again", async () => {
  const live = run(WORKLOAD, "known");
  const replay = new Replay();
  for await (const item of items(live.seen)) replay.take(item);
  const { decisions, differences } = replay.result();
  assert.deepEqual([decisions, differences], [WORKLOAD.length, 0]);

  const recorded = await readRecordedRun(items(live.seen));
  for (const workload of [recorded.workload, new PackedWorkload(columnsOf(recorded.workload))]) {
    const again = run([...workload], "recorded");
    assert.deepEqual([...again.outcomes.expectedTokens], [...again.outcomes.cachedTokens]);
    assert.equal(again.found, live.found);
  }
  const silent = recorded.workload.map((request) => ({ ...request, answerIds: undefined }));
  assert.ok(run(silent, "recorded").expected < live.expected);
});
