import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { LastRun } from "#shadow/recorded/last-run.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { readDecidedRun } from "#shadow/reproduce/decided-run.ts";
import { segmentName } from "#trace/segment-name.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { foreignTraffic, itemsOf } from "../reproduce/foreign-traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const EARLIER = "of an earlier run of the recorder";

const real = (requests: number): TraceItem[] =>
  foreignTraffic({ spec: loadProfile("round-robin").spec, requests, seed: 3 });

/** As a gateway leaves it that cannot listen: endpoints joined, nobody asked. */
const empty: readonly TraceItem[] = [
  { kind: "run", header: HEADER },
  {
    kind: "record",
    input: {
      kind: "endpoint-joined",
      at: 1,
      endpoint: { id: "nobody", models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined },
    },
    decision: undefined,
  },
  { kind: "gap", at: 2, dropped: 1, damage: "its end is missing" },
];

test("a run without a request hides none of before, and counts for nothing", async () => {
  const items = real(40);
  const [recorded, decided] = [await readRecordedRun(itemsOf(items)), await readDecidedRun(itemsOf(items), Infinity)];
  assert.equal(recorded.workload.length, 40);
  for (const all of [
    [...items, ...empty],
    [...items, ...empty, ...empty],
    [...empty, ...items, ...empty],
  ]) {
    assert.deepEqual(await readRecordedRun(itemsOf(all)), recorded);
    assert.deepEqual(await readDecidedRun(itemsOf(all), Infinity), decided);
  }
});

test("of several runs with requests the last one counts, whatever came between them", async () => {
  for (const all of [
    [...real(40), ...real(7)],
    [...real(40), ...empty, ...real(7), ...empty],
  ]) {
    const recorded = await readRecordedRun(itemsOf(all));
    assert.deepEqual([recorded.workload.length, recorded.left], [7, { [EARLIER]: 40 }]);
    const decided = await readDecidedRun(itemsOf(all), Infinity);
    assert.deepEqual([decided.decisions, decided.left], [7, { [EARLIER]: 40 }]);
  }
});

test("where no run has a request it is the last; one whose requests were all dropped had some", () => {
  const runs = new LastRun<string>();
  assert.equal(runs.chosen, undefined);
  for (const name of ["first", "second"]) {
    runs.begin(name);
    for (const item of empty.slice(1)) runs.take(item);
    assert.equal(runs.chosen, name);
  }
  runs.take({ kind: "gap", at: 3, dropped: 5 });
  runs.begin("third");
  assert.deepEqual([runs.chosen, runs.now], ["second", "third"]);
});

test("segments that a gateway goes on writing come before those of one that began later", () => {
  const names = [0, 1, 2].map((segment) => segmentName(HEADER.startWallMicros, "ffffffff", segment));
  const later = segmentName(HEADER.startWallMicros + 1_000_000, "00000000", 0);
  assert.deepEqual([later, ...names].toSorted(), [...names, later]);
});
