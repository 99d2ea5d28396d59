import assert from "node:assert/strict";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Judge } from "#core/rollout/judge/judge.ts";
import { setImmediate } from "node:timers/promises";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { switchbackArm } from "#core/rollout/assignment.ts";
import { Router } from "#core/router.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { Intake } from "#live/base/intake.ts";
import type { PolicyOutcome } from "#live/admin/policy-admin.ts";
import { policyOf } from "#serve/policy/policy.ts";
import { policyFromDocument } from "#serve/policy/policy-admin.ts";
import { PolicyKeeper } from "#serve/policy/policy-keeper.ts";
import { defaultGuardrails } from "#serve/rollout/guardrails.ts";
import { RolloutKeeper } from "#serve/rollout/rollout-keeper.ts";
import { RolloutMemory } from "#serve/rollout/rollout-memory.ts";
import { journalsFrom, KeptJournal } from "#serve/state/kept-journal.ts";
import { StateFolder } from "#serve/state/state-folder.ts";
import type { SharedStore } from "#serve/state/shared-store.ts";
import { servePlan } from "../../../src/cli/serve/serve-options.ts";
import { DESIGNS, planOf } from "../../core/rollout/rollout-case.ts";
import { request } from "../../core/state.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { MemoryStore } from "../state/memory-store.ts";

const SECOND = 1_000_000;
const PLAN = servePlan({ set: ["routing.profile=gnomon"], endpoint: ["http://127.0.0.1:9"] }, {});
const ENDPOINTS = ["a", "b"];

interface Host {
  readonly keeper: RolloutKeeper;
  readonly policies: PolicyKeeper;
  readonly router: Router;
  readonly inputs: Input[];
  readonly faults: FaultEvent[];
  /** Phases at each time that all rollouts were shown. */
  readonly followed: string[];
  /** How often policies might be asked for again. */
  takenBack(): number;
  /** So long passes, with a look at the end. */
  pass(micros: number): void;
  /** Requests that come now and end as each is told, so long after. */
  ask(count: number, millisOf: (arm: string) => number | "never", outcome?: Outcome, overMicros?: number): void;
}

let replicas = 1;

/** A keeper over a real router on a clock that stands, as a gateway has it. */
function host(
  folder?: StateFolder,
  wallStartMicros = 1_000 * SECOND,
  store?: SharedStore,
  { promoted, replica = `replica-${replicas++}` }: { readonly promoted?: string; readonly replica?: string } = {},
): Host {
  let at = 0;
  let asked = 0;
  let takenBack = 0;
  const profiles = { gnomon: PLAN.profile.spec };
  const router = new Router({
    seed: 1,
    profiles,
    defaultProfile: "gnomon",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: SECOND,
  });
  const inputs: Input[] = [];
  const faults: FaultEvent[] = [];
  const followed: string[] = [];
  const intake = new Intake(router);
  intake.listen({ accepted: (input) => void inputs.push(input) });
  const policies: PolicyKeeper = new PolicyKeeper({
    start: policyOf(PLAN, PLAN.config),
    historyMax: 8,
    apply: () => {},
    objections: (...policies) => keeper.objections(...policies),
    giveWay: (...change) => keeper.giveWay(...change),
    report: () => {},
  });
  const report = (event: FaultEvent) => void faults.push(event);
  const keeper: RolloutKeeper = new RolloutKeeper({
    intake,
    now: () => at,
    memory: new RolloutMemory({ folder, wallStartMicros, report }),
    lookMillis: 1000,
    keptMax: 4,
    bytesMax: 65_536,
    policy: () => policies.inForce,
    store,
    replica,
    promote: (_state, arm) =>
      arm === "control" ? [] : offerMerge(policies, { routing: { profile: "llm-d" } }, "rollout"),
    ...(promoted !== undefined && { hasPromoted: (_rollout: string, arm: string) => arm === promoted }),
    report,
    takenBack: () => void takenBack++,
    followed: (book) => void followed.push(book.map(({ phase }) => phase).join()),
  });
  for (const id of ENDPOINTS) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  const pass = (micros: number): void => {
    at += micros;
    keeper.tick();
  };
  const ask: Host["ask"] = (count, millisOf, outcome = "ok", overMicros = 0): void => {
    const since = at;
    for (let i = 0; i < count; i++) {
      const at = since + Math.floor((i * overMicros) / count);
      const id = `r${asked++}`;
      const decision = intake.accept({ kind: "request-arrived", at, request: request({ id, session: id }) });
      const millis = millisOf(decision.rollout?.arm ?? "");
      if (millis === "never") continue;
      intake.accept({ kind: "first-token", at: at + millis * 1000, requestId: id });
      const counts = { promptTokens: 64, cachedTokens: 0, outputTokens: 4 };
      intake.accept({ kind: "request-finished", at: at + millis * 1000, requestId: id, outcome, ...counts });
    }
  };
  return { keeper, policies, router, inputs, faults, followed, takenBack: () => takenBack, pass, ask };
}

function offerMerge(policies: PolicyKeeper, document: object, source = "admin", force = false): readonly string[] {
  const outcome = offered(policies, document, source, force);
  return outcome.outcome === "refused" ? outcome.problems : [];
}

function offered(policies: PolicyKeeper, document: object, source: string, force: boolean): PolicyOutcome {
  return policies.offer({
    source,
    by: "test",
    note: "",
    force,
    read: (ground) => policyFromDocument(document, "merge", ground, PLAN.config, {}),
  });
}

const document = (more: object = {}) => ({
  name: "try",
  arms: [{ name: "control" }, { name: "other", profile: "llm-d" }],
  design: { kind: "split", by: "session", windowMillis: 10_000 },
  baselineMillis: 0,
  guardrails: [{ figure: "ttft.p90", relativeMax: 2, samplesMin: 10 }],
  ...more,
});

const BY = { by: "test", dryRun: false };

async function started(made: Host, more: object = {}): Promise<void> {
  const outcome = await made.keeper.start(document(more), BY);
  assert.equal(outcome.outcome, "applied", JSON.stringify(outcome));
}

const phaseOf = ({ router }: Host) => router.rollouts.book.map(({ phase }) => phase).join();

function folderOf(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "gnomon-state-"));
  // Something may still be written there.
  t.after(() => rm(path, { recursive: true, maxRetries: 10 }));
  return path;
}

/** A host that stands for one that was killed writes no more: nothing lies beside the file that it is to replace. */
async function nothingWritten(path: string): Promise<void> {
  for (let idle = 0; idle < 20; idle++) {
    if (readdirSync(path).some((file) => /\.json\.[0-9a-f]{8}$/.test(file))) idle = 0;
    await setImmediate();
  }
}

/** Requests second by second while it runs, with a look after each. */
function last(made: Host, seconds: number, count: number, millisOf: Parameters<Host["ask"]>[1]): void {
  for (let i = 0; i < seconds && phaseOf(made) === "running"; i++) {
    made.ask(count, millisOf, "ok", SECOND);
    made.pass(SECOND);
  }
}

test("a guardrail that is surely crossed takes it back at the next look, not one bad second; the policy decides from then on", async () => {
  const made = host();
  await started(made);
  const worse = (arm: string) => (arm === "other" ? 900 : 100);
  last(made, 1, 12, worse);
  last(made, 1, 60, () => 100);
  assert.equal(phaseOf(made), "running");
  assert.equal(made.keeper.view().rollouts[0]?.guardrails[0]?.crossed, false);
  last(made, 6, 60, worse);
  assert.equal(phaseOf(made), "rolled-back");
  const [view] = made.keeper.view().rollouts;
  assert.equal(view?.by, "judge");
  assert.match(view.reason, /^other: ttft\.p90 is 0\.\d+ s, at least 0\.\d+ s: above 0\.\d+ s, 2 times/);
  assert.ok(view.guardrails.some(({ crossed }) => crossed));
  assert.equal(made.faults.at(-1)?.kind, "rollout-taken-back");
  made.ask(10, (arm) => (arm === "" ? 1 : assert.fail("it has an arm")));
});

test("a document without limits has those by default, all of them shown before the first request", async () => {
  const made = host();
  const { guardrails: _, ...without } = document();
  assert.equal((await made.keeper.start(without, BY)).outcome, "applied");
  const { guardrails } = judged(made);
  const shown = guardrails.map(({ figure, limit, crossed }) => [figure, limit, crossed] as const);
  const whole = defaultGuardrails().filter(({ each }) => each === undefined);
  const expected = whole.map(({ figure }) => figure).sort();
  assert.deepEqual(shown.map(([figure]) => figure).sort(), expected);
  assert.ok(shown.every(([, , crossed]) => !crossed));
});

test("an arm whose requests never come back is taken back by what waits there", async () => {
  const made = host();
  await started(made);
  last(made, 1, 12, (arm) => (arm === "other" ? "never" : 100));
  assert.equal(phaseOf(made), "running");
  last(made, 5, 30, (arm) => (arm === "other" ? "never" : 100));
  assert.equal(phaseOf(made), "rolled-back");
});

test("an arm without requests, or one that is measured or predicted to be worse, is promoted only even so, and the answer has why", async () => {
  const promoted = (made: Host, more: object = {}) =>
    made.keeper.step({ rollout: "try", step: "promote", arm: "other", by: "test", ...more });
  const why = async (made: Host) => {
    const outcome = await promoted(made);
    assert.equal(phaseOf(made), "running");
    return outcome.outcome === "refused" ? outcome.problems.join("; ") : outcome.outcome;
  };
  const untouched = host();
  await started(untouched);
  assert.match(
    await why(untouched),
    /^promote: other had no request; --even-so \(evenSo: true\) promotes it all the same$/,
  );
  const predicted = host();
  const predictions = [{ arm: "other", metric: "e2e", figure: "mean", lowMillis: 20, highMillis: 80 }];
  await started(predicted, { predictions, guardrails: [] });
  last(predicted, 1, 60, () => 100);
  assert.equal(
    await why(predicted),
    "promote: other is predicted to be worse: e2e.mean +20 to +80 ms; --even-so (evenSo: true) promotes it all the same",
  );
  const worse = host();
  await started(worse, { guardrails: [] });
  last(worse, 10, 60, (arm) => (arm === "other" ? 200 : 100));
  assert.match(await why(worse), /promote: other is measured to be worse: ttft\.mean \+\d/);
  assert.equal((await promoted(worse, { evenSo: true })).outcome, "applied");
  const better = host();
  await started(better, { guardrails: [] });
  last(better, 10, 60, (arm) => (arm === "other" ? 90 : 100));
  assert.equal((await promoted(better)).outcome, "applied");
});

test("what contradicts a prediction beyond its interval pauses it and is reported; people alone promote", async () => {
  const made = host();
  const predictions = [{ arm: "other", metric: "ttft", figure: "mean", lowMillis: -90, highMillis: -80 }];
  await started(made, { predictions, guardrails: [] });
  for (let i = 0; i < 40; i++) {
    made.ask(20, (arm) => (arm === "other" ? 130 : 100) + (i % 3));
    made.pass(SECOND);
  }
  assert.equal(phaseOf(made), "paused");
  const [view] = made.keeper.view().rollouts;
  assert.match(view?.reason ?? "", /other: ttft\.mean contradicts the prediction: measured 0\.0\d+ to 0\.0\d+ s/);
  assert.equal(view?.predictions[0]?.verdict, "contradicted");
  made.ask(5, (arm) => (arm === "control" ? 1 : assert.fail(`paused, it is on ${arm}`)));
  const outcome = await made.keeper.step({ rollout: "try", step: "promote", arm: "other", evenSo: true, by: "test" });
  assert.equal(outcome.outcome, "applied");
  assert.deepEqual([phaseOf(made), made.policies.version], ["promoted", 2]);
  assert.equal(made.policies.inForce.profile.name, "llm-d");
});

test("bad documents and steps are refused with path and accepted values, and nothing reaches the router", async () => {
  const made = host();
  const before = made.inputs.length;
  const wrong: readonly [object, RegExp][] = [
    [{ design: { kind: "swichback" } }, /design\.kind: expected one of switchback/],
    [{ arms: [{ name: "control" }] }, /arms: /],
    [{ arms: [{ name: "a" }, { name: "b", profile: "nobody" }] }, /arms\[1\]\.profile: /],
    [{ design: { kind: "switchback", windowMillis: 10, washoutMillis: 10 } }, /washoutMillis/],
    [{ design: { kind: "pools", label: "pool" } }, /arms\[0\]\.pool: expected a value of the label/],
    [{ guardrails: [{ figure: "ttft.p90" }] }, /guardrails\[0\]/],
    [
      { predictions: [{ arm: "control", metric: "ttft", lowMillis: 0, highMillis: 1 }] },
      /predictions\[0\]\.arm: expected/,
    ],
    [{ nme: "x" }, /nme: expected one of name,/],
  ];
  for (const [more, problem] of wrong) {
    const outcome = await made.keeper.start(document(more), BY);
    assert.ok(outcome.outcome === "refused", JSON.stringify(more));
    assert.match(outcome.problems.join("; "), problem);
  }
  assert.equal((await made.keeper.start(document(), { by: "", dryRun: true })).outcome, "checked");
  const step = await made.keeper.step({ rollout: "gone", step: "pause", by: "" });
  assert.ok(step.outcome === "refused" && /rollout "gone": there is none/.test(step.problems.join()));
  assert.equal(made.inputs.length, before);
});

test("never two on one model: entries of the configuration wait for their turn, each is started once", async () => {
  const made = host();
  const [first, second] = [document({ name: "one" }), document({ name: "two", cooldownMillis: 0 })];
  made.keeper.follow([first, second]);
  made.pass(SECOND);
  assert.deepEqual(
    made.router.rollouts.book.map(({ plan }) => plan.name),
    ["one"],
  );
  assert.match(made.faults.at(-1)?.detail ?? "", /two: rollout two: one is running for all models/);
  const refused = await made.keeper.start(document({ name: "three" }), BY);
  assert.ok(refused.outcome === "refused" && /one is running/.test(refused.problems.join()));
  const faults = made.faults.length;
  made.pass(SECOND);
  assert.equal(made.faults.length, faults, "reported once");
  await made.keeper.step({ rollout: "one", step: "promote", arm: "control", by: "test" });
  made.pass(SECOND);
  assert.equal(phaseOf(made), "promoted,running");
  made.keeper.follow([first, second]);
  made.pass(SECOND);
  assert.equal(made.router.rollouts.book.length, 2);
});

test("an absolute limit is judged in the first window; no policy changes what is compared", async () => {
  const made = host();
  const design = { kind: "switchback", windowMillis: 10_000, washoutMillis: 0 };
  const isOtherFirst = (seed: number) => switchbackArm({ ...planOf(DESIGNS[0]!, 2, seed), name: "try" }, 0) === 1;
  const seed = Array.from({ length: 100 }, (_, one) => one).find(isOtherFirst);
  const guardrails = [{ figure: "ttft.p90", absoluteMaxMillis: 500, samplesMin: 10 }];
  await started(made, { baselineMillis: 8000, design, seed, guardrails });
  for (let i = 0; i < 7; i++) {
    made.ask(20, () => 100, "ok", SECOND);
    made.pass(SECOND);
  }
  assert.equal(phaseOf(made), "planned");
  assert.deepEqual(offerMerge(made.policies, { limits: { attemptsMax: 2 } }), []);
  made.pass(SECOND);
  assert.equal(phaseOf(made), "running");
  const scorers = [{ plugin: "queue-depth", weight: 1 }];
  const problems = offerMerge(made.policies, { profiles: { "llm-d": { extends: "gnomon", scorers } } });
  assert.match(problems.join(), /profiles\.llm-d: expected it as it is while rollout try compares it/);
  last(made, 5, 20, (arm) => (arm === "other" ? 900 : assert.fail(arm)));
  assert.equal(phaseOf(made), "rolled-back");
});

test("what a rollout is made beside changes by force alone, which rolls it back by name; all else changes under it", async () => {
  for (const baselineMillis of [0, 8000]) {
    for (const change of [
      { routing: { profile: "round-robin" } },
      { profiles: { "llm-d": { extends: "gnomon", scorers: [{ plugin: "queue-depth", weight: 1 }] } } },
    ]) {
      const made = host();
      await started(made, { baselineMillis });
      const phase = phaseOf(made);
      const [path] = "routing" in change ? ["routing.profile"] : ["profiles.llm-d"];
      const [problem = "", ...more] = offerMerge(made.policies, change);
      assert.ok(problem.startsWith(`${path}: expected it as it is while rollout try compares it`), problem);
      assert.deepEqual([more, phaseOf(made), made.policies.version], [[], phase, 1]);
      assert.deepEqual(
        offerMerge(made.policies, { limits: { attemptsMax: 2 }, routing: { models: { m: "llm-d" } } }),
        [],
      );
      assert.deepEqual([phaseOf(made), made.policies.version], [phase, 2]);
      const forced = offered(made.policies, change, "admin", true);
      const became = baselineMillis === 0 ? "rolled back" : "removed before it began; another one needs another name";
      assert.deepEqual(forced.outcome === "applied" ? forced.gaveWay : forced, [`try: ${became}`]);
      // One that has not begun is gone.
      assert.deepEqual([phaseOf(made), made.policies.version], [baselineMillis === 0 ? "rolled-back" : "", 3]);
      assert.match(made.faults.at(-1)?.detail ?? "", new RegExp(`^try, .* by test: ${path} had to change$`));
      // It is over, and stands in the way of nothing any more.
      const next = offered(made.policies, { routing: { profile: "gnomon" } }, "admin", true);
      assert.deepEqual([next.outcome === "refused", "gaveWay" in next], [false, false]);
    }
  }
});

test("a keeper that starts again over the same folder goes on where it was: windows, arms, counts, steps", async (t) => {
  const path = folderOf(t);
  const made = host(new StateFolder(path), 1_000 * SECOND);
  await started(made);
  made.ask(60, () => 100);
  made.pass(13 * SECOND);
  await made.keeper.end();
  const [before] = made.keeper.view().rollouts;
  assert.equal(before?.window?.number, 1);

  // Its clock begins 20 s after the other's did.
  const again = host(new StateFolder(path), 1_020 * SECOND);
  again.keeper.restore();
  const [after] = again.keeper.view().rollouts;
  assert.equal(after?.window?.number, 2);
  assert.deepEqual(after?.arms, before?.arms);
  assert.deepEqual(after?.steps, before?.steps);
  assert.deepEqual(after?.intervals, before?.intervals);
  const armOf = ({ router }: Host, session: string) => {
    const at = 30 * SECOND;
    return router.accept({ kind: "request-arrived", at, request: request({ id: `again ${session}`, session }) }).rollout
      ?.arm;
  };
  for (let i = 0; i < 40; i++) assert.equal(armOf(again, `s${i}`), armOf(made, `s${i}`));
  assert.equal(again.inputs.filter(({ kind }) => kind === "rollout-restored").length, 1);
  await again.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  const third = host(new StateFolder(path), 1_040 * SECOND);
  third.keeper.restore();
  assert.equal(phaseOf(third), "rolled-back");
  assert.match(
    third.router.rollouts.rivalOf({ ...third.router.rollouts.book[0]!.plan, name: "next" }, 0) ?? "",
    /cooldown/,
  );
});

for (const [name, more] of Object.entries({
  split: {},
  switchback: { design: { kind: "switchback", windowMillis: 4_000, washoutMillis: 500 } },
})) {
  test(`what a kill loses of a ${name} is what was not written yet, however seldom all of it is written whole`, async (t) => {
    const path = folderOf(t);
    let killed = new StateFolder(path);
    let made = host(killed, 1_000 * SECOND);
    await started(made, more);
    let asked = 0;
    for (let life = 1; life <= 3; life++) {
      for (let i = 0; i < 6; i++) {
        made.ask(20, (arm) => (arm === "other" ? 150 : 100));
        asked += 20;
        made.pass(SECOND);
      }
      await killed.judge("try", { opening: "", failed: assert.fail }).flushed();
      await nothingWritten(path);
      const kept = made.keeper.view().rollouts[0]!;
      const saved = made.router.rollouts.watch("try")!.judge.saved();
      // The last line, a look, is cut off.
      const journal = join(
        path,
        readdirSync(path).find((file) => file.endsWith(".journal"))!,
      );
      truncateSync(journal, statSync(journal).size - 5);

      killed = new StateFolder(path);
      made = host(killed, (1_000 + 20 * life) * SECOND);
      made.keeper.restore();
      const [again] = made.keeper.view().rollouts;
      assert.deepEqual(
        again?.arms.map(({ total }) => total),
        kept.arms.map(({ total }) => total),
      );
      const restored = made.router.rollouts.watch("try")!.judge.saved();
      for (const part of ["totals", "sums", "closedUntil"] as const) {
        assert.deepEqual(restored[part], saved[part], part);
      }
      // What the look that was cut off had let go on waits for the next one.
      const { rules } = made.router.rollouts.spec("try")!;
      const { plan } = made.router.rollouts.watch("try")!.state;
      const [whole, less] = [saved, restored].map((one) => {
        const judge = new Judge({ plan, ...rules }, one);
        judge.advance(10_000 * SECOND);
        return judge.saved().clusters;
      });
      assert.deepEqual(less, whole, "clusters");
    }
    const counts = made.keeper.view().rollouts[0]!.arms.map(({ total }) => total.requests);
    const washedOut = name === "switchback" ? 3 * 20 * 2 : 0;
    assert.ok(counts[0]! + counts[1]! >= asked - washedOut && counts[0]! + counts[1]! <= asked, String(counts));
  });
}

test("a journal goes on in another one when all is written whole; what the system refuses is lost, counted and reported", async (t) => {
  const path = folderOf(t);
  const whole = join(path, "whole.json");
  const failed: string[] = [];
  const opening = "opening";
  const journal = () => new KeptJournal({ path: whole, opening, failed: (detail) => void failed.push(detail) });
  const first = journal();
  first.add("a");
  first.add("b");
  await first.flushed();
  assert.deepEqual(journalsFrom(whole, 0), ["opening", "a", "b", ""]);
  // A process that was killed is followed by one with a journal of its own.
  const second = journal();
  second.add("c");
  await second.replace((number) => String(number));
  second.add("d");
  await second.flushed();
  assert.deepEqual([readFileSync(whole, "utf8"), journalsFrom(whole, 2)], ["2", ["opening", "d", ""]]);
  assert.deepEqual(journalsFrom(whole, 0), ["opening", "d", ""]);

  mkdirSync(`${whole}.3.journal`);
  const third = new KeptJournal({ path: whole, opening, failed: (detail) => void failed.push(detail) });
  assert.deepEqual(failed, []);
  rmSync(`${whole}.3.journal`, { recursive: true });
  mkdirSync(`${whole}.4.journal`);
  third.add("e");
  await third.flushed();
  assert.match(failed.join(), /EISDIR/);
  assert.equal(third.lost, 2);
  rmSync(`${whole}.4.journal`, { recursive: true });
  third.add("f");
  await third.flushed();
  assert.deepEqual(journalsFrom(whole, 4), ["", "opening", "f", ""]);
  third.add("x".repeat(20 * 2 ** 20));
  assert.equal(third.lost, 3);
});

/** A look at each, with all that it has them exchange. */
async function lookAll(hosts: readonly Host[], micros = 0): Promise<void> {
  for (const one of hosts) {
    one.pass(micros);
    for (let i = 0; i < 8; i++) await setImmediate();
  }
}

test("replicas that share a store run one rollout in step: the same arms, and what one takes back is back everywhere", async () => {
  const store = new MemoryStore();
  const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_007 * SECOND, store)];
  await started(one);
  await lookAll([other]);
  assert.deepEqual([phaseOf(one), phaseOf(other)], ["running", "running"]);
  const armsOf = ({ router }: Host, at: number) =>
    Array.from({ length: 40 }, (_, i) => {
      const asked = request({ id: `same ${i}`, session: `s${i}` });
      return router.accept({ kind: "request-arrived", at, request: asked }).rollout;
    });
  // At one wall time: their clocks began 7 s apart.
  assert.deepEqual(armsOf(other, 25 * SECOND), armsOf(one, 32 * SECOND));
  const refused = await other.keeper.start(document({ name: "second" }), BY);
  assert.ok(refused.outcome === "refused" && /try is running/.test(refused.problems.join()));
  await other.keeper.step({ rollout: "try", step: "promote", arm: "other", evenSo: true, by: "test" });
  await lookAll([one]);
  assert.deepEqual([phaseOf(one), phaseOf(other)], ["promoted", "promoted"]);
  assert.deepEqual([one.policies.inForce.profile.name, other.policies.inForce.profile.name], ["llm-d", "llm-d"]);
  assert.deepEqual(
    one.keeper.view().rollouts[0]?.steps.map(({ step }) => step),
    ["start", "promote"],
  );
});

test("one that comes later, or comes back with nothing, runs the rollout that the others run, and its own file does not begin it anew", async () => {
  const store = new MemoryStore();
  const one = host(undefined, 1_000 * SECOND, store);
  await started(one);
  await lookAll([one], 5 * SECOND);
  const late = host(undefined, 1_030 * SECOND, store);
  late.keeper.follow([document()]);
  late.pass(0);
  assert.equal(phaseOf(late), "", "it has not asked the store yet");
  await lookAll([late, one]);
  const started2 = ({ router }: Host, start: number) => router.rollouts.book.map((state) => state.startedAt + start);
  assert.deepEqual(started2(late, 1_030 * SECOND), started2(one, 1_000 * SECOND));
  assert.equal(late.keeper.view().rollouts.length, 1);
});

test("one that starts later learns a promotion that stands, and none that a later policy has overtaken or that was made beside another policy", async () => {
  const store = new MemoryStore();
  const one = host(undefined, 1_000 * SECOND, store);
  await started(one);
  await lookAll([one], SECOND);
  await one.keeper.step({ rollout: "try", step: "promote", arm: "other", evenSo: true, by: "test" });
  await lookAll([one], SECOND);
  const profileOf = ({ policies }: Host) => policies.inForce.profile.name;

  const late = host(undefined, 1_500 * SECOND, store);
  await lookAll([late, late]);
  assert.deepEqual([phaseOf(late), profileOf(late), late.policies.version], ["promoted", "llm-d", 2]);
  await lookAll([late, one, late], SECOND);
  assert.equal(late.policies.version, 2, "made once");

  const another = host(undefined, 1_500 * SECOND, store);
  offerMerge(another.policies, { routing: { profile: "round-robin" } });
  await lookAll([another, another]);
  assert.deepEqual([phaseOf(another), profileOf(another)], ["", "round-robin"]);

  offerMerge(late.policies, { routing: { profile: "gnomon" } });
  await lookAll([late, one, late], SECOND);
  assert.equal(profileOf(late), "gnomon");
  const latest = host(undefined, 1_600 * SECOND, store);
  await lookAll([latest, one, latest, late], SECOND);
  assert.deepEqual([phaseOf(latest), profileOf(latest)], ["", "gnomon"]);
  const [text] = [await store.read("rollouts")];
  await lookAll([one, late, latest, one, late], SECOND);
  assert.deepEqual(await store.read("rollouts"), text, "nobody writes what is there");
});

test("one that starts later lets a rollout cool down that others took back", async () => {
  const store = new MemoryStore();
  const one = host(undefined, 1_000 * SECOND, store);
  await started(one, { cooldownMillis: 100_000 });
  await one.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  const [late, latest] = [host(undefined, 1_050 * SECOND, store), host(undefined, 1_150 * SECOND, store)];
  await lookAll([late, latest, late, latest]);
  const refused = await late.keeper.start(document({ name: "next" }), BY);
  assert.ok(refused.outcome === "refused" && /its cooldown ends in 50 s/.test(refused.problems.join()));
  await started(latest, { name: "next" });
});

test("while the store is away each goes on by itself; what was taken back meanwhile is back everywhere afterwards, also in an empty store", async () => {
  const store = new MemoryStore();
  const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_000 * SECOND, store)];
  await started(one);
  await lookAll([other]);
  store.isAway = true;
  store.empty();
  await one.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  // Later than the rollback; what is over stays over all the same.
  other.pass(SECOND);
  await other.keeper.step({ rollout: "try", step: "pause", by: "test" });
  await lookAll([one, other, one, other]);
  assert.deepEqual([phaseOf(one), phaseOf(other)], ["rolled-back", "paused"]);
  const failures = (of: Host) => of.faults.filter(({ kind }) => kind === "state-failed").length;
  assert.deepEqual([failures(one), failures(other)], [1, 1], "said once");
  store.isAway = false;
  await lookAll([other, one, other]);
  assert.deepEqual([phaseOf(one), phaseOf(other)], ["rolled-back", "rolled-back"]);
  const [text] = [await store.read("rollouts")];
  await lookAll([one, other, one, other], SECOND);
  assert.deepEqual(await store.read("rollouts"), text, "nobody writes what is there");
});

test("a store that is away is nothing to a replica without a rollout: what is shared of policies has its own line", async () => {
  const store = new MemoryStore();
  const one = host(undefined, 1_000 * SECOND, store);
  const away = async (): Promise<string[]> => {
    one.faults.length = 0;
    store.isAway = true;
    await lookAll([one, one]);
    store.isAway = false;
    await lookAll([one, one]);
    return one.faults.map(({ kind }) => kind);
  };
  assert.deepEqual(await away(), []);
  await started(one);
  await lookAll([one]);
  const lines = await away();
  assert.deepEqual(lines.toSorted(), ["rollout-step", "sharing-lost", "sharing-recovered", "state-failed"]);
});

test("two replicas that begin rollouts of one model at the same time end with one: that which the store had first", async () => {
  const store = new MemoryStore();
  const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_000 * SECOND, store)];
  store.isAway = true;
  await started(one);
  await started(other, { name: "second" });
  store.isAway = false;
  await lookAll([one, other, one, other], SECOND);
  assert.deepEqual([phaseOf(one), phaseOf(other)], ["running,rolled-back", "rolled-back,running"]);
  assert.equal(other.router.rollouts.book[0]?.reason, "try was started by another replica first");
});

test("what a rollout stood in the way of may be asked for again once it was rolled back, and not after a promotion", async () => {
  const store = new MemoryStore();
  const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_000 * SECOND, store)];
  await started(one, { cooldownMillis: 0 });
  await lookAll([other]);
  await one.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  await lookAll([other]);
  assert.deepEqual([one.takenBack(), other.takenBack()], [1, 1]);
  await started(one, { name: "next" });
  await one.keeper.step({ rollout: "next", step: "promote", arm: "control", by: "test" });
  assert.equal(one.takenBack(), 1);
});

const judged = ({ keeper }: Host) => keeper.view().rollouts[0]!;
/** What every replica is to show of a rollout alike. */
function shown(made: Host) {
  const { arms, verdict, differences, guardrails, phase, scope, windows } = judged(made);
  const counts = arms.map(({ total: { requests, failed, times } }) => ({ requests, failed, times }));
  return { counts, verdict, differences, guardrails, phase, scope, windows };
}

const countOf = (made: Host) => judged(made).arms.reduce((sum, { total }) => sum + total.requests, 0);

/** Looks of all, at one wall time, until what all saw has reached all. */
async function settle(hosts: readonly Host[], micros = 0): Promise<void> {
  for (const one of hosts) one.pass(micros);
  for (let i = 0; i < 3; i++) {
    for (const one of hosts) one.pass(0);
    for (let turn = 0; turn < 40; turn++) await setImmediate();
  }
}

test("replicas have one judge: counts add up, each shows the same, and one of them takes its steps", async () => {
  const store = new MemoryStore();
  // Their clocks began at different times.
  const [one, other, third] = [0, 7, 23].map((after) => host(undefined, (1_000 + after) * SECOND, store)) as [
    Host,
    Host,
    Host,
  ];
  const all = [one, other, third];
  await started(one, { guardrails: [{ figure: "ttft.p90", relativeMax: 2, samplesMin: 10 }] });
  await settle(all, SECOND);
  assert.match(judged(one).scope, /^what \d gateways? sees?, judged by replica-/);
  let asked = 0;
  for (let i = 0; i < 6; i++) {
    one.ask(20, (arm) => (arm === "other" ? 130 : 100), "ok", SECOND);
    other.ask(10, (arm) => (arm === "other" ? 130 : 100), "ok", SECOND);
    asked += 30;
    await settle(all, SECOND);
  }
  assert.deepEqual(all.map(countOf), [asked, asked, asked]);
  assert.deepEqual(shown(other).verdict, shown(one).verdict);
  assert.deepEqual(shown(other).differences, shown(one).differences);
  assert.deepEqual(shown(other).counts, shown(one).counts);
  assert.deepEqual(shown(third), shown(other));
  // Harm that only one of them routes: it is the fleet's, and the step is made once.
  for (let i = 0; i < 8 && phaseOf(one) === "running"; i++) {
    other.ask(60, (arm) => (arm === "other" ? 900 : 100), "ok", SECOND);
    await settle(all, SECOND);
  }
  assert.deepEqual(all.map(phaseOf), ["rolled-back", "rolled-back", "rolled-back"]);
  const steps = all.map((each) => judged(each).steps.filter(({ by }) => by === "judge"));
  assert.equal(steps[0]!.length, 1);
  for (const each of steps) assert.deepEqual(each, steps[0]);
  const taken = all.map(({ faults }) => faults.filter(({ kind }) => kind === "rollout-taken-back").length);
  assert.equal(
    taken.reduce((sum, count) => sum + count, 0),
    1,
    "by one of them",
  );
});

test("without the store each judges its own share and shows it; afterwards nothing of what each saw is missing, and nothing counts twice", async () => {
  for (const isEmptied of [false, true]) {
    const store = new MemoryStore();
    const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_005 * SECOND, store)];
    await started(one, { guardrails: [] });
    await settle([one, other], SECOND);
    one.ask(10, () => 100);
    await settle([one, other], SECOND);
    store.isAway = true;
    one.ask(20, () => 100);
    other.ask(40, () => 100);
    await settle([one, other], SECOND);
    assert.deepEqual([countOf(one), countOf(other)], [30, 50]);
    assert.match(judged(one).scope, /^this gateway's own share alone: away$/);
    if (isEmptied) store.empty();
    store.isAway = false;
    // The lease of who took steps before ends first.
    await settle([one, other], 6 * SECOND);
    await settle([one, other], SECOND);
    await settle([one, other], SECOND);
    assert.deepEqual([countOf(one), countOf(other)], [70, 70], String(isEmptied));
    assert.deepEqual(shown(one), shown(other));
    // Who starts now has all of it.
    const late = host(undefined, 1_011 * SECOND, store);
    await settle([late], SECOND);
    await settle([one, other, late], SECOND);
    assert.equal(countOf(late), 70);
  }
});

test("what replicas judged together replays from the trace of any of them", async () => {
  const store = new MemoryStore();
  const [one, other] = [host(undefined, 1_000 * SECOND, store), host(undefined, 1_005 * SECOND, store)];
  await started(one, { guardrails: [] });
  await settle([one, other], SECOND);
  for (let i = 0; i < 4; i++) {
    one.ask(10, () => 100, "ok", SECOND);
    other.ask(10, () => 130, "ok", SECOND);
    await settle([one, other], SECOND);
  }
  const again = new Router({
    seed: 1,
    profiles: { gnomon: PLAN.profile.spec },
    defaultProfile: "gnomon",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: SECOND,
  });
  for (const input of one.inputs) again.accept(JSON.parse(JSON.stringify(input)) as Input);
  assert.deepEqual(again.rollouts.watch("try")!.judge.saved(), one.router.rollouts.watch("try")!.judge.saved());
});

test("a rollback that the disk refuses acts, answers at once that it is not kept, and is there after a restart once it could be written", async (t) => {
  const path = folderOf(t);
  const made = host(new StateFolder(path));
  await started(made);
  await made.keeper.end();
  const aside = `${path}-aside`;
  t.after(() => rm(aside, { recursive: true, force: true }));
  renameSync(path, aside);
  const since = performance.now();
  const outcome = await made.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  assert.ok(performance.now() - since < 900, "it waits for nothing");
  assert.ok(outcome.outcome === "applied");
  assert.match(outcome.unkept.join(), /^not on the disk, so a restart would not know of it: .*ENOENT/);
  assert.equal(phaseOf(made), "rolled-back");
  renameSync(aside, path);
  const phaseAfterRestart = () => {
    const again = host(new StateFolder(path));
    again.keeper.restore();
    return phaseOf(again);
  };
  assert.equal(phaseAfterRestart(), "running", "it was not written");
  await until("it is written", () => /rolled-back/.test(readFileSync(join(path, "rollouts.json"), "utf8")));
  assert.equal(phaseAfterRestart(), "rolled-back");
});

test("orders act and answer in about a second while the store answers nothing, and name it", async () => {
  const store = new MemoryStore();
  const made = host(undefined, 1_000 * SECOND, store);
  store.isSilent = true;
  const since = performance.now();
  const outcome = await made.keeper.start(document(), BY);
  assert.ok(outcome.outcome === "applied" && performance.now() - since < 3_000);
  assert.match(outcome.unkept.join(), /^other gateways may not know of it: /);
  // Looks go on meanwhile, each with a question of its own.
  const rolledBackSince = performance.now();
  const looks = setInterval(() => made.keeper.tick(), 10);
  const answer = made.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  assert.equal(phaseOf(made), "rolled-back", "before the answer");
  assert.equal((await answer).outcome, "applied");
  clearInterval(looks);
  assert.ok(performance.now() - rolledBackSince < 2_000);
});

/** Another one over what a process that is killed now leaves in its folder, so long after. */
function killedNow(t: TestContext, path: string, seconds: number): { readonly made: Host; readonly path: string } {
  const left = folderOf(t);
  cpSync(path, left, { recursive: true });
  const made = host(new StateFolder(left), (1_000 + seconds) * SECOND);
  made.keeper.restore();
  return { made, path: left };
}

test("a kill right behind the answer of any order loses none: start, pause, resume, each step of a canary, rollback", async (t) => {
  let path = folderOf(t);
  let made = host(new StateFolder(path));
  const steps = () => made.keeper.view().rollouts[0]!.steps.map(({ step }) => step);
  const design = { kind: "canary", by: "request", windowMillis: 2_000, stepPercents: [25, 50, 100] };
  const outcome = await made.keeper.start(document({ design, guardrails: [], stepSamplesMin: 20 }), BY);
  assert.deepEqual(outcome.outcome === "applied" && outcome.unkept, []);
  let seconds = 0;
  const killed = (phase: string, expected: readonly string[]) => {
    ({ made, path } = killedNow(t, path, (seconds += 100)));
    assert.equal(phaseOf(made), phase);
    assert.deepEqual(steps(), expected);
  };
  killed("running", ["start"]);
  const done = ["start"];
  const order = async (step: "pause" | "resume" | "rollback", phase: string) => {
    const answer = await made.keeper.step({ rollout: "try", step, by: "test" });
    assert.deepEqual(answer.outcome === "applied" && answer.unkept, [], JSON.stringify(answer));
    done.push(step);
    killed(phase, done);
  };
  for (const canaryStep of [1, 2]) {
    for (let look = 0; look < 60 && made.router.rollouts.book[0]!.canaryStep < canaryStep; look++) {
      made.ask(200, () => 100, "ok", SECOND);
      made.pass(SECOND);
    }
    assert.equal(made.router.rollouts.book[0]!.canaryStep, canaryStep, "what was shown moves it");
    // Nobody waits for the judge's own steps: the next order's answer is behind them.
    done.push("advance");
    await order("pause", "paused");
    assert.equal(made.router.rollouts.book[0]!.canaryStep, canaryStep);
    await order("resume", "running");
    assert.equal(made.router.rollouts.book[0]!.canaryStep, canaryStep);
  }
  await order("rollback", "rolled-back");
});

test("a kill right behind the answer of any order of a canary's share, 5, 25, 50, 100 %, and of its promotion loses none", async (t) => {
  let path = folderOf(t);
  let made = host(new StateFolder(path));
  const stepPercents = [5, 25, 50, 100];
  await started(made, { design: { kind: "canary", windowMillis: 3_600_000, stepPercents }, guardrails: [] });
  const order = async (more: object, canaryStep: number, phase: string) => {
    const answer = await made.keeper.step({ rollout: "try", by: "test", ...more } as never);
    assert.deepEqual(answer.outcome === "applied" && answer.unkept, [], JSON.stringify(answer));
    ({ made, path } = killedNow(t, path, 10 + canaryStep));
    assert.deepEqual([phaseOf(made), made.router.rollouts.book[0]!.canaryStep], [phase, canaryStep]);
  };
  for (const canaryStep of [1, 2, 3]) await order({ step: "advance" }, canaryStep, "running");
  await order({ step: "promote", arm: "other", evenSo: true }, 3, "promoted");
});

test("what is open is shown first, and of the others the latest; what is under way cannot be removed", async () => {
  const made = host();
  for (const name of ["first", "second"]) {
    await started(made, { name, cooldownMillis: 0 });
    const refused = await made.keeper.remove(name);
    assert.ok(refused.outcome === "refused" && /promote it or roll it back/.test(refused.problems.join()));
    assert.equal(phaseOf(made).split(",").at(-1), "running");
    made.pass(SECOND);
    await made.keeper.step({ rollout: name, step: "rollback", by: "test" });
    made.pass(SECOND);
  }
  await started(made, { name: "open", model: "a", baselineMillis: 5_000 });
  const names = () => made.keeper.view().rollouts.map(({ name }) => name);
  for (const phase of ["planned", "running"]) {
    made.pass(3 * SECOND);
    assert.equal(made.keeper.view().rollouts[0]!.phase, phase);
    made.pass(SECOND);
    await started(made, { name: `beside ${phase}`, model: "b", cooldownMillis: 0 });
    await made.keeper.step({ rollout: `beside ${phase}`, step: "rollback", by: "test" });
    assert.equal(names()[0], "open");
  }
  assert.deepEqual(names(), ["open", "beside running", "beside planned", "second"]);
  assert.equal((await made.keeper.remove("second")).outcome, "applied");
  assert.deepEqual(names(), ["open", "beside running", "beside planned"]);
});

test("one that was removed is gone after a kill too, and its name is not given again", async (t) => {
  let path = folderOf(t);
  let made = host(new StateFolder(path));
  await started(made, { cooldownMillis: 0 });
  await made.keeper.step({ rollout: "try", step: "rollback", by: "test" });
  made.pass(SECOND);
  assert.equal((await made.keeper.remove("try")).outcome, "applied");
  for (const life of [1, 2]) {
    assert.equal(phaseOf(made), "");
    const again = await made.keeper.start(document(), BY);
    assert.ok(again.outcome === "refused" && /expected one that no rollout had/.test(again.problems.join()), `${life}`);
    ({ made, path } = killedNow(t, path, 100 * life));
  }
});

test("whoever follows all rollouts sees a promotion at once, and at every look", async () => {
  const made = host();
  await started(made);
  await made.keeper.step({ rollout: "try", step: "promote", arm: "other", evenSo: true, by: "test" });
  assert.equal(made.followed.at(-1), "promoted");
  made.followed.length = 0;
  made.pass(SECOND);
  assert.deepEqual(made.followed, ["promoted"]);
});

test("a promotion that a kill cut off is completed by a process whose clock is behind", async (t) => {
  const path = folderOf(t);
  const made = host(new StateFolder(path));
  made.pass(50 * SECOND);
  await started(made);
  await made.keeper.end();
  const again = host(new StateFolder(path), 1_000 * SECOND, undefined, { promoted: "other" });
  again.keeper.restore();
  assert.equal(phaseOf(again), "promoted");
});

test("a kill between the two files of a promotion leaves no half of it", async (t) => {
  // The policy has it, the rollout not.
  const path = folderOf(t);
  const made = host(new StateFolder(path));
  await started(made);
  await made.keeper.end();
  const again = host(new StateFolder(path), 1_020 * SECOND, undefined, { promoted: "other" });
  again.keeper.restore();
  assert.equal(phaseOf(again), "promoted");
  assert.equal(again.keeper.view().rollouts[0]?.by, "restart");
  // The rollout has it, the policy not.
  await again.keeper.end();
  const other = host(new StateFolder(path), 1_040 * SECOND, undefined, { promoted: "" });
  other.keeper.restore();
  assert.deepEqual([phaseOf(other), other.policies.inForce.profile.name], ["promoted", "llm-d"]);
  // Both have it, and another policy was set since.
  await other.keeper.end();
  const third = host(new StateFolder(path), 1_060 * SECOND, undefined, { promoted: "other" });
  third.keeper.restore();
  assert.deepEqual([phaseOf(third), third.policies.inForce.profile.name], ["promoted", "gnomon"]);
});

test("a damaged folder is reported and left alone; measures that are gone begin anew", async (t) => {
  const path = folderOf(t);
  const made = host(new StateFolder(path));
  await started(made);
  made.ask(60, () => 100);
  await made.keeper.end();
  const folder = new StateFolder(path);
  folder.forgetJudge("try");
  const anew = host(folder);
  anew.keeper.restore();
  assert.equal(anew.keeper.view().rollouts[0]?.arms[0]?.total.requests, 0);
  assert.equal(phaseOf(anew), "running");
  // What it still writes must not replace what is written next.
  await anew.keeper.end();
  // Of another version of the judge.
  const other = new StateFolder(path).judge("try", { opening: "{}", failed: assert.fail });
  await other.replace(() => '{"version":1,"judge":{},"agreements":[],"intervals":[]}');
  const older = host(new StateFolder(path));
  older.keeper.restore();
  assert.deepEqual([phaseOf(older), older.keeper.view().rollouts[0]?.arms[0]?.total.requests], ["running", 0]);
  assert.match(older.faults.at(-1)?.detail ?? "", /what was measured of try: version: expected 4, got 1/);
  for (const text of ['{"version":1,"rollouts":[{}],"ended":[]}', '{"version":9}', "{"]) {
    writeFileSync(join(path, "rollouts.json"), text);
    const damaged = host(new StateFolder(path));
    damaged.keeper.restore();
    assert.equal(phaseOf(damaged), "");
    assert.equal(damaged.faults.at(-1)?.kind, "state-failed");
  }
});

test("conversations are written as they come, and a pair that was cut off is left out", (t) => {
  const path = folderOf(t);
  const journal = new StateFolder(path).conversations;
  for (let i = 0; i < 10; i++) journal.add(i, 2 ** 52 + i);
  journal.flush();
  assert.deepEqual(journal.read().slice(-2), [9, 2 ** 52 + 9]);
  journal.close();
  truncateSync(join(path, "conversations"), 155);
  const again = new StateFolder(path).conversations;
  assert.equal(again.read().length, 18);
  again.add(77, 78);
  again.flush();
  assert.deepEqual(again.read().slice(-4), [8, 2 ** 52 + 8, 77, 78]);
  again.close();
});

test("only the latest text is on the disk, and whoever waits for an older one knows that it is", async (t) => {
  const path = folderOf(t);
  const { policy } = new StateFolder(path);
  await Promise.all(Array.from({ length: 50 }, (_, i) => policy.write(JSON.stringify({ i }))));
  assert.deepEqual(new StateFolder(path).readPolicy(), { i: 49 });
});

test("a rollout in five lines: a design by its kind, arms by their names, endpoints by a label", async () => {
  const short = { name: "try", design: "canary", arms: { control: null, other: "llm-d" }, baselineMillis: 0 };
  const made = host();
  assert.equal((await made.keeper.start(short, BY)).outcome, "applied");
  const long = host();
  const whole = {
    ...short,
    design: { kind: "canary" },
    arms: [{ name: "control" }, { name: "other", profile: "llm-d" }],
  };
  assert.equal((await long.keeper.start(whole, BY)).outcome, "applied");
  assert.deepEqual(made.router.rollouts.book[0]?.plan, long.router.rollouts.book[0]?.plan);
  assert.deepEqual(made.router.rollouts.spec("try")?.rules, long.router.rollouts.spec("try")?.rules);
  assert.equal(judged(made).design.kind, "canary");

  const engines = host();
  const byLabel = { name: "try", arms: { by: "version", control: "a", other: "b" }, baselineMillis: 0 };
  assert.equal((await engines.keeper.start(byLabel, BY)).outcome, "applied");
  const { design, arms } = judged(engines);
  assert.deepEqual([design.kind, design.label], ["pools", "version"]);
  assert.deepEqual(
    arms.map(({ name, pool, profile }) => [name, pool, profile]),
    [
      ["control", "a", "gnomon"],
      ["other", "b", "gnomon"],
    ],
  );

  const wrong: readonly [object, RegExp][] = [
    [{ ...short, design: "canery" }, /^design\.kind: expected one of switchback, .*canary/],
    [{ ...short, design: 7 }, /^design: expected a mapping/],
    [{ ...short, arms: { control: "gnomon" } }, /^arms: expected 2 to 8 arms, the control first, got a list of 1/],
    [
      { ...short, arms: { control: "gnomon", other: "nobody" } },
      /^arms\[1\]\.profile: expected .* got the unknown profile "nobody"/,
    ],
    [
      { ...short, arms: { control: "gnomon", other: 7 } },
      /^arms\[1\]\.profile: expected a string that is not empty, got 7/,
    ],
    [
      { ...byLabel, arms: { by: "version", control: "a", other: "a" } },
      /^arms\[1\]\.pool: expected a value of the label that no other arm has/,
    ],
  ];
  for (const [document, problem] of wrong) {
    const outcome = await host().keeper.start(document, BY);
    assert.ok(outcome.outcome === "refused", JSON.stringify(document));
    assert.match(outcome.problems.join("; "), problem);
  }
});
