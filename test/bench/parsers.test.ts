import assert from "node:assert/strict";
import { test } from "node:test";
import { READERS } from "../../bench/parsers/readers.ts";
import { threadCpuMillis } from "../../bench/thread-cpu.ts";

const LARGE_BYTES_MAX = 8_192;
const TIMES_LARGER = 8;
/** 8 times as much costs 64 times as much where it grows with the square; other work makes figures larger by 2 or 3. */
const TIMES_MAX = 28;
/** What is faster shows nothing: growing with the square it takes 64 ms of 128 KiB, and a second of 512. */
const MILLIS_MIN = 0.25;
/**
 * What is steep is read again, since the first time compiles and other work disturbs: a time is held against those beside
 * it alone, and whatever is not steep in one of so many tries does not grow with the square. For it to be found by chance,
 * other work would have to make each large one more than 3 times as long, and none of the small ones between them.
 */
const TRIES_MAX = 20;
/** The fastest small one of a try counts: for what does grow to be missed, all of them would have to take twice as long. */
const SMALL_READS = 6;

for (const [name, { shapes, read, bytesMax }] of Object.entries(READERS)) {
  test(`${name}: what bytes cost that are made to be dear does not grow with the square of their number`, async () => {
    const millisOf = async (bytes: Buffer): Promise<number> => {
      const before = threadCpuMillis();
      try {
        await read(bytes);
      } catch {
        // Refused is read.
      }
      return threadCpuMillis() - before;
    };
    /** Of a try; `isGentle`: it is as long as to show that a large one is not steep. */
    const fastestOf = async (small: Buffer, isGentle: (millis: number) => boolean): Promise<number> => {
      let least = Math.min(await millisOf(small), await millisOf(small));
      for (let reads = 2; reads < SMALL_READS && !isGentle(least); reads++)
        least = Math.min(least, await millisOf(small));
      return least;
    };
    for (const [shape, build] of Object.entries(shapes)) {
      const largeBytes = Math.min(LARGE_BYTES_MAX, bytesMax);
      const [small, large] = [build(largeBytes / TIMES_LARGER), build(largeBytes)];
      const tried: string[] = [];
      while (tried.length < TRIES_MAX) {
        const most = await millisOf(large);
        if (most <= MILLIS_MIN) break;
        const isGentle = (least: number): boolean => most <= TIMES_MAX * least;
        const least = await fastestOf(small, isGentle);
        if (isGentle(least)) break;
        tried.push(`${least} ms, then ${most} ms`);
      }
      assert.ok(tried.length < TRIES_MAX, `${shape}: ${tried.join("; ")}`);
    }
  });
}
