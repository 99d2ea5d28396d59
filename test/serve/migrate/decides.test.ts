import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { oursFile } from "../../config/migrate-page.ts";
import { type Compared, decideAgain } from "./decide-again.ts";

const KEY = "sk-sample";

/** By the page's configuration of ours, beside what the other router decided under the page's configuration of theirs. */
const decided = (t: TestContext, name: string, sample = name): Promise<Compared[]> =>
  decideAgain(sample, oursFile(t, name), { LITELLM_MASTER_KEY: KEY }, { authorization: `Bearer ${KEY}` });

const isAmongBest = ({ best, theirs }: Compared): boolean => best.includes(theirs);
const isConversation = ({ id }: Compared): boolean => id.startsWith("r");
/** Where ours knows one best, so that nothing is left to a tie. */
const isClear = ({ best }: Compared): boolean => best.length === 1;

for (const name of ["nginx", "LiteLLM"]) {
  test(`${name}: each of 164 decisions is one that ours holds for best`, async (t) => {
    const all = await decided(t, name);
    assert.equal(all.length, 164);
    assert.deepEqual(
      all.filter((one) => !isAmongBest(one)),
      [],
    );
    assert.ok(all.filter(isClear).length > 60);
  });
}

test("llm-d: its endpoint picker's file decides here as there, 120 times of 120, without a tie", async (t) => {
  const all = await decided(t, "llm-d");
  assert.deepEqual([all.length, all.filter(isClear).length], [120, 120]);
  assert.deepEqual(
    all.filter((one) => !isAmongBest(one)),
    [],
  );
});

test("production-stack: a session has one engine in both, and all engines have sessions", async (t) => {
  const all = (await decided(t, "production-stack")).filter(({ session }) => session !== undefined);
  for (const engineOf of [({ theirs }: Compared) => theirs, ({ best }: Compared) => best.join()]) {
    const engines = new Map<string, Set<unknown>>();
    for (const one of all) engines.set(one.session!, (engines.get(one.session!) ?? new Set()).add(engineOf(one)));
    assert.equal(engines.size, 13);
    assert.deepEqual(
      [...engines.values()].map(({ size }) => size),
      Array.from(engines, () => 1),
    );
    assert.equal(new Set([...engines.values()].flatMap((set) => [...set])).size, 3);
  }
});

test("SMG as sglang-router: conversations, and the requests of one prompt until its bound on imbalance, go alike", async (t) => {
  const all = await decided(t, "SMG");
  const spills = all.findIndex(({ id }) => id === "h33");
  assert.deepEqual(
    all.slice(0, spills).filter((one) => !isAmongBest(one)),
    [],
  );
  assert.ok(all.slice(0, spills).filter(isClear).length > 140);
  // From there on several engines hold the prompt: ours takes the least loaded of them, theirs the one its tree names.
  assert.equal(all.slice(spills).length, 11);
  assert.notEqual(all[spills]!.theirs, all[spills - 1]!.theirs);
});

test("SMG 1.13 spills by the fleet's mean: conversations go alike, many requests of one prompt do not", async (t) => {
  const all = await decided(t, "SMG", "SMG-1.13");
  assert.equal(all.filter(isConversation).filter((one) => !isAmongBest(one)).length, 1);
  assert.equal(all.filter((one) => !isAmongBest(one)).length, 14);
});
