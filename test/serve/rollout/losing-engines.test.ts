import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutState } from "#core/rollout/rollout-state.ts";
import { LosingEngines } from "#serve/rollout/losing-engines.ts";
import { after, planOf, stepOf } from "../../core/rollout/rollout-case.ts";

const DESIGN = { kind: "pools", windowMicros: 60_000_000, by: "session", label: "version", redrawn: true } as const;
const ARMS = [
  { name: "control", profile: "gnomon", pool: "a" },
  { name: "other", profile: "gnomon", pool: "b" },
];

function promoted(arm: string, at: number, more: Partial<RolloutState["plan"]> = {}): RolloutState {
  const plan = { ...planOf(DESIGN), arms: ARMS, ...more };
  return after(plan, stepOf("start", 0), { ...stepOf("promote", at), arm });
}

interface Fleet {
  readonly engines: LosingEngines;
  readonly labels: Map<string, string>;
  readonly cordoned: Set<string>;
  readonly reports: string[];
}

function fleet(labels: Readonly<Record<string, string>>): Fleet {
  const all = new Map(Object.entries(labels));
  const cordoned = new Set<string>();
  const reports: string[] = [];
  const engines = new LosingEngines({
    all: () => [...all].map(([id, version]) => ({ id, labels: { version } })),
    isCordoned: (id) => cordoned.has(id),
    cordon: (id) => void cordoned.add(id),
    report: ({ detail }) => void reports.push(detail),
  });
  return { engines, labels: all, cordoned, reports };
}

test("a promotion of engines cordons those of the other side once, and those that join later", () => {
  const { engines, labels, cordoned, reports } = fleet({ old: "a", new: "b", third: "c" });
  const running = after({ ...planOf(DESIGN), arms: ARMS }, stepOf("start", 0));
  engines.follow([running]);
  assert.deepEqual([...cordoned], [], "nothing is decided");
  const book = [promoted("other", 5)];
  engines.follow(book);
  assert.deepEqual([...cordoned], ["old"]);
  assert.match(reports.join(), /old has version=a, and b was promoted/);
  labels.set("older", "a");
  engines.follow(book);
  assert.deepEqual([...cordoned], ["old", "older"]);
  // An operator has the last word.
  cordoned.delete("old");
  engines.follow(book);
  assert.deepEqual([...cordoned], ["older"]);
});

test("nothing is cordoned while the promoted side has no engine, and policies' pools, splits and what was taken back cordon none", () => {
  const { engines, labels, cordoned } = fleet({ old: "a" });
  engines.follow([promoted("other", 5)]);
  assert.deepEqual([...cordoned], []);
  labels.set("new", "b");
  cordoned.add("new");
  engines.follow([promoted("other", 5)]);
  assert.deepEqual([...cordoned], ["new"], "the last that has requests stays");
  cordoned.clear();
  const { redrawn: _, ...kept } = DESIGN;
  const back = after({ ...planOf(DESIGN), arms: ARMS }, stepOf("start", 0), stepOf("rollback", 5));
  engines.follow([promoted("other", 5, { design: kept }), back]);
  assert.deepEqual([...cordoned], []);
});

test("of two promotions by one label the later stands, also for a process that begins after both", () => {
  const [first, second] = [promoted("other", 5, { name: "first" }), promoted("control", 9, { name: "second" })];
  for (const book of [
    [first, second],
    [second, first],
  ]) {
    const { engines, cordoned } = fleet({ one: "a", two: "b" });
    engines.follow(book);
    assert.deepEqual([...cordoned], ["two"]);
  }
});
