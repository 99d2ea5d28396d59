import assert from "node:assert/strict";
import { test } from "node:test";
import { READERS } from "../../bench/parsers/readers.ts";
import { threadCpuMillis } from "../../bench/thread-cpu.ts";

const LARGE_BYTES_MAX = 16_384;
const TIMES_LARGER = 8;
/** 8 times as much costs 64 times as much where it grows with the square; other work makes figures larger by 2 or 3. */
const TIMES_MAX = 28;
/** What is faster shows nothing: growing with the square it takes 64 ms of 128 KiB, and a second of 512. */
const MILLIS_MIN = 1;
/** What is steep is read again, since the first time compiles and other work disturbs: the fastest counts. */
const TRIES_MAX = 4;

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
    for (const [shape, build] of Object.entries(shapes)) {
      const largeBytes = Math.min(LARGE_BYTES_MAX, bytesMax);
      const [small, large] = [build(largeBytes / TIMES_LARGER), build(largeBytes)];
      let [least, most] = [Infinity, Infinity];
      const isSteep = (): boolean => most > Math.max(MILLIS_MIN, TIMES_MAX * least);
      for (let tries = 0; tries < TRIES_MAX && (tries === 0 || isSteep()); tries++) {
        most = Math.min(most, await millisOf(large));
        if (most > MILLIS_MIN) least = Math.min(least, await millisOf(small), await millisOf(small));
      }
      assert.ok(!isSteep(), `${shape}: ${least} ms, then ${most} ms`);
    }
  });
}
