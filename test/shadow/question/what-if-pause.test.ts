import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { whatIf } from "#shadow/question/what-if.ts";
import { caseSetting, caseWorkload, namedProfile } from "./what-if-case.ts";

const PROFILES = ["gnomon", "round-robin", "lmetric"].map(namedProfile);

test("a host may let its thread rest after every simulation, one at a time, and the answer is the same", async () => {
  const question = {
    setting: caseSetting(caseWorkload().slice(0, 60)),
    inForce: PROFILES[0]!,
    candidates: PROFILES.slice(1),
    observed: undefined,
    threadsMax: 1,
  };
  let pauses = 0;
  let resting = 0;
  const pause = async (): Promise<void> => {
    pauses++;
    assert.equal(++resting, 1, "nothing runs while it rests");
    await sleep(5);
    resting--;
  };
  const [rested, straight] = [await whatIf({ ...question, pause }), await whatIf(question)];
  assert.ok(pauses >= PROFILES.length, `${pauses} pauses`);
  assert.deepEqual(rested, straight);
});
