import assert from "node:assert/strict";
import { test } from "node:test";
import { READERS } from "../../bench/parsers/readers.ts";
import { threadCpuMillis } from "../../bench/thread-cpu.ts";

const LARGE_BYTES_MAX = 131_072;
const TIMES_LARGER = 8;
/** 8 times as much costs 64 times as much where it grows with the square; other work makes figures larger by 2 or 3. */
const TIMES_MAX = 28;
/** What is faster shows nothing. */
const MILLIS_MIN = 60;

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
      const least = Math.min(await millisOf(small), await millisOf(small));
      const most = await millisOf(large);
      const isSteep = most > MILLIS_MIN && most > TIMES_MAX * Math.max(least, 1);
      if (isSteep)
        assert.ok((await millisOf(large)) < TIMES_MAX * Math.max(least, 1), `${shape}: ${least} ms, then ${most} ms`);
    }
  });
}
