import assert from "node:assert/strict";
import { test } from "node:test";
import { WorkloadChains } from "#sim/source/workload-chains.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

/** 2^33 + 5 has another high half than 5. */
const IDS = [5, 6, 2 ** 33 + 5, 5, 2 ** 52 + 7];
/** Near the largest whole numbers; one of them is odd. */
const LARGEST = [2 ** 53 - 4, 2 ** 53 - 3];

function prompt(index: number, ids: readonly number[], idTokens: number): WorkloadRequest {
  const promptTokens = ids.length * idTokens;
  const lengths = { index, arrivalMicros: 0, promptTokens, outputTokens: 1 };
  return { ...LENGTHS_ONLY, ...lengths, blockIds: Float64Array.from(ids), blockTokens: idTokens };
}

/** Hashes as one word per block. */
function blocksOf(chains: WorkloadChains, request: WorkloadRequest): string[] {
  const { hashes, length } = chains.chainOf(request);
  return Array.from({ length }, (_, i) => `${hashes[2 * i]} ${hashes[2 * i + 1]}`);
}

for (const [blockTokens, idTokens] of [
  [16, 512],
  [16, 16],
  [16, 24],
  [24, 512],
  [64, 16],
] as const) {
  test(`blocks of ${blockTokens} named by ids of ${idTokens} tokens: equal content, equal names, and no others`, () => {
    const chains = new WorkloadChains(blockTokens, 3);
    const whole = blocksOf(chains, prompt(0, IDS, idTokens));
    for (let ids = 1; ids <= IDS.length; ids++) {
      const part = blocksOf(chains, prompt(7, IDS.slice(0, ids), idTokens));
      assert.deepEqual(part, whole.slice(0, part.length), `${ids} ids`);
      const other = [...IDS.slice(0, ids - 1), 99];
      const changed = blocksOf(chains, prompt(8, other, idTokens));
      const same = Math.floor(((ids - 1) * idTokens) / blockTokens);
      assert.deepEqual(changed.slice(0, same), whole.slice(0, same));
      for (let i = same; i < changed.length; i++) assert.notEqual(changed[i], whole[i], `block ${i}`);
    }
    assert.deepEqual(
      blocksOf(new WorkloadChains(blockTokens, 3), prompt(1, IDS, idTokens)),
      whole,
      "whoever names them",
    );
  });
}

test("parts of one id have names of their own, and an id's parts are named alike wherever it stands", () => {
  const chains = new WorkloadChains(16, 3);
  const blocks = blocksOf(chains, prompt(0, IDS, 512));
  assert.equal(new Set(blocks.slice(0, 32)).size, 32);
  assert.deepEqual(blocks.slice(96, 128), blocks.slice(0, 32), "the fourth id is the first");
  assert.equal(new Set(blocks).size, 4 * 32);
});

test("ids that differ in their last bit alone are other names, however large they are", () => {
  for (const [blockTokens, idTokens] of [
    [16, 16],
    [16, 32],
    [16, 24],
  ] as const) {
    const chains = new WorkloadChains(blockTokens, 3);
    const [one, other] = LARGEST.map((id) => blocksOf(chains, prompt(0, [id], idTokens)));
    one!.forEach((name, i) => assert.notEqual(name, other![i], `${idTokens} tokens, block ${i}`));
  }
});
