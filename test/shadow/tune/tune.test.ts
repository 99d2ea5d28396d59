import assert from "node:assert/strict";
import { test } from "node:test";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { tune } from "#shadow/tune/tune.ts";
import { caseSetting, namedProfile } from "../question/what-if-case.ts";
import { conversationsOf, KeptTrials, tuneCase } from "./tune-case.ts";

const WORKLOAD = conversationsOf(120, 14, 3);

test("a policy that loses prefixes is beaten, on conversations that the search never saw, and it is shown who gains", async () => {
  const question = tuneCase(WORKLOAD, "always-busiest", ["gnomon", "random"], 24);
  const answer = await tune(question);
  assert.equal(answer.verdict.kind, "better", answer.verdict.reasons.join("; "));
  const { heldOut, winner, split, search } = answer;
  assert.ok(heldOut && winner && search);
  assert.ok(heldOut.gain.low > 0 && heldOut.gain.low <= heldOut.gain.value && heldOut.gain.value <= heldOut.gain.high);
  assert.ok(heldOut.gain.chance <= 0.05 && winner.chanceOfBest <= 0.05);
  assert.ok(search.trials <= 24 && search.policies >= 3);
  assert.equal(split.searchSessions + split.heldOutSessions, 120);
  const shares = (parts: readonly { share: number }[]) => parts.reduce((sum, { share }) => sum + share, 0);
  assert.ok(Math.abs(shares(heldOut.parts.byPrompt) - 1) < 1e-9 && Math.abs(shares(heldOut.parts.byTurn) - 1) < 1e-9);
  const placed = heldOut.parts.byEndpoint.reduce((sum, one) => sum + one.requestsAfter, 0);
  assert.equal(placed, split.heldOutRequests);
});

test("a search that was interrupted goes on with what it knew, to the same answer", async () => {
  const question = tuneCase(WORKLOAD, "round-robin", ["gnomon", "llm-d"], 20);
  const [known, memory] = [new KeptTrials(), new KeptTrials()];
  const whole = await tune({ ...question, memory: known });
  for (const [key, loss] of [...known.losses].slice(0, 11)) memory.put(key, loss);
  const resumed = await tune({ ...question, memory });
  assert.equal(resumed.search?.remembered, 11);
  assert.equal(resumed.search.trials, whole.search!.trials - 11);
  assert.deepEqual(resumed.winner, whole.winner);
  assert.deepEqual(resumed.heldOut, whole.heldOut);
});

test("on several threads the answer is the same", async () => {
  const question = tuneCase(WORKLOAD, "round-robin", ["gnomon"], 5);
  const [one, two] = [await tune(question), await tune({ ...question, memory: new KeptTrials(), threadsMax: 2 })];
  assert.deepEqual(two, one);
});

test("of two policies that do the same there is nothing to be gained", async () => {
  const question = tuneCase(WORKLOAD, "round-robin", [], 6);
  const accepts = () => false;
  const same = { ...namedProfile("round-robin"), name: "the same again" };
  const answer = await tune({ ...question, bases: [same], space: { scorers: [], accepts } });
  assert.equal(answer.verdict.kind, "nothing");
});

test("a search that had no time for another policy does not claim that there is none", async () => {
  const answer = await tune(tuneCase(WORKLOAD, "round-robin", ["gnomon"], 3));
  assert.equal(answer.verdict.kind, "uncertain");
  assert.match(answer.verdict.reasons.join("; "), /a larger budget is needed/);
});

test("a trace of few conversations is refused with their number", async () => {
  const answer = await tune(tuneCase(conversationsOf(14, 14, 3), "round-robin", ["gnomon"], 10));
  assert.equal(answer.verdict.kind, "refused");
  assert.match(answer.verdict.reasons.join("; "), /too short: 7 conversations to search on and 7 to judge by/);
  assert.equal(answer.winner, undefined);
});

test("an engine model that is 30 % off on the very traffic is refused; one that is a little off widens what is drawn", async () => {
  const question = tuneCase(WORKLOAD, "round-robin", ["gnomon"], 6);
  const { ttftMicros, e2eMicros } = runCandidate(caseSetting(WORKLOAD), namedProfile("round-robin"));
  const observed = (times: number) =>
    WORKLOAD.map(({ outputTokens }, i) => ({
      endpoint: "a",
      ok: true,
      ttftMicros: times * ttftMicros[i]!,
      e2eMicros: times * e2eMicros[i]!,
      outputTokens,
      cachedTokens: 0,
      attempts: 1,
      retriedMicros: 0,
    }));
  for (const times of [1.4, 0.7]) {
    const refused = await tune({ ...question, observed: observed(times) });
    assert.equal(refused.verdict.kind, "refused");
    assert.match(refused.verdict.reasons.join("; "), /the engine model is [-+]\d+ % off in the mean E2E/);
  }
  const near = await tune({ ...question, memory: new KeptTrials(), observed: observed(1.1) });
  assert.notEqual(near.verdict.kind, "refused");
  assert.ok(Math.abs(near.doubt.level - Math.log(1.1)) < 0.01, String(near.doubt.level));
  const unknown = await tune({ ...question, memory: new KeptTrials() });
  assert.equal(unknown.doubt.level, 0.15);
});

test("a policy that turns requests away is not better for being faster with the rest", async () => {
  const question = tuneCase(conversationsOf(160, 40, 3), "round-robin", [], 8);
  const { spec } = namedProfile("round-robin");
  const filters = [{ plugin: "concurrency-saturation", parameters: { requestsMax: 3 } }];
  const bases = [{ name: "turns away", spec: { ...spec, filters } }];
  const { verdict, heldOut } = await tune({ ...question, bases, space: { scorers: [], accepts: () => false } });
  assert.ok(heldOut && heldOut.gain.low > 0, "it looks faster");
  assert.ok(heldOut.unanswered.after > heldOut.unanswered.before);
  assert.equal(verdict.kind, "uncertain");
  assert.match(verdict.reasons.join("; "), /it leaves \d+ requests without an answer, the profile in force 0/);
});
