import assert from "node:assert/strict";
import { test } from "node:test";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { columnsOf, PackedWorkload, WorkloadPacker } from "#shadow/recorded/packed-workload.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const packed = (requests: readonly WorkloadRequest[]) => new PackedWorkload(columnsOf(requests));

test("a packed workload holds the same requests, text left out", () => {
  const odd: WorkloadRequest = {
    ...LENGTHS_ONLY,
    index: 0,
    arrivalMicros: 2 ** 40 + 1,
    session: "s",
    turn: 3,
    parent: { session: "p", turn: 2 },
    joins: ["p", "q"],
    thinkMicros: 0,
    promptTokens: 5,
    outputTokens: 6,
    sequences: 3,
    tokensByPrompt: [4, 0, 1],
    blockIds: Float64Array.of(2 ** 53 - 1, 0),
    tokenIds: Int32Array.of(-1, 7),
    text: undefined,
    tenant: "t",
    sloClass: "c",
    model: "m",
    timeoutMicros: 9,
    slo: { ttftMicros: 7, tpotMicros: 8 },
  };
  const bare = {
    ...LENGTHS_ONLY,
    index: 1,
    arrivalMicros: 0,
    promptTokens: 1,
    outputTokens: 1,
    timeoutMicros: undefined,
  };
  const requests = [odd, bare, { ...odd, index: 2, blockIds: new Float64Array(0) }];
  const columns = columnsOf(packed(requests));
  assert.deepEqual([...new PackedWorkload(structuredClone(columns))], requests);
  assert.ok(columns.rows.buffer instanceof SharedArrayBuffer);
  for (const index of [-1, 3, NaN]) assert.equal(packed(requests).at(index), undefined);
  const packer = new WorkloadPacker();
  packer.push({ ...bare, index: 77, text: "secret" });
  assert.deepEqual([...new PackedWorkload(packer.columns())], [{ ...bare, index: 0 }]);
});

test("a simulation of a packed workload is the simulation of the workload", () => {
  const requests = caseWorkload();
  const run = (workload: readonly WorkloadRequest[] | PackedWorkload) =>
    runCandidate({ ...caseSetting(requests), workload }, namedProfile("gnomon"));
  assert.deepEqual(run(packed(requests)), run(requests));
});
