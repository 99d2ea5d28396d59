import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ImportReport } from "#trace/import/import-report.ts";
import { inOrder } from "#trace/import/in-order.ts";

async function ordered(
  times: readonly number[],
): Promise<{ found: { time: number; at: number }[]; report: ImportReport }> {
  const report = new ImportReport("x", "lmcache", false);
  const found: { time: number; at: number }[] = [];
  const source = ReadableStream.from(times.map((time, at) => ({ time, at })));
  for await (const record of inOrder(source, report)) found.push(record);
  return { found, report };
}

describe("records that are nearly in order", () => {
  it("come out by time, equal times as they were, none lost", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 300 }), async (times) => {
        const { found } = await ordered(times);
        const expected = times.map((time, at) => ({ time, at })).sort((a, b) => a.time - b.time || a.at - b.at);
        assert.deepEqual(found, expected);
      }),
      { numRuns: 50 },
    );
  });

  it("that are later than the window are kept where they stand, and counted", async () => {
    const times = [...Array.from({ length: 3_000 }, (_, i) => i + 10), 1];
    const { found, report } = await ordered(times);
    assert.equal(found.length, times.length);
    assert.equal(report.adjusted.get("record later than the reordering window, taken where it stands"), 1);
  });
});
