import assert from "node:assert/strict";
import { test } from "node:test";
import { BLIS_SEMANTICS } from "../../bench/golden/blis-engine-case.ts";
import { randomFor } from "#core/base/random.ts";
import {
  type EngineConfig,
  engineDefaults,
  type EngineSemantics,
  PREEMPTION_POLICIES,
  VLLM_SEMANTICS,
} from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import { LONE_TRIES_MAX } from "#engine/scheduler.ts";
import { type Act, randomWorkload, type Workload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

/** TEST_SEEDS runs more of them. */
const SEEDS = Number(process.env["TEST_SEEDS"] ?? 2500);

const SEMANTICS: readonly Partial<EngineSemantics>[] = [
  {},
  { victimTies: "last" },
  { preempted: "restarts" },
  { lonePrefill: "limited" },
  { mustFit: "prompt" },
  { mustFit: "prompt", preempted: "restarts" },
  { completion: "last-step-start", finalToken: "stored" },
  { mustFit: "prompt", preempted: "restarts", fullHit: "nothing" },
  BLIS_SEMANTICS,
];

/** What makes requests lose the most: prompts in small pieces, many of equal rank, blocks for not even two of them. */
function hardWorkload(seed: number): Workload {
  const { config, acts } = randomWorkload(seed);
  const random = randomFor(seed, 3);
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)] as T;
  const chunkedPrefill = random.below(2) > 0;
  const apart = pick([1, 100, 10_000]);
  const semantics = { ...VLLM_SEMANTICS, ...pick(SEMANTICS) };
  const { completion, preempted } = VLLM_SEMANTICS;
  return {
    config: {
      ...config,
      kvBlocks: pick([config.kvBlocks, 6 + random.below(12)]),
      chunkedPrefill,
      batchTokensMax: chunkedPrefill ? pick([3, 8, 64]) : 64,
      longPrefillTokens: pick([0, 3, 5]),
      preemption: pick([...PREEMPTION_POLICIES, "lowest-priority"]),
      semantics,
      asyncScheduling:
        config.asyncScheduling && semantics.completion === completion && semantics.preempted === preempted,
    },
    acts: acts.map((act) => {
      const at = act.at - (act.at % apart);
      return act.kind === "submit"
        ? { ...act, at, request: { ...act.request, deadlineAt: undefined } }
        : { ...act, at };
    }),
  };
}

/** A step that was composed before all its requests were taken back. */
const EMPTY = 1;

/**
 * Steps between two endings, at most, of requests that need so many tokens in all. Of those in the batch one is never
 * preempted by another. A step gives a token to it, or to one that was admitted before it, or only preempts; it can be
 * relieved of its rank by each of the others once, and begin anew some times where blocks lack that nobody else holds.
 */
function stepsMax(needed: readonly number[]): number {
  const each = needed.reduce((sum, tokens) => sum + tokens + 1, 0);
  return each * (needed.length + LONE_TRIES_MAX) + EMPTY;
}

function run({ config, acts }: Workload, overrides: Partial<EngineConfig>) {
  const inside = new Map<string, number>();
  let preemptions = 0;
  let quiet = 0;
  const end = (id: string) => {
    inside.delete(id);
    quiet = 0;
  };
  const engine = new Engine(
    { ...config, ...overrides },
    {
      admitted: () => undefined,
      token: () => undefined,
      preempted: () => preemptions++,
      finished: (_at, { id }) => end(id),
      step: () => {
        if (++quiet > stepsMax([...inside.values()])) throw new Error(`${quiet} steps ended nothing`);
      },
    },
  );
  for (const act of acts) {
    engine.advanceTo(act.at - 1);
    if (act.kind === "abort") engine.abort(act.at, act.id);
    if (act.kind !== "submit") continue;
    const { id, promptTokens, outputTokens } = act.request;
    if (engine.submit(act.at, act.request) !== "queued") continue;
    inside.set(id, promptTokens + outputTokens);
    quiet = 0;
  }
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  assert.equal(inside.size, 0, "all have ended");
  return preemptions;
}

test("every engine makes progress: within a bounded number of steps a request ends", () => {
  let preemptions = 0;
  for (const seed of drawnSeeds(SEEDS)) {
    try {
      preemptions += run(hardWorkload(seed), { coalesce: false });
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  assert.ok(preemptions > SEEDS / 4, `the workloads preempt (${preemptions})`);
});

test("two equals that do not fit together and grow in pieces: one of them yields until the other is done", () => {
  const of = (number: number, promptTokens: number, outputTokens: number): Act => ({
    kind: "submit",
    at: 0,
    request: {
      id: String(number),
      promptTokens,
      outputTokens,
      hashes: new Int32Array(0),
      priority: 2,
      deadlineAt: undefined,
      cacheRead: true,
    },
  });
  const config = engineDefaults({
    blockTokens: 4,
    kvBlocks: 10,
    sequencesMax: 2,
    batchTokensMax: 64,
    modelTokensMax: 64,
    longPrefillTokens: 3,
    chunkedPrefill: false,
    reserveFullPrompt: false,
    preemption: "lowest-priority",
    check: true,
  });
  const acts = [of(1, 22, 4), of(2, 22, 4)];
  for (const victimTies of ["first", "last"] as const) {
    const preemptions = run({ config, acts }, { semantics: { ...VLLM_SEMANTICS, victimTies } });
    assert.ok(preemptions > 0, victimTies);
  }
});

test("an answer that does not fit into all blocks beside its prompt is cut there, or refused", () => {
  const config = engineDefaults({ blockTokens: 4, kvBlocks: 6, modelTokensMax: 64, check: true });
  for (const preempted of ["keeps-tokens", "restarts"] as const) {
    const ends: string[] = [];
    let tokens = 0;
    const engine = new Engine(
      { ...config, semantics: { ...VLLM_SEMANTICS, preempted, mustFit: "prompt" } },
      {
        admitted: () => undefined,
        token: (_at, _request, count) => (tokens = count),
        preempted: () => ends.push("preempted"),
        finished: (_at, _request, reason) => ends.push(reason),
      },
    );
    const hashes = new Int32Array(0);
    const request = { id: "a", promptTokens: 15, hashes, priority: 0, deadlineAt: undefined, cacheRead: true };
    assert.equal(engine.submit(0, { ...request, outputTokens: 20 }), "queued");
    for (let at = engine.nextEventAt(), left = 100; at !== undefined && left > 0; at = engine.nextEventAt(), left--)
      engine.advanceTo(at);
    // The last token needs no place: 15 of the prompt and 5 of the answer take five blocks of four.
    const tries = preempted === "restarts" ? LONE_TRIES_MAX : 0;
    assert.deepEqual(ends, [...Array.from({ length: tries }, () => "preempted"), "length"]);
    assert.equal(tokens, 6);
  }
  const engine = new Engine(config, { admitted: noop, token: noop, preempted: noop, finished: noop });
  const request = { id: "a", promptTokens: 15, hashes: new Int32Array(0), priority: 0, deadlineAt: undefined };
  assert.equal(engine.submit(0, { ...request, outputTokens: 20, cacheRead: true }), "never-fits");
});

function noop(): void {}
