import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { golden, ids, readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const CELL_MICROS = 3_000_000;

describe("Mooncake", () => {
  it("takes lengths and ids as written", async () => {
    const { requests, report } = await readAll(golden("mooncake.jsonl"));
    assert.equal(requests.length, 8);
    assert.deepEqual(
      requests.map(({ promptTokens, outputTokens }) => [promptTokens, outputTokens]),
      [
        [1300, 50],
        [600, 20],
        [1536, 10],
        [1400, 7],
        [100, 1],
        [512, 1],
        [700, 5],
        [1025, 5],
      ],
    );
    assert.deepEqual(ids(requests[3]), [0, 1, 2]);
    assert.equal(report.adjusted.get("output of 0 tokens raised to 1"), 2);
    assert.deepEqual(
      [...report.refused],
      [
        ["output_length is not a number of tokens >= 0", 1],
        ["not JSON", 1],
      ],
    );
  });

  it("spreads a grid's timestamps within their cells, in file order, by the seed", async () => {
    const cells = [0, 0, 0, 1, 1, 2, 2, 3];
    const one = await readAll(golden("mooncake.jsonl"), { seed: 1 });
    const two = await readAll(golden("mooncake.jsonl"), { seed: 2 });
    for (const { requests } of [one, two])
      assert.deepEqual(
        requests.map(({ arrivalMicros }) => Math.floor(arrivalMicros / CELL_MICROS)),
        cells,
      );
    const arrivals = one.requests.map(({ arrivalMicros }) => arrivalMicros);
    assert.equal(new Set(arrivals).size, arrivals.length, "no burst is left");
    assert.notDeepEqual(
      arrivals,
      two.requests.map(({ arrivalMicros }) => arrivalMicros),
    );
    assert.deepEqual(
      one.requests.map(({ promptTokens }) => promptTokens),
      two.requests.map(({ promptTokens }) => promptTokens),
    );
  });

  it("spreads a full cell evenly over it", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "cell.jsonl");
    const line = '{"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[1]}\n';
    await writeFile(file, line.repeat(3_000));
    const { requests } = await readAll(file);
    const tenths = Array<number>(10).fill(0);
    for (const { arrivalMicros } of requests) tenths[Math.floor((arrivalMicros * 10) / CELL_MICROS)]! += 1;
    // 300 expected in each; six standard deviations are 99.
    for (const count of tenths) assert.ok(Math.abs(count - 300) < 99, tenths.join(" "));
  });

  it("takes timestamps off the grid, and all when asked, as they are", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "real.jsonl");
    const times = [100, 117, 4_500, 4_500, 9_001];
    const lines = times.map((t) => JSON.stringify({ timestamp: t, input_length: 5, output_length: 1, hash_ids: [1] }));
    await writeFile(file, lines.join("\n"));
    const recorded = times.map((t) => (t - 100) * 1_000);
    const { requests } = await readAll(file);
    assert.deepEqual(
      requests.map(({ arrivalMicros }) => arrivalMicros),
      recorded,
    );
    const plain = await readAll(golden("mooncake.jsonl"), { gridMillis: 0 });
    assert.deepEqual(
      plain.requests.map(({ arrivalMicros }) => arrivalMicros / 1_000),
      [0, 0, 0, 2_999, 3_001, 6_000, 6_000, 9_000],
    );
  });
});
