import assert from "node:assert/strict";
import { test } from "node:test";
import { profileNames } from "#config/profile-file.ts";
import { requestId, runCandidate, type Setting } from "#shadow/candidate/candidate.ts";
import { decisionRegret, regretQuestions } from "#shadow/job/regret.ts";
import { regretSummary } from "#shadow/question/regret-summary.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { caseSetting, caseWorkload, namedProfile } from "./what-if-case.ts";

const SETTING: Setting = caseSetting(caseWorkload());

test("a decision forced to what was chosen changes nothing, whichever profile", () => {
  const setting: Setting = caseSetting(caseWorkload().slice(0, 150));
  for (const name of profileNames()) {
    const candidate = namedProfile(name);
    const base = runCandidate(setting, candidate);
    const index = 97;
    const chosen = setting.endpoints[base.endpoint[index]!];
    assert.ok(chosen !== undefined, name);
    const forced = new Map([[requestId(index), chosen.id]]);
    const again = runCandidate(setting, candidate, { forced });
    for (const column of ["ttftMicros", "e2eMicros", "endpoint", "cachedTokens"] as const)
      assert.deepEqual(again[column], base[column], `${name} ${column}`);
  }
});

test("regret is what forcing another endpoint brings, on the same requests", () => {
  const candidate = namedProfile("gnomon");
  const outcome = runCandidate(SETTING, candidate);
  const questions = regretQuestions(candidate, outcome, 8, 2, 5);
  assert.equal(new Set(questions.map(({ request }) => request)).size, 8);
  for (const question of questions) {
    const found = decisionRegret(SETTING, question);
    assert.ok(found !== undefined);
    const [own, ...others] = found.choices;
    assert.equal(own!.endpoint, found.chosen);
    assert.equal(others.length, 2);
    assert.ok(own!.outcome!.affected === 0 && own!.outcome!.windowChangeMicros === 0);
    const best = Math.min(...others.map(({ outcome: came }) => came!.e2eMicros));
    assert.equal(found.regretMicros, Math.max(0, own!.outcome!.e2eMicros - best));
    assert.ok(found.windowRegretMicros >= 0);
  }
});

test("the whole workload fits the slice here, and so regret is that of the run itself", () => {
  const candidate = namedProfile("lmetric");
  const open: Setting = {
    ...SETTING,
    workload: [...SETTING.workload].filter(({ turn }) => turn === 0).map(renumbered),
  };
  const outcome = runCandidate(open, candidate);
  for (const question of regretQuestions(candidate, outcome, 5, 1, 2)) {
    assert.ok(question.around.length <= open.workload.length);
    // Requests more than 200 after the decision are not there, and cannot have changed what came before them.
    const found = decisionRegret(open, question);
    assert.ok(found !== undefined);
    assert.equal(found.chosen, open.endpoints[outcome.endpoint[question.request]!]!.id);
    const [own, second] = found.choices;
    assert.equal(own!.outcome!.ttftMicros, outcome.ttftMicros[question.request]);
    const forced = new Map([[requestId(question.request), second!.endpoint]]);
    const whole = runCandidate(open, candidate, { forced });
    assert.equal(second!.outcome!.ttftMicros, whole.ttftMicros[question.request]);
  }
});

test("a policy that piles up is reported as such", async () => {
  const answer = await whatIf({
    setting: SETTING,
    inForce: namedProfile("gnomon"),
    candidates: [namedProfile("always-busiest")],
    observed: undefined,
    regret: { decisions: 12, alternatives: 2 },
    threadsMax: 1,
  });
  const of = (name: string) => answer.candidates.find((one) => one.name === name)?.regret;
  const [good, bad] = [of("gnomon"), of("always-busiest")];
  assert.equal(good?.decisions, 12);
  assert.ok(good !== undefined && bad !== undefined);
  assert.ok(bad.regret!.mean > 3 * good.regret!.mean, JSON.stringify([good, bad]));
  assert.ok(bad.better > good.better && bad.worst.length > 0, JSON.stringify([good, bad]));
  assert.equal(regretSummary([undefined]).decisions, 0);
});

test("every request is answered once, forced or not, and threads change no byte of an answer", async () => {
  const residuals = {
    windowMicros: 2e6,
    windows: [[0.1, -0.1, 0.05, -0.05]],
    levelError: 0.05,
    delayError: 0,
    prefillError: 0,
  };
  // Enough work for two threads.
  const setting = { ...SETTING, residuals };
  const ask = (threadsMax: number) =>
    whatIf({
      setting,
      inForce: namedProfile("gnomon"),
      candidates: ["round-robin", "random"].map(namedProfile),
      observed: undefined,
      replicas: 10,
      regret: { decisions: 3, alternatives: 1 },
      threadsMax,
    });
  const alone = await ask(1);
  for (const { completed } of alone.candidates) assert.equal(completed, setting.workload.length);
  assert.equal(JSON.stringify(await ask(2)), JSON.stringify(alone));
});

function renumbered<T extends { readonly index: number }>(request: T, index: number): T {
  return { ...request, index };
}
