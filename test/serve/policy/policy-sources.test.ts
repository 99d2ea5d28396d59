import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { servePlan } from "#cli/serve/serve-options.ts";
import { policyAdmin } from "#serve/policy/policy-admin.ts";
import { PolicyFileSource } from "#serve/policy/policy-file-source.ts";
import { policyOf } from "#serve/policy/policy.ts";
import { type PolicyChange, PolicyKeeper } from "#serve/policy/policy-keeper.ts";
import { pastPolicies, policiesText } from "#serve/policy/saved-policies.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";

const REQUEST = { by: "test", dryRun: false, ifVersion: undefined };

function folder(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-policy-sources-"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

function keeperOf(
  config: string | undefined,
  set: readonly string[] = [],
  objections: () => readonly string[] = () => [],
) {
  const plan = servePlan({ set, ...(config !== undefined && { config }) }, {});
  const changes: PolicyChange[] = [];
  const keeper = new PolicyKeeper({
    start: policyOf(plan, plan.config),
    historyMax: plan.config.policy.historyMax,
    apply: (change) => changes.push(change),
    objections,
    report: () => {},
  });
  return { plan, keeper, changes, admin: policyAdmin(keeper, plan.config, {}) };
}

const problemsOf = (outcome: object) => ("problems" in outcome ? (outcome.problems as readonly string[]) : []);

test("a document is checked whole: every problem has its path and what is accepted, and nothing changes", () => {
  const { admin, changes, keeper } = keeperOf(undefined);
  const wrong: readonly (readonly [document: unknown, said: RegExp])[] = [
    [
      { routing: { profile: "nobody" } },
      /^routing\.profile: expected one of .*gnomon.*, got the unknown profile "nobody"/,
    ],
    [{ routing: { models: { m: "/etc/passwd" } } }, /^routing\.models\.m: expected a shipped profile .* got the path/],
    [{ routing: { profilesAllowed: ["./x.yaml"] } }, /^routing\.profilesAllowed\[0\]: expected .* got the path/],
    [{ profiles: { p: { extends: "./x.yaml" } } }, /^profiles\.p\.extends: expected the name of a shipped profile/],
    [
      { profiles: { p: { extends: "llm-d", scorers: [{ plugin: "x", weight: 1 }] } } },
      /^profiles\.p\.scorers\[0\]\.plugin/,
    ],
    [
      { profiles: { p: { extends: "llm-d", picker: { plugin: "max-score", parameters: { epsilon: -1 } } } } },
      /^profiles\.p\.picker\.parameters\.epsilon: expected a number from 0 to 1, got -1/,
    ],
    [{ profiles: { p: {} } }, /^profiles\.p\.picker/],
    [{ limits: { attemptsMax: "many" } }, /^limits\.attemptsMax: expected an integer in \[1, 16\], got "many"/],
    [
      { limits: { sweepMillis: 20 } },
      /^limits\.sweepMillis: cannot change while the gateway runs, only at its start: it runs with 250, asked for is 20/,
    ],
    [{ routing: { seed: 9 } }, /^routing\.seed: cannot change while the gateway runs/],
    [{ listen: { port: 9 }, tokenizer: { kind: "character" } }, /^listen\.port: cannot change/],
    [{ nothing: 1 }, /^nothing: expected one of listen, .*unknown key "nothing"/],
    ["llm-d", /^policy: expected a mapping with routing, profiles or limits, got "llm-d"/],
    [[1], /^policy: expected a mapping .* got a list/],
  ];
  const before = JSON.stringify(keeper.view());
  for (const how of ["replace", "merge"] as const) {
    for (const [document, said] of wrong) {
      const outcome = admin.change(document, how, REQUEST);
      assert.equal(outcome.outcome, "refused", JSON.stringify(document));
      assert.match(problemsOf(outcome)[0] ?? "", said);
    }
  }
  assert.equal(JSON.stringify(keeper.view()), before);
  assert.deepEqual(changes, []);
  assert.equal(admin.history().refused.length, Math.min(32, 2 * wrong.length));
  const two = admin.change({ listen: { port: 9 }, tokenizer: { kind: "character" } }, "replace", REQUEST);
  assert.deepEqual(
    problemsOf(two).map((line) => line.split(":")[0]),
    ["listen.port", "tokenizer.kind"],
  );
});

test("what is read comes back: the policy in force may be sent again, is bounded in its history, and rolled back to", () => {
  const { admin, changes, keeper } = keeperOf(undefined, ["policy.historyMax=3"]);
  assert.equal(admin.change(keeper.view()!.document, "replace", REQUEST).outcome, "unchanged");
  const mine = { extends: "llm-d", scorers: [{ plugin: "queue-depth", weight: 5 }] };
  const made = admin.change({ routing: { profile: "mine" }, profiles: { mine } }, "merge", REQUEST);
  assert.deepEqual([made.outcome, made.version], ["applied", 2]);
  const { document, defaultProfile, profiles } = keeper.view()!;
  assert.deepEqual([defaultProfile, profiles], ["mine", ["gnomon", "mine"]]);
  assert.equal(admin.change(JSON.parse(JSON.stringify(document)), "replace", REQUEST).outcome, "unchanged");
  assert.equal(admin.change({ profiles: { gnomon: null } }, "merge", { ...REQUEST, dryRun: true }).outcome, "checked");
  assert.equal(keeper.version, 2);
  admin.change({ profiles: { gnomon: null } }, "merge", REQUEST);
  assert.deepEqual(keeper.view()!.profiles, ["mine"]);
  assert.equal(admin.rollback(2, REQUEST).outcome, "applied");
  assert.deepEqual(keeper.view()!.document, document);
  assert.equal(keeper.view()!.note, "rollback to 2");
  const { versions, forgotten } = admin.history();
  assert.deepEqual([versions.map(({ version }) => version), forgotten], [[4, 3, 2], 1]);
  assert.match(problemsOf(admin.rollback(1, REQUEST))[0]!, /expected one of the remembered versions 2 to 4, got 1/);
  assert.match(problemsOf(admin.rollback("4", REQUEST))[0]!, /^version: expected .* got "4"/);
  assert.equal(admin.change({ limits: { attemptsMax: 5 } }, "merge", { ...REQUEST, ifVersion: 3 }).outcome, "refused");
  assert.deepEqual(
    changes.map(({ version, source }) => [version, source]),
    [
      [2, "admin"],
      [3, "admin"],
      [4, "admin"],
    ],
  );
});

test("a file is followed however it is replaced, read whole or not at all, and takes nothing back that it did not say", async (t) => {
  const directory = folder(t);
  const file = join(directory, "config.yaml");
  const profile = join(directory, "mine.yaml");
  const text = (attemptsMax: number) => `routing: { profile: ${profile} }\nlimits: { attemptsMax: ${attemptsMax} }\n`;
  const weights = (weight: number) =>
    `name: mine\nextends: llm-d\nscorers: [{ plugin: queue-depth, weight: ${weight} }]\n`;
  writeFileSync(profile, weights(1));
  writeFileSync(file, text(2));
  const { plan, keeper, changes, admin } = keeperOf(file);
  const source = new PolicyFileSource({ configFile: file, reload: plan.reload!, running: plan.config, watchMillis: 5 });
  source.start(keeper.offer);
  t.after(() => source.stop());
  const attempts = () => changes.at(-1)?.policy.config.limits.attemptsMax;
  const counted = (outcome: string) =>
    keeper.counts().find((row) => row.outcome === outcome && row.source === "file")?.count;
  await until("the first look", () => counted("unchanged") === 1);
  writeFileSync(file, text(4));
  await until("written in place", () => attempts() === 4);
  writeFileSync(`${file}.new`, text(5));
  renameSync(`${file}.new`, file);
  await until("renamed over", () => attempts() === 5);
  // As a ConfigMap: the file becomes a link into a folder that is swapped.
  const swap = (n: number, content: string) => {
    mkdirSync(join(directory, `..data_${n}`));
    writeFileSync(join(directory, `..data_${n}`, "config.yaml"), content);
    symlinkSync(`..data_${n}`, join(directory, "..data_tmp"));
    renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
  };
  swap(1, text(6));
  rmSync(file);
  symlinkSync(join("..data", "config.yaml"), file);
  await until("linked", () => attempts() === 6);
  swap(2, text(7));
  await until("the link swapped", () => attempts() === 7);
  writeFileSync(profile, weights(3));
  await until("the profile that it names", () => changes.at(-1)?.policy.profile.spec.scorers[0]?.weight === 3);
  // What somebody else changed since stays, while the file changes other keys.
  assert.equal(admin.change({ routing: { profile: "round-robin" } }, "merge", REQUEST).outcome, "applied");
  swap(8, `${text(7)}admission: { limits: { all: { type: token-bucket, bucketTokens: 60, refillPerSecond: 1 } } }\n`);
  await until("a limit", () => changes.at(-1)?.policy.config.admission.limits["all"] !== undefined);
  assert.equal(keeper.inForce.profile.name, "round-robin");
  swap(9, text(7));
  await until("no limit", () => changes.at(-1)?.policy.config.admission.limits["all"] === undefined);
  assert.equal(keeper.inForce.profile.name, "round-robin");
  const { version } = keeper;
  assert.equal(admin.change({ limits: { attemptsMax: 9 } }, "merge", REQUEST).outcome, "applied");
  swap(3, `# only a remark\n${text(7)}`);
  await until("a remark", () => counted("unchanged") === 2);
  assert.deepEqual([keeper.version, attempts()], [version + 1, 9]);
  swap(4, "limits: { attemptsMax: [");
  await until("broken", () => counted("refused") === 1);
  rmSync(file);
  await until("gone", () => counted("refused") === 2);
  assert.deepEqual([keeper.version, attempts()], [version + 1, 9]);
  const [gone, broken] = keeper.history().refused;
  assert.match(gone!.problems.join(), /no such file/);
  assert.match(broken!.problems.join(), /expected YAML/);
});

test("after a restart keys that the configuration changed meanwhile have its values, and all others what was in force", () => {
  const { plan, keeper, admin } = keeperOf(undefined);
  admin.change({ routing: { profile: "lmetric" }, limits: { attemptsMax: 7 } }, "merge", REQUEST);
  const kept: unknown = JSON.parse(policiesText(keeper.past));
  const restarted = (set: readonly string[]) => {
    const { config, ...profiles } = servePlan({ set }, {});
    const past = pastPolicies(kept, policyOf({ config, ...profiles }, config), config, "now")!;
    const { version, note, policy } = past.versions.at(-1)!;
    return { version, note, limits: policy.config.limits, profile: policy.profile.name };
  };
  const same = restarted([]);
  assert.deepEqual([same.version, same.profile, same.limits.attemptsMax], [2, "lmetric", 7]);
  const other = restarted(["limits.totalMillisMax=61000"]);
  assert.deepEqual([other.version, other.profile, other.limits.attemptsMax], [3, "lmetric", 7]);
  assert.deepEqual([other.note, other.limits.totalMillisMax], ["the configuration had changed", 61_000]);
  const own = restarted(["routing.profile=llm-d"]);
  assert.deepEqual([own.version, own.profile, own.limits.attemptsMax], [3, "llm-d", 7]);
  assert.equal(plan.config.routing.profile, "gnomon");
});

test("each change lists the keys that it changes, before it is made and after", () => {
  const { admin } = keeperOf(undefined);
  const before = { path: "limits.attemptsMax", before: 3, after: 5 };
  const other = { extends: "llm-d", scorers: [{ plugin: "queue-depth", weight: 5 }] };
  const document = { limits: { attemptsMax: 5 }, routing: { models: { "a.b": "llm-d" } } };
  const changes = [{ path: 'routing.models["a.b"]', after: "llm-d" }, before];
  const asked = (dryRun: boolean) => {
    const outcome = admin.change(document, "merge", { ...REQUEST, dryRun });
    return "changes" in outcome ? outcome.changes.filter(({ path }) => !path.startsWith("profiles")) : [];
  };
  assert.deepEqual(asked(true), changes);
  assert.deepEqual(asked(true), changes);
  assert.deepEqual(asked(false), changes);
  assert.deepEqual(asked(true), []);
  admin.change({ profiles: { other } }, "merge", REQUEST);
  const again = admin.change({ profiles: { other: { extends: "llm-d" } } }, "merge", REQUEST);
  assert.ok("changes" in again && again.changes.every(({ path }) => path.startsWith("profiles.other.")));
});

test("a file that was refused for what stood in its way is offered again when it is retried, and once", async (t) => {
  const directory = folder(t);
  const file = join(directory, "gnomon.yaml");
  const text = (n: number) => `limits: { attemptsMax: ${n} }\npolicy: { watchMillis: 100 }\n`;
  writeFileSync(file, text(3));
  const objections: string[] = [];
  const { plan, keeper } = keeperOf(file, [], () => objections);
  const reload = () => servePlan({ config: file }, {});
  const source = new PolicyFileSource({ configFile: file, reload, running: plan.config, watchMillis: 1 });
  t.after(() => source.stop());
  source.start(keeper.offer);
  const refused = () => keeper.counts().find(({ outcome }) => outcome === "refused")?.count ?? 0;
  const attempts = () => keeper.inForce.config.limits.attemptsMax;
  objections.push("profiles.x: expected it as it is while a rollout compares it");
  writeFileSync(file, text(4));
  await until("refused", () => refused() > 0);
  const before = refused();
  objections.length = 0;
  source.retry();
  await until("applied", () => attempts() === 4);
  source.retry();
  assert.deepEqual([refused(), keeper.version], [before, 2]);
});
