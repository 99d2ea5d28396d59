import assert from "node:assert/strict";
import { test } from "node:test";
import { type Random, randomFor } from "#core/base/random.ts";
import type { BlockSums } from "#core/rollout/judge/block-differences.ts";
import { WindowExcess } from "#core/rollout/judge/window-excess.ts";

/** Of four limits, together at 5 %. */
const LEVEL = 0.0125;
const DRAWN = { carriesOver: false };
const IN_ROW = { carriesOver: true };
const LIMIT = 100_000;

/** Blocks after which a time is surely above its limit; Infinity where it never is. */
function foundAfter(
  blocks: Iterable<readonly [time: number, limit: number, expected?: number]>,
  { kind = DRAWN, isTail = true, level = LEVEL } = {},
): number {
  const excess = new WindowExcess();
  let count = 0;
  for (const [time, limit, expected] of blocks) {
    excess.addTime(time, limit, isTail, expected);
    count++;
    if (excess.timesAtLeast(level, kind) > 1) return count;
  }
  return Infinity;
}

function atLimit(ratios: readonly number[]): (readonly [number, number])[] {
  return ratios.map((ratio) => [ratio * LIMIT, LIMIT]);
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

const RUNS = 1000;

/** At most so many runs as the level has, but for what chance makes of their number. */
function assertRare(alarms: number, what: string, level = LEVEL): void {
  const error = Math.sqrt((level * (1 - level)) / RUNS);
  assert.ok(alarms / RUNS < level + 3 * error, `${alarms} of ${RUNS}: ${what}`);
}

test("a pool whose queue grows from window to window is found in the tenth window, one that is steadily worse in the fifth", () => {
  assert.equal(foundAfter(atLimit([1.5, 5, 11, 19, 30, 44, 60, 78, 98, 120]), { isTail: false }), 10);
  assert.equal(foundAfter(atLimit([1.9, 2.3, 1.7, 2.2, 2, 1.9]), { isTail: false }), 5);
});

test("a time that is at its limit is taken for above it at any look in at most so many runs as the level has", () => {
  for (const deviation of [0.15, 0.4, 1]) {
    let alarms = 0;
    for (let run = 0; run < RUNS; run++) {
      const random = randomFor(7, run);
      const time = () => LIMIT * Math.exp(deviation * normal(random));
      if (foundAfter(Array.from({ length: 60 }, () => [time(), time()] as const)) < Infinity) alarms++;
    }
    assertRare(alarms, `deviation ${deviation}`);
  }
  const within = atLimit(Array.from({ length: 200 }, (_, i) => (i % 3 === 0 ? 1.2 : 0.6)));
  assert.equal(foundAfter(within, { isTail: false }), Infinity);
});

test("times so many times their limit, or so small a part of it, that all are at the bound show no more than a coin does", () => {
  for (const deviation of [1.5, 3, 10]) {
    for (const level of [LEVEL, 0.001]) {
      let alarms = 0;
      for (let run = 0; run < RUNS; run++) {
        const random = randomFor(19, run);
        const time = () => LIMIT * Math.exp(deviation * normal(random));
        if (
          foundAfter(
            Array.from({ length: 40 }, () => [time(), time()] as const),
            { level },
          ) < Infinity
        )
          alarms++;
      }
      assertRare(alarms, `deviation ${deviation}, level ${level}`, level);
    }
  }
  // Of n windows all are on one side with a probability of 2^-n.
  for (const level of [0.01, 0.0005, 0.00005]) {
    const found = foundAfter(atLimit(Array.from({ length: 40 }, () => 9)), { isTail: false, level });
    assert.ok(2 ** -found <= level && found <= 1 + 1.5 * Math.log2(1 / level), `${found} windows at ${level}`);
  }
});

/** Blocks of a switchback: most are quiet; in bursts, which last for some, both times are as many times as long. */
function burstBlocks(seed: number, blocks: number, worseInBursts: number): (readonly [number, number])[] {
  const random = randomFor(seed, 3);
  let left = 0;
  return Array.from({ length: blocks }, () => {
    if (left === 0 && random.next() < 0.1) left = 1 + random.below(5);
    const burst = left > 0 ? 8 : 1;
    if (left > 0) left--;
    const [own, control] = [0, 1].map(() => LIMIT * burst * Math.exp(0.4 * normal(random)));
    return [own! * (burst > 1 ? worseInBursts : 1 / 1.25), control!];
  });
}

test("a tail that bursts alone hold is found where it is twice as long, and not where it is as long", () => {
  let found = 0;
  for (let seed = 0; seed < 50; seed++) if (foundAfter(burstBlocks(seed, 400, 2)) < Infinity) found++;
  assert.ok(found >= 48, `${found} of 50`);
  let alarms = 0;
  for (let seed = 0; seed < RUNS; seed++) if (foundAfter(burstBlocks(seed, 100, 1)) < Infinity) alarms++;
  assertRare(alarms, "bursts as long");
});

/** Blocks of which either window may meet a burst; what is predicted of them is as good as `known`, 0 for chance, NaN for nothing. */
function predictedBlocks(
  seed: number,
  times: number,
  known: number,
  deviation = 1,
): (readonly [number, number, number])[] {
  const random = randomFor(seed, 5);
  return Array.from({ length: 120 }, () => {
    const [own, control] = [0, 1].map(() => deviation * normal(random));
    const expected = Number.isNaN(known) ? 0 : known * (own! - control!) + (1 - known) * 2 * deviation * normal(random);
    return [times * LIMIT * Math.exp(own! + 0.1 * normal(random)), LIMIT * Math.exp(control!), expected] as const;
  });
}

test("what the simulator predicts of a block is taken away: twice its limit is found in a third of the blocks", () => {
  const median = (known: number) => {
    const found = Array.from({ length: 40 }, (_, seed) => foundAfter(predictedBlocks(seed, 2, known)));
    return found.toSorted((a, b) => a - b)[20]!;
  };
  const [without, bad, good] = [median(NaN), median(0), median(0.9)];
  assert.ok(3 * good <= without, `${good} of ${without} blocks`);
  assert.ok(bad <= 2 * without, `predictions that know nothing cost ${bad} instead of ${without} blocks`);
});

test("a time at its limit is as rarely taken for above it where it was predicted, well or badly", () => {
  for (const known of [0.9, 0]) {
    let alarms = 0;
    for (let run = 0; run < RUNS; run++) if (foundAfter(predictedBlocks(run, 1, known, 0.3)) < Infinity) alarms++;
    assertRare(alarms, `known ${known}`);
  }
});

test("blocks that are like the one before are no reason to take a time that is at its limit for above it", () => {
  const alarmsOf = (kind: typeof DRAWN, runs: number) => {
    let alarms = 0;
    for (let run = 0; run < runs; run++) {
      const random = randomFor(11, run);
      const queues = [0, 0];
      const blocks = Array.from({ length: 60 }, () => {
        queues.forEach((own, pool) => (queues[pool] = 0.5 * own + 0.3 * normal(random)));
        return queues.map((own) => LIMIT * Math.exp(own)) as [number, number];
      });
      if (foundAfter(blocks, { kind }) < Infinity) alarms++;
    }
    return alarms;
  };
  assertRare(alarmsOf(IN_ROW, RUNS), "in a row");
  assert.ok(alarmsOf(DRAWN, 2 * RUNS) > 3 * LEVEL * 2 * RUNS, "they are as alike as that");
});

test("a share that is ten times the other is found in few windows; one that is at its limit, as rarely as the level has it", () => {
  const shares = (seed: number, blocks: number, own: number, requests: number) => {
    const random = randomFor(13, seed);
    const failed = (share: number) => {
      let count = 0;
      for (let i = 0; i < requests; i++) if (random.next() < share) count++;
      return count;
    };
    const excess = new WindowExcess();
    for (let block = 1; block <= blocks; block++) {
      excess.addShare((failed(own) - 2 * failed(0.003)) / requests, requests / 2);
      if (excess.shareAtLeast(LEVEL, DRAWN) > 0) return block;
    }
    return Infinity;
  };
  const found = Array.from({ length: 100 }, (_, seed) => shares(seed, 60, 0.03, 96)).toSorted((a, b) => a - b);
  assert.ok(found[50]! <= 16 && found[98]! <= 40, `${found[50]} ${found[98]}`);
  const alarms = Array.from({ length: RUNS }, (_, seed) => shares(seed, 60, 0.006, 96)).filter(Number.isFinite).length;
  assertRare(alarms, "twice as many");
});

test("what was saved as text goes on as it was", () => {
  const blocks = predictedBlocks(5, 2, 0.9);
  const [whole, first] = [new WindowExcess(), new WindowExcess()];
  for (const [time, limit, expected] of blocks) whole.addTime(time, limit, true, expected);
  for (const [time, limit, expected] of blocks.slice(0, 17)) first.addTime(time, limit, true, expected);
  const again = new WindowExcess(JSON.parse(JSON.stringify(first.saved())) as ReturnType<WindowExcess["saved"]>);
  for (const [time, limit, expected] of blocks.slice(17)) again.addTime(time, limit, true, expected);
  for (const kind of [DRAWN, IN_ROW]) assert.equal(again.timesAtLeast(LEVEL, kind), whole.timesAtLeast(LEVEL, kind));
  assert.deepEqual(again.saved(), whole.saved());
});

test("what an earlier version saved, with one part of the high blocks, goes on", () => {
  const excess = new WindowExcess();
  for (const [time, limit] of burstBlocks(5, 40, 2)) excess.addTime(time, limit, true);
  const saved = excess.saved();
  const [widest] = saved.high as readonly BlockSums[];
  const again = new WindowExcess({ ...saved, high: widest! });
  assert.deepEqual((again.saved().high as readonly BlockSums[])[0], widest);
  assert.deepEqual(again.saved().all, saved.all);
});

test("bursts that outlast both windows of a block show a tail that is twice as long before all bursts do", () => {
  /** Now and then both windows are deep in a queue; often one of them alone meets a short burst. */
  const blocks = (seed: number) => {
    const random = randomFor(seed, 9);
    return Array.from({ length: 120 }, (_, i) => {
      const deep = i % 12 === 11;
      const times = [0, 1].map(() => (deep ? 60 : random.next() < 0.4 ? 1 + 9 * random.next() : 1) * LIMIT);
      return [times[0]! * (times[0]! > LIMIT ? 2 : 0.8) * Math.exp(0.05 * normal(random)), times[1]!] as const;
    });
  };
  const found = Array.from({ length: 40 }, (_, seed) => foundAfter(blocks(seed))).toSorted((a, b) => a - b);
  assert.ok(found[20]! <= 96, `${found[20]} blocks: eight that are deep`);
});
