import assert from "node:assert/strict";
import { test } from "node:test";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import type { EngineRequest, FinishReason } from "#engine/request.ts";
import type { EngineSink } from "#engine/sink.ts";
import { randomWorkload, type Workload } from "./random-workload.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

const CONFIG = engineDefaults({
  blockTokens: 4,
  kvBlocks: 33,
  sequencesMax: 4,
  batchTokensMax: 16,
  modelTokensMax: 64,
  stepTime: { kind: "coefficients", baseMicros: 100, perPrefillTokenMicros: 10, perDecodeMicros: 1 },
  coalesce: false,
  check: true,
});

function request(
  id: string,
  promptTokens: number,
  outputTokens: number,
  more: Partial<EngineRequest> = {},
): EngineRequest {
  const hashes = new Int32Array(0);
  return { id, promptTokens, outputTokens, hashes, priority: 0, deadlineAt: undefined, cacheRead: true, ...more };
}

/** Words of a chain that is equal in all requests that use the same number. */
function chain(number: number, blocks: number): Int32Array {
  return Int32Array.from({ length: 2 * blocks }, (_, word) => (word % 2 === 0 ? number : word));
}

/** Runs until the engine is at rest; what it told is in `told`. */
function start(config: Partial<EngineConfig> = {}) {
  const told: string[] = [];
  const sink: EngineSink = {
    admitted: (at, { id }, cached) => told.push(`${at} admitted ${id} ${cached}`),
    token: (at, { id }, tokens) => told.push(`${at} token ${id} ${tokens}`),
    preempted: (at, { id }) => told.push(`${at} preempted ${id}`),
    finished: (at, { id }, reason, cached) => told.push(`${at} finished ${id} ${reason} ${cached}`),
  };
  const engine = new Engine({ ...CONFIG, ...config }, sink);
  return { engine, told, rest: () => runToRest(engine) };
}

function runToRest(engine: Engine): void {
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
}

test("a request alone: prefill step, one token per decode step, nothing left behind", () => {
  const { engine, told, rest } = start();
  assert.equal(engine.submit(1000, request("a", 8, 3)), "queued");
  rest();
  assert.deepEqual(told, [
    "1000 admitted a 0",
    "1180 token a 1",
    "1281 token a 2",
    "1382 token a 3",
    "1382 finished a stop 0",
  ]);
  const gauges = engine.gauges();
  assert.equal(gauges.kvBlocksUsed, 0);
  assert.equal(gauges.promptTokens, 8);
  assert.equal(gauges.generationTokens, 3);
});

test("a prompt beyond the token budget is computed in chunks, decodes of others first", () => {
  const { engine, told, rest } = start();
  engine.submit(0, request("a", 4, 5));
  engine.submit(1, request("b", 32, 1));
  rest();
  // a's prefill 140; then b: 15 + a's decode, 15 + decode, 2 + decode.
  assert.deepEqual(
    told.filter((line) => line.includes("b")),
    ["140 admitted b 0", `${140 + 251 + 251 + 121} token b 1`, `${140 + 251 + 251 + 121} finished b stop 0`],
  );
});

test("a shared prefix is hit while its first user is still computing it, and one token is always computed", () => {
  const { engine, told, rest } = start();
  const hashes = chain(7, 3);
  engine.submit(0, request("a", 12, 2, { hashes }));
  engine.submit(0, request("b", 12, 2, { hashes }));
  engine.submit(0, request("c", 12, 2, { hashes, cacheRead: false }));
  rest();
  assert.deepEqual(told.slice(0, 2), ["0 admitted a 0", "0 admitted b 8"]);
  assert.ok(told.includes("0 admitted c 0") || told.some((line) => line.endsWith("admitted c 0")));
  assert.equal(engine.cachedPrefixBlocks(hashes), 3);
  assert.equal(engine.cachedPrefixBlocks(chain(8, 3)), 0);
});

test("what cannot ever be served is refused at once", () => {
  const { engine } = start();
  assert.equal(engine.submit(0, request("a", 64, 1)), "too-long");
  assert.equal(start({ kvBlocks: 5 }).engine.submit(0, request("a", 16, 2)), "never-fits");
  assert.equal(start({ kvBlocks: 5 }).engine.submit(0, request("a", 16, 1)), "queued");
  assert.equal(engine.submit(5, request("a", 4, 1, { deadlineAt: 5 })), "expired");
  assert.equal(engine.submit(5, request("a", 4, 1)), "queued");
  assert.equal(engine.submit(5, request("a", 4, 1)), "duplicate");
});

test("output beyond the model's length is cut, with the reason length", () => {
  const { engine, told, rest } = start();
  engine.submit(0, request("a", 60, 10));
  rest();
  assert.match(told.at(-1) ?? "", /finished a length 0$/);
  assert.equal(engine.gauges().generationTokens, 4);
});

test("an abort is reported at once, frees the blocks when the step has ended, and leaves them cached", () => {
  const { engine, told } = start();
  const hashes = chain(3, 2);
  engine.submit(0, request("a", 8, 50, { hashes }));
  engine.advanceTo(300);
  assert.equal(engine.abort(300, "a"), true);
  assert.equal(engine.abort(300, "a"), false);
  assert.equal(told.at(-1), "300 finished a abort 0");
  assert.ok(engine.gauges().kvBlocksUsed > 0);
  runToRest(engine);
  assert.equal(engine.gauges().kvBlocksUsed, 0);
  assert.equal(engine.cachedPrefixBlocks(hashes), 2);
  assert.equal(engine.gauges().finished, 1);
});

test("a deadline ends a request, running or waiting, unless it is done at that moment", () => {
  const { engine, told, rest } = start({ sequencesMax: 1 });
  engine.submit(0, request("a", 4, 3, { deadlineAt: 342 }));
  engine.submit(0, request("b", 4, 3, { deadlineAt: 200 }));
  engine.submit(0, request("c", 4, 30, { deadlineAt: 1000 }));
  rest();
  assert.deepEqual(
    told.filter((line) => line.includes("finished")),
    ["200 finished b deadline 0", "342 finished a stop 0", "1000 finished c deadline 0"],
  );
});

test("preemption takes the last admitted, keeps its tokens, and it comes back ahead of the queue", () => {
  const { engine, told, rest } = start({ kvBlocks: 7, prefixCaching: false });
  engine.submit(0, request("a", 8, 8));
  engine.submit(0, request("b", 8, 8));
  engine.submit(1, request("c", 12, 2));
  rest();
  const order = told.filter((line) => !line.includes("token")).map((line) => line.split(" ").slice(1, 3).join(" "));
  assert.deepEqual(order, [
    "admitted a",
    "admitted b",
    "preempted b",
    "finished a",
    "finished b",
    "admitted c",
    "finished c",
  ]);
  const tokens = told.filter((line) => line.includes("token b")).map((line) => Number(line.split(" ")[3]));
  assert.deepEqual(tokens, [1, 2, 3, 4, 5, 6, 7, 8]);
});

test("schedulers: by arrival, by priority, by prompt length; lowest priority yields first", () => {
  const orderOf = (scheduler: EngineConfig["scheduler"]) => {
    const { engine, told, rest } = start({ scheduler, sequencesMax: 1 });
    engine.submit(0, request("first", 4, 1));
    engine.submit(1, request("long", 12, 1, { priority: 1 }));
    engine.submit(2, request("short", 4, 1, { priority: 2 }));
    engine.submit(3, request("urgent", 8, 1, { priority: 0 }));
    rest();
    return told.filter((line) => line.includes("admitted")).map((line) => line.split(" ")[2]);
  };
  assert.deepEqual(orderOf("fcfs"), ["first", "long", "short", "urgent"]);
  assert.deepEqual(orderOf("priority-fcfs"), ["first", "urgent", "long", "short"]);
  assert.deepEqual(orderOf("sjf"), ["first", "short", "urgent", "long"]);

  const { engine, told, rest } = start({ kvBlocks: 7, prefixCaching: false, preemption: "lowest-priority" });
  engine.submit(0, request("a", 8, 8, { priority: 5 }));
  engine.submit(0, request("b", 8, 8, { priority: 1 }));
  rest();
  assert.equal(told.find((line) => line.includes("preempted"))?.split(" ")[2], "a");
});

test("with asynchronous scheduling a newcomer waits one step more, and blocks of the finished one step longer", () => {
  const timeOf = (asyncScheduling: boolean) => {
    const { engine, told, rest } = start({ asyncScheduling });
    engine.submit(0, request("a", 4, 20));
    engine.submit(150, request("b", 4, 1));
    rest();
    return told
      .filter((line) => line.includes("admitted b") || line.includes("token b"))
      .map((line) => parseInt(line, 10));
  };
  // a: prefill to 140, decodes of 101. Without: b joins the step at 241. With: the step at 241 was composed at 140.
  assert.deepEqual(timeOf(false), [241, 241 + 141]);
  assert.deepEqual(timeOf(true), [241, 342 + 141]);
});

test("a sink may submit the next turn from inside its callbacks", () => {
  const finishedAt: number[] = [];
  const engine: Engine = new Engine(CONFIG, {
    token: () => undefined,
    finished: (at, { id }) => {
      finishedAt.push(at);
      if (finishedAt.length < 4) assert.equal(engine.submit(at, request(`${id}+`, 4, 2)), "queued");
    },
  });
  engine.submit(0, request("a", 4, 2));
  runToRest(engine);
  assert.deepEqual(finishedAt, [241, 482, 723, 964]);
});

for (const [name, overrides] of [
  ["as they come", { asyncScheduling: false }],
  ["asynchronous", { asyncScheduling: true }],
  [
    "restarting",
    {
      asyncScheduling: false,
      semantics: { ...CONFIG.semantics, preempted: "restarts", fullHit: "nothing", finalToken: "stored" },
    },
  ],
  [
    "completing early",
    {
      asyncScheduling: false,
      semantics: { ...CONFIG.semantics, completion: "last-step-start", duplicates: "last-writer" },
    },
  ],
] as const) {
  test(`every request ends once, in order of time, with all its tokens; nothing stays behind (${name})`, () => {
    for (const seed of drawnSeeds(400)) assertLawful(randomWorkload(seed), overrides, `seed ${seed}`);
  });
}

interface Life {
  admittedAt: number;
  tokens: number;
  ended: FinishReason | undefined;
  released: number;
}

function assertLawful(workload: Workload, overrides: Partial<EngineConfig>, seed: string): void {
  const lives = new Map<string, Life>();
  let clock = 0;
  const tick = (at: number, id: string): Life => {
    assert.ok(early || at >= clock, `${seed}: callbacks are in order of time`);
    clock = at;
    const life = lives.get(id);
    assert.ok(life !== undefined && life.ended === undefined, `${seed}: ${id} is alive`);
    return life;
  };
  const early = overrides.semantics?.completion === "last-step-start";
  const restarts = overrides.semantics?.preempted === "restarts";
  const engine = new Engine(
    { ...workload.config, coalesce: false, ...overrides },
    {
      admitted: (at, { id }) => (tick(at, id).admittedAt = at),
      token: (at, { id }, tokens) => {
        const life = tick(at, id);
        assert.ok(tokens === life.tokens + 1 || (restarts && tokens === 1), `${seed}: tokens come one by one`);
        assert.ok(life.admittedAt >= 0 && at > life.admittedAt, `${seed}: a token takes a step`);
        life.tokens = tokens;
      },
      released: (_, { id }) => (lives.get(id) as Life).released++,
      finished: (at, { id, outputTokens }, reason) => {
        const life = tick(at, id);
        life.ended = reason;
        if (reason === "stop") assert.equal(life.tokens, outputTokens, seed);
        if (reason === "length") assert.ok(life.tokens < outputTokens, seed);
      },
    },
  );
  for (const act of workload.acts) {
    if (act.kind === "look") engine.advanceTo(act.at);
    if (act.kind === "abort") engine.abort(act.at, act.id);
    if (act.kind !== "submit") continue;
    engine.advanceTo(act.at - 1);
    const life: Life = { admittedAt: -1, tokens: 0, ended: undefined, released: 0 };
    lives.set(act.request.id, life);
    if (engine.submit(act.at, act.request) !== "queued") lives.delete(act.request.id);
  }
  runToRest(engine);
  for (const [id, life] of lives)
    assert.ok(life.ended !== undefined && life.released === 1, `${seed}: ${id} ended once`);
  const gauges = engine.gauges();
  assert.equal(gauges.finished, lives.size, seed);
  assert.deepEqual([gauges.running, gauges.waiting, gauges.kvBlocksUsed], [0, 0, 0], seed);
}
