import assert from "node:assert/strict";
import { test } from "node:test";
import { age, clock, compact, count, dayAndClock, duration } from "#page/part/format.ts";

test("durations have three digits or so, and seconds from one second on", () => {
  assert.deepEqual([0, 0.042, 8.7, 87.4, 999.4, 999.6, 12_345, -3, NaN].map(duration), [
    "0.00 ms",
    "0.042 ms",
    "8.70 ms",
    "87.4 ms",
    "999 ms",
    "1.00 s",
    "12.3 s",
    "−3.00 ms",
    "–",
  ]);
  assert.deepEqual([duration(null), duration(undefined)], ["–", "–"]);
});

test("ages are rounded to what matters at their size", () => {
  const ages = [120, 9_960, 119_400, 119_600, 7_100_000, 7_200_000, 172_800_000, -5].map(age);
  assert.deepEqual(ages, ["0.1 s", "10 s", "119 s", "2 min", "118 min", "2 h", "2 d", "0.0 s"]);
  assert.equal(age(null), "unknown");
});

test("counts, large numbers and times of day", () => {
  assert.deepEqual(
    [count(12_345), count(2.54), count(null), compact(950), compact(12_345), compact(4_560_000)],
    ["12,345", "2.5", "–", "950", "12.3 k", "4.56 M"],
  );
  const at = Date.parse("2026-03-04T14:03:20Z");
  assert.deepEqual([clock(at), dayAndClock(at)], ["14:03:20", "2026-03-04 14:03:20"]);
});
