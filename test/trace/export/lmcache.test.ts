import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { lmcacheLines } from "#trace/export/lmcache-lines.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-lmcache-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const turn = (index: number, session: string, blocks: number[], more: Partial<WorkloadRequest>): WorkloadRequest => ({
  ...LENGTHS_ONLY,
  index,
  session,
  arrivalMicros: 0,
  promptTokens: 16 * blocks.length + 5,
  outputTokens: 3 + index,
  blockIds: Float64Array.from(blocks),
  ...more,
});
const BIG = 2 ** 40;
const TRAFFIC = [
  turn(0, "a", [1, BIG + 1], { arrivalMicros: 0 }),
  turn(1, "a", [1, BIG + 1, 3], { turn: 1, thinkMicros: 9_000_000 }),
  turn(2, "", [1, 2 * BIG + 1], { arrivalMicros: 4_000_000 }),
  turn(3, "", [], { arrivalMicros: 5_000_000, blockIds: undefined, text: "its own words" }),
];

test("a workload that is written and read again has its times, lengths, conversations and what prompts share", async () => {
  const file = join(FOLDER, "sessions.jsonl");
  const lines = await lmcacheLines(
    (async function* () {
      yield* TRAFFIC;
    })(),
  );
  writeFileSync(file, lines.join(""));
  const { requests } = await openWorkload(file, IMPORT_DEFAULTS);
  const read = (await Array.fromAsync(requests)).sort((a, b) => a.arrivalMicros - b.arrivalMicros);
  assert.deepEqual(
    read.map((one) => [one.arrivalMicros, one.turn, one.thinkMicros, one.promptTokens, one.outputTokens]),
    [
      [0, 0, undefined, 37, 3],
      [4_000_000, 0, undefined, 37, 5],
      [5_000_000, 0, undefined, 4, 6],
      [9_000_000, 1, 9_000_000, 53, 4],
    ],
  );
  const [first, alone, spoken, second] = read;
  assert.equal(first?.session, second?.session);
  assert.notEqual(first?.session, alone?.session);
  assert.equal(spoken?.text, "its own words");
  assert.deepEqual(second?.blockIds?.slice(0, 2), first?.blockIds?.slice(0, 2));
  assert.equal(alone?.blockIds?.[0], first?.blockIds?.[0]);
  assert.notEqual(alone?.blockIds?.[1], first?.blockIds?.[1], "blocks whose ids differ in their upper half alone");
});
