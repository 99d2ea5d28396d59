import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkProfile } from "#core/profile/check.ts";
import { ConfigError } from "#config/config-error.ts";
import { parseScorers, profileOfPolicy, readPolicyConfig } from "#config/policy-config.ts";
import { loadConfig } from "#config/load.ts";
import { inlineProfile } from "#config/native-profile.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { madeForMore, OWN_SIGNALS, scrapeMillisFor, signalsOfProfile } from "#config/profile-signals.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";

/** A folder of files, which goes when the test is over; returns its path. */
function files(t: TestContext, texts: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-profile-"));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(join(directory, name, ".."), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

function refused(read: () => unknown): readonly string[] {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.lines;
  }
  assert.fail("it was accepted");
}

const FROM = { policy: "--routing-policy", scorers: "--routing-scorers" };

test("every shipped profile loads, is named after its file, and describes what it is", () => {
  const names = profileNames();
  assert.ok(names.includes("gnomon") && names.includes("weighted") && names.includes("round-robin"));
  for (const name of names) {
    const profile = loadProfile(name);
    assert.equal(profile.name, name);
    assert.ok(profile.summary !== "" && profile.source !== "", name);
    assert.deepEqual(checkProfile(profile.spec), [], name);
  }
});

test("a section that is written replaces the extended one, others are taken over, by name or by path", (t) => {
  const directory = files(t, {
    "base.yaml": "name: base\nsummary: s\nscorers: [{plugin: queue-depth, weight: 1}]\npicker: {plugin: max-score}\n",
    "middle.yaml": "name: middle\nextends: base\nscorers: [{plugin: load-balance, weight: 2}]\n",
    "sub/leaf.yaml":
      "name: leaf\nextends: ../middle.yaml\npicker: {plugin: max-score, parameters: {tieBreak: random}}\n",
    "ours.yaml": "name: ours\nextends: weighted\npicker: {plugin: max-score, parameters: {tieBreak: rotate}}\n",
  });
  assert.deepEqual(loadProfile(join(directory, "sub/leaf.yaml")), {
    name: "leaf",
    summary: "s",
    source: "",
    spec: {
      filters: [],
      scorers: [{ plugin: "load-balance", weight: 2, parameters: {} }],
      picker: { plugin: "max-score", parameters: { tieBreak: "random" } },
    },
  });
  const ours = loadProfile(join(directory, "ours.yaml")).spec;
  assert.deepEqual(ours.scorers, loadProfile("weighted").spec.scorers);
  assert.equal(ours.picker.parameters["tieBreak"], "rotate");
});

test("what a profile file gets wrong is reported with path, accepted values and file", (t) => {
  const scorers = "picker: {plugin: max-score}\nscorers:\n";
  const directory = files(t, {
    "a.yaml": "name: a\nextends: ./b.yaml\n",
    "b.yaml": "name: b\nextends: a\n",
    "weights.yaml": `name: w\n${scorers}  - {plugin: queue-depth, weight: 0}\n  - {plugin: load-balance, weight: -1}\n  - {plugin: kv-utilization, weight: .nan}\n`,
    "names.yaml": `name: n\n${scorers}  - {plugin: queue-dept, weight: 1}\n  - {plugin: load-balance, weight: 1}\n  - {plugin: load-balance, weight: 1}\n`,
    "parameter.yaml":
      "name: p\nscorers: [{plugin: queue-depth, weight: 1}]\npicker: {plugin: max-score, parameters: {tieBreak: coin}}\n",
    "keys.yaml": "name: k\nscorer: []\npicker: {plugin: max-score, weight: 1}\n",
    "bare.yaml": "name: bare\n",
    "orphan.yaml": "name: o\nextends: nobody\n",
  });
  const lines = (name: string) => refused(() => loadProfile(join(directory, `${name}.yaml`))).join("\n");
  assert.match(lines("a"), /extends: expected a chain that ends, got the cycle .*a\.yaml -> .*b\.yaml -> .*a\.yaml/);
  assert.match(lines("weights"), /scorers\[0\]\.weight: expected a number above 0, got 0 .*line 4/);
  assert.match(lines("weights"), /scorers\[1\]\.weight: expected a number above 0, got -1/);
  assert.match(lines("weights"), /scorers\[2\]\.weight: expected a number above 0, got NaN/);
  assert.match(lines("names"), /scorers\[0\]\.plugin: expected one of .*queue-depth.*, got "queue-dept"/);
  assert.match(lines("names"), /scorers\[2\]\.plugin: "load-balance" is there twice/);
  assert.match(
    lines("parameter"),
    /picker\.parameters\.tieBreak: expected one of lowest-id, .*, got "coin" .*parameter\.yaml/,
  );
  assert.match(lines("keys"), /scorer: expected one of name, .* got the unknown key "scorer"; did you mean scorers\?/);
  assert.match(lines("keys"), /picker\.weight: expected one of plugin, parameters/);
  assert.match(lines("bare"), /picker: expected a mapping with plugin/);
  assert.match(lines("orphan"), /expected one of .*weighted.*, got the unknown profile "nobody"/);
  assert.match(refused(() => loadProfile("gnomn")).join(), /got the unknown profile "gnomn"; did you mean gnomon\?/);
});

test("BLIS's policy configuration reads the same from YAML and from flags", (t) => {
  const directory = files(t, {
    "policy.yaml": [
      "routing-policy: weighted",
      "routing-scorers:",
      "  - name: prefix-affinity",
      "    weight: 3.0",
      "  - name: queue-depth",
      "    weight: 2.0",
      "  - name: kv-utilization",
      "    weight: 2.0",
    ].join("\n"),
    "policy-only.yaml": "routing-policy: weighted\n",
    "other.yaml": "routing-policy: round-robin\n",
  });
  const fromFile = profileOfPolicy(readPolicyConfig(join(directory, "policy.yaml")), FROM);
  const scorers = parseScorers("prefix-affinity:3,queue-depth:2, kv-utilization : 2.0");
  assert.deepEqual(profileOfPolicy({ policy: "weighted", scorers }, FROM), fromFile);
  assert.deepEqual(profileOfPolicy(readPolicyConfig(join(directory, "policy-only.yaml")), FROM), fromFile);
  assert.deepEqual(fromFile.spec.scorers, loadProfile("weighted").spec.scorers);
  assert.deepEqual(fromFile.spec.filters, []);
  assert.deepEqual(profileOfPolicy(readPolicyConfig(join(directory, "other.yaml")), FROM), loadProfile("round-robin"));
});

test("removed keys name their successor; zero, negative, NaN, duplicate and unknown are refused with the path", (t) => {
  const policy = (scorers: string) =>
    refused(() => profileOfPolicy({ policy: "weighted", scorers: parseScorers(scorers) }, FROM)).join("\n");
  assert.match(
    policy("queue-depth:0,load-balance:1"),
    /routing-scorers\[0\]\.weight: expected a number above 0, got 0 \(--routing-scorers\)/,
  );
  assert.match(policy("queue-depth:-2"), /routing-scorers\[0\]\.weight: .* got -2/);
  assert.match(policy("queue-depth:two"), /routing-scorers\[0\]\.weight: .* got NaN/);
  assert.match(policy("queue-depth:1,queue-depth:2"), /routing-scorers\[1\]\.name: "queue-depth" is there twice/);
  assert.match(policy("cache:1"), /routing-scorers\[0\]\.name: expected one of prefix-affinity, .* got "cache"/);
  for (const text of ["", "queue-depth", "queue-depth:1,", ":3"]) {
    assert.match(refused(() => parseScorers(text)).join(), /--routing-scorers: expected name:weight pairs/);
  }
  assert.match(
    refused(() => profileOfPolicy({ policy: "wieghted", scorers: undefined }, FROM)).join(),
    /routing-policy: .*did you mean weighted\? \(--routing-policy\)/,
  );
  assert.match(
    refused(() => profileOfPolicy({ policy: "round-robin", scorers: parseScorers("queue-depth:1") }, FROM)).join(),
    /routing-scorers: expected none unless routing-policy is weighted/,
  );
  const directory = files(t, {
    "old.yaml": "routing-policy: weighted\ncache_weight: 0.6\nload_weight: 0.4\n",
    "typo.yaml": "routing-scorer: []\n",
  });
  const old = refused(() => readPolicyConfig(join(directory, "old.yaml")));
  assert.equal(old.length, 2);
  assert.match(
    old[0]!,
    /cache_weight: expected routing-scorers .*, got the removed key cache_weight \(.*old\.yaml line 2\)/,
  );
  assert.match(old[1]!, /load_weight: expected routing-scorers/);
  assert.match(refused(() => readPolicyConfig(join(directory, "typo.yaml"))).join(), /did you mean routing-scorers\?/);
});

test("a peer's profile states how often its own router reads gauges; what extends it reads as often, gnomon as configured", (t) => {
  const folder = files(t, {
    "mine.yaml": "name: mine\nextends: llm-d\nscorers: [{plugin: queue, weight: 1}]\n",
    "picker.yaml":
      "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\nplugins: [{type: queue-scorer}]\n" +
      "schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]\n",
    "wrong.yaml": "name: wrong\nsignals: {intervalMillis: 0, source: x}\nscorers: [{plugin: queue, weight: 1}]\n",
  });
  const every = (nameOrPath: string) => signalsOfProfile(loadProfile(nameOrPath)).intervalMillis;
  for (const name of profileNames()) assert.ok(loadProfile(name).signals, `${name} states its signals`);
  assert.equal(every("gnomon"), OWN_SIGNALS.intervalMillis);
  const fast = [
    "llm-d",
    "llm-d-optimized",
    join(folder, "mine.yaml"),
    join(folder, "picker.yaml"),
    "aibrix-prefix-cache",
  ];
  for (const name of [...fast, "least-request:2,throughput:1"]) assert.equal(every(name), 50, name);
  assert.equal(every("production-stack-session"), 30_000);
  assert.match(refused(() => loadProfile(join(folder, "wrong.yaml"))).join(" "), /signals\.intervalMillis/);
});

test("a gateway reads gauges as often as the most demanding profile that decides by them; those that are made for more are named", () => {
  const [gnomon, llmD, lmetric, slow] = ["gnomon", "llm-d", "lmetric", "production-stack-session"].map(loadProfile);
  const fast = { ...lmetric!, signals: { ...OWN_SIGNALS, intervalMillis: 10 } };
  assert.equal(scrapeMillisFor([gnomon!]), 1_000);
  assert.equal(scrapeMillisFor([gnomon!, llmD!]), 50);
  assert.equal(scrapeMillisFor([fast]), 1_000, "it reads no gauges");
  assert.equal(scrapeMillisFor([{ ...gnomon!, signals: slow!.signals }]), 1_000, "the page also shows who lives");
  assert.deepEqual(madeForMore([gnomon!, llmD!, fast], 50), []);
  assert.match(
    madeForMore([gnomon!, llmD!, fast], 51).join(),
    /^llm-d is made for gauges every 50 ms, 5 ms late \(llm-d/,
  );
});

test("config/prefill-decode.yaml: two stages, of a shipped profile with other rules, and endpoints with their roles", () => {
  const file = join(import.meta.dirname, "../../config/prefill-decode.yaml");
  const config = loadConfig({ file, environment: {}, overrides: [] });
  const { profile } = resolveProfiles(config, { environment: {}, readsFiles: true });
  const { colocateBelowTokens, handoff, roles, prefill } = profile.spec.disaggregation ?? assert.fail();
  assert.deepEqual([colocateBelowTokens, handoff, prefill.scorers[0]?.plugin], [512, "prefill-first", "added-latency"]);
  assert.deepEqual(
    config.endpoints.map(({ labels }) => labels[roles.label]),
    ["prefill", "prefill", "decode", "decode"],
  );
});

test("what is wrong with two stages is refused by its path", () => {
  const picker = { plugin: "random", parameters: {} };
  const problems = (disaggregation: unknown) => checkProfile({ picker, disaggregation }).map(({ path }) => path);
  assert.deepEqual(problems({ prefill: { picker } }), []);
  assert.deepEqual(problems(7), ["disaggregation"]);
  assert.deepEqual(problems({}), ["disaggregation.prefill"]);
  assert.deepEqual(problems({ prefill: { picker, scorers: [{ plugin: "nobody", weight: 0 }] }, more: 1 }), [
    "disaggregation.more",
    "disaggregation.prefill.scorers[0].plugin",
    "disaggregation.prefill.scorers[0].weight",
  ]);
  const wrong = { colocateBelowTokens: -1, promptTokensMin: 0.5, handoff: "later", roles: { label: 1, decode: "d" } };
  assert.deepEqual(problems({ prefill: { picker }, ...wrong }), [
    "disaggregation.colocateBelowTokens",
    "disaggregation.promptTokensMin",
    "disaggregation.handoff",
    "disaggregation.roles.label",
    "disaggregation.roles.decode",
  ]);
});

test("a profile within a configuration extends shipped ones by name, and files only where files are read", (t) => {
  const directory = files(t, {
    "base.yaml": "name: base\nsummary: s\nsource: here\nextends: weighted\npicker: {plugin: round-robin}\n",
  });
  const path = join(directory, "base.yaml");
  assert.deepEqual(inlineProfile("own", { extends: "weighted" }, false).spec, loadProfile("weighted").spec);
  assert.equal(inlineProfile("own", { extends: path }, true).spec.picker.plugin, "round-robin");
  assert.match(
    refused(() => inlineProfile("own", { extends: path }, false)).join(),
    /own\.extends: expected the name of a shipped profile, got the path/,
  );
});

test("a profile file without anything in it is refused as one, not as a defect", (t) => {
  const directory = files(t, { "empty.yaml": "", "text.yaml": "gnomon\n" });
  for (const name of ["empty.yaml", "text.yaml"]) {
    assert.match(refused(() => loadProfile(join(directory, name))).join(), new RegExp(name.replace(".", "\\.")));
  }
});
