import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { engineDefaults, type EngineConfig, RANK_BALANCES } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import { RankBalancer } from "#engine/rank-balancer.ts";
import { RankedEngine } from "#engine/ranked-engine.ts";
import { addDecode, emptyShape } from "#engine/step-time/batch-shape.ts";
import { createStepTime } from "#engine/step-time/create-step-time.ts";
import type { EngineRequest } from "#engine/request.ts";
import { createEngine } from "#engine/create-engine.ts";
import type { ServingEngine } from "#engine/serving-engine.ts";
import { drawnSeeds } from "../drawn-seeds.ts";

const CONFIG = engineDefaults({ kvBlocks: 400, sequencesMax: 8, batchTokensMax: 512, dataParallel: 3, check: true });

interface Arrival {
  readonly at: number;
  readonly request: EngineRequest;
  /** When its client takes it back. */
  readonly abortAt: number | undefined;
}

function arrivals(seed: number, count: number, spanMicros: number): Arrival[] {
  const random = randomFor(seed, 3);
  const list = Array.from({ length: count }, (_, i) => {
    const at = random.below(spanMicros);
    const family = random.below(4);
    const promptTokens = 1 + random.below(700);
    const blocks = promptTokens >> 4;
    const hashes = Int32Array.from({ length: 2 * blocks }, (_unused, word) => (word % 2 === 0 ? family : word >> 1));
    const request = {
      id: String(i),
      promptTokens,
      outputTokens: 1 + random.below(60),
      hashes,
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    };
    return { at, request, abortAt: random.below(10) === 0 ? at + random.below(400_000) : undefined };
  });
  return list.sort((a, b) => a.at - b.at);
}

/** `look` has the host advance the engine so often between what it must do. */
function lines(config: EngineConfig, list: readonly Arrival[], look = Infinity): string[] {
  const told: string[] = [];
  const engine: ServingEngine = createEngine(config, {
    admitted: (at, { id }, cached) => told.push(`${at} admitted ${id} ${cached}`),
    token: (at, { id }, tokens) => (tokens === 1 ? told.push(`${at} first ${id}`) : undefined),
    finished: (at, { id }, reason) => told.push(`${at} finished ${id} ${reason}`),
  });
  const acts = list.flatMap(({ at, request, abortAt }) => [
    { at, act: () => assert.equal(engine.submit(at, request), "queued") },
    ...(abortAt === undefined ? [] : [{ at: abortAt, act: () => engine.abort(abortAt, request.id) }]),
  ]);
  let clock = 0;
  for (const { at, act } of acts.sort((a, b) => a.at - b.at)) {
    for (; clock + look < at; clock += look) engine.advanceTo(clock + look);
    engine.advanceTo(at - 1);
    act();
  }
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  return [...told, JSON.stringify(engine.gauges())];
}

test("ranks lose no request and answer none twice, whatever the balance", () => {
  for (const rankBalance of RANK_BALANCES) {
    const list = arrivals(1, 300, 6_000_000);
    const told = lines({ ...CONFIG, rankBalance }, list);
    const finished = told.flatMap((line) => /finished (\d+) /.exec(line)?.[1] ?? []);
    assert.equal(finished.length, list.length);
    assert.equal(new Set(finished).size, list.length);
    const gauges = JSON.parse(told.at(-1)!) as {
      finished: number;
      running: number;
      waiting: number;
      kvUtilization: number;
    };
    assert.equal(gauges.finished, list.length);
    assert.deepEqual([gauges.running, gauges.waiting, gauges.kvUtilization], [0, 0, 0]);
  }
});

test("a rank is chosen by time and load alone: however often a host looks, and whether steps are advanced together", () => {
  for (const seed of drawnSeeds(10)) {
    const list = arrivals(seed, 120, 2_500_000);
    const told = lines(CONFIG, list).slice(0, -1).sort();
    for (const look of [100_000, 33_333, 7]) {
      assert.deepEqual(
        lines(CONFIG, list, look === 7 ? 977 : look)
          .slice(0, -1)
          .sort(),
        told,
        `${look}`,
      );
    }
    assert.deepEqual(
      lines({ ...CONFIG, coalesce: false }, list)
        .slice(0, -1)
        .sort(),
      told,
      "single steps",
    );
  }
});

test("each rank is a whole engine: requests that come one by one in turn are served as by engines of their own", () => {
  const list = arrivals(5, 6, 1).map((arrival, i) => ({ ...arrival, at: i, abortAt: undefined }));
  const two = { ...CONFIG, dataParallel: 2 };
  const together = lines(two, list).slice(0, -1).sort();
  const apart = [0, 1].flatMap((rank) =>
    lines(
      { ...two, dataParallel: 1 },
      list.filter((_, i) => i % 2 === rank),
    ).slice(0, -1),
  );
  assert.deepEqual(together, apart.sort());
});

test("two ranks are not one engine of twice the sequences: a long prompt stops the others of its rank only", () => {
  const request = (id: string, promptTokens: number): EngineRequest => ({
    id,
    promptTokens,
    outputTokens: 200,
    hashes: new Int32Array(0),
    priority: 0,
    deadlineAt: undefined,
    cacheRead: true,
  });
  const last = new Map<string, number>();
  const engine = new RankedEngine({ ...CONFIG, dataParallel: 2, kvBlocks: 4000 }, () => ({
    token: (at, { id }) => last.set(id, at),
    finished: () => undefined,
  }));
  assert.equal(engine.submit(0, request("a", 16)), "queued");
  assert.equal(engine.submit(1, request("b", 16)), "queued");
  assert.equal(engine.submit(2, request("long", 8000)), "queued");
  assert.notEqual(engine.rankOf("a"), engine.rankOf("b"));
  const hit = engine.rankOf("long") === engine.rankOf("a") ? "a" : "b";
  for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  assert.ok(last.get(hit)! > last.get(hit === "a" ? "b" : "a")! + 100_000);
});

const MIXTURE = engineDefaults({
  ...CONFIG,
  stepTime: {
    kind: "kernel-table",
    layers: 2,
    layer: [
      [1, 500],
      [1000, 9000],
    ],
    once: [[1, 100]],
    perSequence: [
      [1, 10],
      [10, 50],
    ],
    attention: [
      [0, 0, 1, 1000, 40],
      [500, 0, 0, 0, 900],
    ],
    experts: {
      count: 8,
      perToken: 2,
      boards: 3,
      rows: [
        [1, 2, 100],
        [500, 2, 2000],
        [1, 8, 300],
        [500, 8, 4000],
      ],
    },
    ranks: { ranks: 3, bytesOut: 4000, bytesBack: 4000, gigabytesPerSecond: 16, hopMicros: 20 },
    graphTokensMax: 64,
  },
});

test("ranks of a mixture of experts begin and end every step together, and one that waits begins with the next", () => {
  for (const seed of drawnSeeds(6)) {
    for (const asyncScheduling of [false, true]) {
      const list = arrivals(seed, 150, 3_000_000);
      const ends = new Map<number, number>();
      let shared = 0;
      const finished: string[] = [];
      const engine = new RankedEngine({ ...MIXTURE, asyncScheduling }, () => ({
        step: (startAt, endAt) => {
          const known = ends.get(startAt);
          if (known !== undefined) shared++;
          assert.equal(known ?? endAt, endAt);
          ends.set(startAt, endAt);
        },
        token: () => undefined,
        finished: (_at, { id }) => finished.push(id),
      }));
      const acts = list.flatMap(({ at, request, abortAt }) => [
        { at, act: () => assert.equal(engine.submit(at, request), "queued") },
        ...(abortAt === undefined ? [] : [{ at: abortAt, act: () => engine.abort(abortAt, request.id) }]),
      ]);
      for (const { act } of acts.sort((a, b) => a.at - b.at)) act();
      for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
      assert.deepEqual(finished.sort(), list.map(({ request }) => request.id).sort());
      assert.ok(shared > 50, `${shared} steps of several ranks`);
      const steps = [...ends].sort(([a], [b]) => a - b);
      steps.slice(1).forEach(([startAt], i) => assert.ok(startAt >= steps[i]![1], "a step begins within another"));
    }
  }
});

test("steps together are found by time and load alone, however often a host looks", () => {
  for (const seed of drawnSeeds(4)) {
    const list = arrivals(seed, 80, 1_500_000);
    const told = lines(MIXTURE, list).slice(0, -1).sort();
    for (const look of [100_000, 33_333, 977]) assert.deepEqual(lines(MIXTURE, list, look).slice(0, -1).sort(), told);
  }
});

test("a step together takes at least as long as that of any rank, and as long for others' tokens as for its own", () => {
  const step = createStepTime(MIXTURE.stepTime);
  const decodes = (count: number) => {
    const shape = emptyShape();
    for (let i = 0; i < count; i++) addDecode(shape, 300);
    return shape;
  };
  const [none, few, many] = [emptyShape(), decodes(3), decodes(60)];
  const together = (...shapes: (typeof none)[]) => step.together!(shapes);
  assert.equal(together(none, few, many), together(many, none, few));
  // All are padded to the largest: whether the others have few tokens or none makes no difference.
  assert.equal(together(none, none, many), together(few, few, many));
  assert.ok(together(none, none, many) > together(none, none, few));
  // Without graphs the experts see what there is.
  const beyond = decodes(200);
  assert.ok(together(beyond, many, many) > together(beyond, none, none));
  // Each of three boards reads a third of the experts, once for all of its tokens.
  assert.ok(together(many, many, many) < 2 * step.micros(decodes(180)));
});

test("an engine by itself refuses to be several ranks", () => {
  const sink = { token: () => undefined, finished: () => undefined };
  assert.throws(() => new Engine(CONFIG, sink), /one rank/);
  assert.ok(createEngine({ ...CONFIG, dataParallel: 1 }, sink) instanceof Engine);
});

type RankEvent =
  | readonly ["c" | "e", number]
  | readonly ["p", readonly (readonly [waiting: number, running: number, kvUtilization: number])[]];

test("the ranks that vLLM's own balancer chose, on counts and ends drawn at random", () => {
  const file = new URL("../golden/vllm-ranks/choices.json", import.meta.url);
  const { runs } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly runs: readonly { readonly ranks: number; readonly events: readonly RankEvent[] }[];
  };
  let chosen = 0;
  for (const { ranks, events } of runs) {
    const balancer = new RankBalancer(ranks, "in-flight");
    for (const [kind, what] of events) {
      if (kind === "p") {
        what.forEach(([waiting, running, kvUtilization], rank) =>
          balancer.publish(rank, { waiting, running, kvUtilization }),
        );
      } else if (kind === "e") balancer.ended(what);
      else {
        assert.equal(balancer.choose(), what, `choice ${chosen} among ${ranks}`);
        balancer.sent(what);
        chosen++;
      }
    }
  }
  assert.ok(chosen > 300);
});

test("vLLM 0.32's score: what is in flight is a floor, a queue weighs where the cache is full, and ties go around", () => {
  const balancer = new RankBalancer(3, "in-flight");
  const turns = Array.from({ length: 6 }, () => {
    const rank = balancer.choose();
    balancer.sent(rank);
    return rank;
  });
  assert.deepEqual(turns, [0, 1, 2, 0, 1, 2]);
  // A publication that has not seen the requests yet does not hide them.
  for (const rank of [0, 1, 2]) balancer.publish(rank, { running: 0, waiting: 0, kvUtilization: 0 });
  balancer.ended(1);
  assert.equal(balancer.choose(), 1);
  balancer.publish(0, { running: 4, waiting: 2, kvUtilization: 1 });
  balancer.publish(1, { running: 11, waiting: 0, kvUtilization: 1 });
  balancer.publish(2, { running: 11.5, waiting: 0, kvUtilization: 0 });
  assert.equal(balancer.choose(), 1, "4 + 2 + 6 * 2 * 0.5 = 12 beyond 11");
  balancer.publish(0, { running: 4, waiting: 2, kvUtilization: 0.5 });
  assert.equal(balancer.choose(), 0, "half full there is no pressure");
});

test("earlier versions' score: four for one that waits, one for one that runs, the first rank among equals", () => {
  const balancer = new RankBalancer(2, "weighted-queue");
  assert.equal(balancer.choose(), 0);
  balancer.sent(0);
  assert.equal(balancer.choose(), 1, "what was sent counts as waiting until it is told");
  balancer.publish(0, { running: 3, waiting: 0, kvUtilization: 1 });
  balancer.publish(1, { running: 0, waiting: 1, kvUtilization: 0 });
  assert.equal(balancer.choose(), 0);
});
