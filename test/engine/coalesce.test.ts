import assert from "node:assert/strict";
import { test } from "node:test";
import { chronicle, randomWorkload } from "./random-workload.ts";

/** GNOMON_SEEDS runs more of them. */
const SEEDS = Number(process.env["GNOMON_SEEDS"] ?? 2500);

test("steps advanced together give what single steps give, to the microsecond", () => {
  let preemptions = 0;
  let hits = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const workload = randomWorkload(seed);
    const single = chronicle(workload, { coalesce: false });
    const together = chronicle(workload, { coalesce: true });
    assert.deepEqual(together, single, `seed ${seed}`);
    const last = JSON.parse(single.at(-1) ?? "{}") as { preemptions: number; prefixHitsTokens: number };
    preemptions += last.preemptions;
    hits += last.prefixHitsTokens;
  }
  assert.ok(preemptions > 100 && hits > 10_000, `the workloads preempt (${preemptions}) and share (${hits} tokens)`);
});

test("the same workload gives the same chronicle", () => {
  for (let seed = 1; seed <= 50; seed++) {
    assert.deepEqual(chronicle(randomWorkload(seed), {}), chronicle(randomWorkload(seed), {}), `seed ${seed}`);
  }
});
