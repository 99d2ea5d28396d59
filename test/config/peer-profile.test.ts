import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile } from "#config/profile-file.ts";
import { checkProfile } from "#core/profile/check.ts";

function file(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-peer-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "given.yaml");
  writeFileSync(path, text);
  return path;
}

function refused(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.lines.join("\n");
  }
  assert.fail("it was accepted");
}

const LLM_D = `
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl]
plugins:
- {type: token-producer, parameters: {modelName: Qwen/Qwen3-8B}}
- type: approx-prefix-cache-producer
  parameters: {autoTune: true, blockSizeTokens: 64}
- {type: inflight-load-producer}
- type: prefix-cache-affinity-filter
  parameters: {affinityThreshold: 0.70, maxTTFTPenaltyMs: 5000, peakPrefillThroughput: 20000}
- {type: queue-scorer}
- {type: kv-cache-utilization-scorer}
- {name: prefix, type: prefix-cache-scorer, parameters: {matchLengthWeight: 0.25, matchLengthScaleTokens: 4096}}
- {type: no-hit-lru-scorer, parameters: {lruSize: 64}}
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 1}}
- {type: single-profile-handler}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefix-cache-affinity-filter}
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: prefix, weight: 3}
  - {pluginRef: no-hit-lru-scorer}
  - {pluginRef: max-score-picker}
flowControl: {maxRequests: "20000"}
`;

test("an EndpointPickerConfig of llm-d is a profile, with its parameters under our names", (t) => {
  const { name, spec, summary } = loadProfile(file(t, LLM_D));
  assert.equal(name, "given");
  assert.deepEqual(spec, {
    filters: [
      {
        plugin: "prefix-affinity-gate",
        parameters: { affinityThreshold: 0.7, maxTtftPenaltyMillis: 5000, peakPrefillTokensPerSecond: 20_000 },
      },
    ],
    scorers: [
      { plugin: "queue", parameters: {}, weight: 2 },
      { plugin: "kv-utilization", parameters: {}, weight: 2 },
      { plugin: "prefix-affinity", parameters: { matchLengthWeight: 0.25, matchLengthScaleTokens: 4096 }, weight: 3 },
      { plugin: "no-hit-lru", parameters: { lruSize: 64 }, weight: 1 },
    ],
    picker: { plugin: "max-score", parameters: { tieBreak: "random" } },
  });
  assert.deepEqual(checkProfile(spec), []);
  for (const left of ["featureGates", "flowControl", "token-producer", "approx-prefix-cache-producer"]) {
    assert.match(summary, new RegExp(left), "what is configured elsewhere is named");
  }
});

const HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n";

test("llm-d's defaults are filled in: no plugins, no profile, no weight, no picker", (t) => {
  assert.deepEqual(
    loadProfile(file(t, HEAD)).spec.scorers.map(({ plugin, weight }) => [plugin, weight]),
    [
      ["queue", 2],
      ["kv-utilization", 2],
      ["prefix-affinity", 3],
    ],
  );
  const { spec } = loadProfile(file(t, `${HEAD}plugins: [{type: decode-filter}, {type: queue-scorer}]\n`));
  assert.deepEqual(spec.scorers, [{ plugin: "queue", parameters: {}, weight: 1 }]);
  assert.equal(spec.filters[0]?.plugin, "label");
  assert.deepEqual(spec.picker, { plugin: "max-score", parameters: { tieBreak: "random" } });
});

test("plugins of llm-d's flow control leave the profile as it is, and what stands in their place is named", (t) => {
  const plain = loadProfile(file(t, `${HEAD}plugins: [{type: queue-scorer}]\n`));
  for (const [type, instead] of [
    ["program-aware-fairness", "admission.queue.fairness"],
    ["probabilistic-admitter", "admission.shedAt"],
    ["soft-reflective-ceiling-policy", "admission.classes"],
    ["dcgm-extractor", "power.exporters"],
  ] as const) {
    const { spec, summary } = loadProfile(file(t, `${HEAD}plugins: [{type: queue-scorer}, {type: ${type}}]\n`));
    assert.deepEqual(spec, plain.spec);
    assert.ok(summary.includes(`${type} (${instead}`), summary);
  }
});

test("llm-d plugins and parameters that are unknown here are all named with their place", (t) => {
  const text = refused(() =>
    loadProfile(
      file(
        t,
        `${HEAD}plugins:
- {type: topology-affinity-scorer}
- {type: predicted-latency-producer}
- {type: queue-scorer, parameters: {speed: 3}}
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}
- {type: prefix-cache-affinity-filter, parameters: {affinityThreshold: 2}}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: topology-affinity-scorer, weight: 1}
  - {pluginRef: queue-scorer, weight: -2}
  - {pluginRef: max-score-picker}
  - {pluginRef: nobody}
  - {pluginRef: prefix-cache-affinity-filter}
`,
      ),
    ),
  );
  assert.match(
    text,
    /plugins\[0\]\.type: .*queue-scorer.*got the unsupported topology-affinity-scorer .*given\.yaml line 4/,
  );
  assert.match(text, /plugins\[1\]\.type: .*unsupported predicted-latency-producer/);
  assert.match(text, /plugins\[2\]\.parameters\.speed: .*got the unsupported speed/);
  assert.match(text, /plugins\[3\]\.parameters\.maxNumOfEndpoints: expected 1, got 2/);
  assert.match(text, /plugins\[4\]\.parameters\.affinityThreshold: expected a number from 0 to 1, got 2/);
  assert.match(text, /schedulingProfiles\[0\]\.plugins\[1\]\.weight: expected a number above 0, got -2/);
  assert.match(text, /schedulingProfiles\[0\]\.plugins\[3\]\.pluginRef: .*got "nobody"/);
});

const PD = `${HEAD}plugins:
- {type: approx-prefix-cache-producer}
- {type: prefix-cache-scorer}
- {type: queue-scorer}
- {type: prefill-filter}
- {type: decode-filter}
- {type: max-score-picker}
- {type: disagg-profile-handler, parameters: {deciders: {prefill: prefix-based-pd-decider}}}
- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 16}}
schedulingProfiles:
- name: prefill
  plugins:
  - {pluginRef: prefill-filter}
  - {pluginRef: max-score-picker}
  - {pluginRef: prefix-cache-scorer, weight: 2}
  - {pluginRef: queue-scorer, weight: 1}
- name: decode
  plugins:
  - {pluginRef: decode-filter}
  - {pluginRef: max-score-picker}
  - {pluginRef: prefix-cache-scorer, weight: 2}
  - {pluginRef: queue-scorer, weight: 1}
`;

test("llm-d's prefill and decode are the two stages of a profile, as the one that comes with gnomon has them", (t) => {
  assert.deepEqual(loadProfile(file(t, PD)).spec, loadProfile("llm-d-pd").spec);
  const renamed = PD.replace("name: decode", "name: answers").replace("name: prefill", "name: prompts");
  const nested = renamed.replace("{deciders:", "{profiles: {decode: answers, prefill: prompts}, deciders:");
  assert.deepEqual(loadProfile(file(t, nested)).spec, loadProfile("llm-d-pd").spec);
  const older = renamed
    .replace("disagg-profile-handler", "pd-profile-handler")
    .replace("{deciders: {prefill: prefix-based-pd-decider}}", "{decodeProfile: answers, prefillProfile: prompts}");
  assert.deepEqual(loadProfile(file(t, older)).spec, loadProfile("llm-d-pd").spec);
  const always = PD.replaceAll(
    "prefix-based-pd-decider, parameters: {nonCachedTokens: 16}",
    "always-disagg-pd-decider",
  );
  const divided = loadProfile(file(t, always.replace("prefill: prefix-based", "prefill: always-disagg"))).spec;
  assert.equal(divided.disaggregation?.colocateBelowTokens, 0);
  const gated = PD.replace("nonCachedTokens: 16", "nonCachedTokens: 8, promptTokens: 512");
  const { disaggregation } = loadProfile(file(t, gated)).spec;
  assert.deepEqual([disaggregation?.colocateBelowTokens, disaggregation?.promptTokensMin], [8, 512]);
});

test("a decider of llm-d that divides nothing leaves the decode profile alone, with its filter", (t) => {
  const { spec } = loadProfile(file(t, PD.replace("nonCachedTokens: 16", "nonCachedTokens: 0")));
  assert.equal(spec.disaggregation, undefined);
  assert.deepEqual(
    spec.filters.map(({ plugin }) => plugin),
    ["label"],
  );
});

test("stages of llm-d that are not routed apart here, or are not there, are refused by name", (t) => {
  const cases: [text: string, said: RegExp][] = [
    [
      `${HEAD}plugins: [{type: queue-scorer}]\nschedulingProfiles: [{name: prefill}, {name: decode}]\n`,
      /schedulingProfiles: .*disagg-profile-handler.*got prefill, decode/,
    ],
    [PD.replace("{deciders:", "{profiles: {encode: images}, deciders:"), /parameters: expected no stage for encoding/],
    [
      PD.replace("{deciders:", "{stageOrder: prefill-first, deciders:"),
      /stageOrder: expected "decode-first", got "pre/,
    ],
    [PD.replace("name: prefill", "name: prompts"), /expected a profile prefill, got prompts, decode/],
    [
      PD.replace("prefill: prefix-based-pd-decider", "prefill: queue-scorer"),
      /parameters\.deciders: .*got "queue-scorer"/,
    ],
    [PD.replace("nonCachedTokens: 16", "nonCachedTokens: -1"), /nonCachedTokens: expected a whole number .* got -1/],
    [PD.replace("nonCachedTokens: 16", "tokens: 1"), /parameters\.tokens: expected one of nonCachedTokens/],
    [PD.replace("{type: queue-scorer}", "{type: encode-filter}"), /unsupported encode-filter \(encoding is not routed/],
  ];
  for (const [text, said] of cases)
    assert.match(
      refused(() => loadProfile(file(t, text))),
      said,
    );
});

test("caches by events and data-parallel ranks are configured elsewhere, which the summary states", (t) => {
  const { summary, spec } = loadProfile(
    file(
      t,
      `${HEAD}plugins:
- {type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 16}}}
- {type: endpoint-notification-source}
- {type: data-parallel-profile-handler, parameters: {primaryPort: 8000}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 10}]}]
`,
    ),
  );
  assert.match(summary, /precise-prefix-cache-producer \(kvEvents\.\*\)/);
  assert.match(summary, /data-parallel-profile-handler \(discovery\.dataParallelRanks/);
  assert.deepEqual(
    spec.scorers.map(({ plugin, weight }) => [plugin, weight]),
    [["prefix-affinity", 10]],
  );
});

test("policy bundles of BLIS are profiles: scorers and the routing section", (t) => {
  const flat = loadProfile(
    file(
      t,
      "routing-policy: weighted\nrouting-scorers:\n  - {name: prefix-affinity, weight: 3.0}\n  - {name: queue-depth, weight: 2.0}\n",
    ),
  );
  assert.deepEqual(
    flat.spec.scorers.map(({ plugin, weight }) => [plugin, weight]),
    [
      ["prefix-affinity", 3],
      ["queue-depth", 2],
    ],
  );
  const bundle = loadProfile(
    file(
      t,
      `admission: {type: token-bucket, params: {bucket_size: 1000, refill_rate: 100, per_tenant: true}}
routing:
  type: weighted-scoring
  params: {cache_affinity_weight: 0.6, load_balance_weight: 0.3, queue_depth_weight: 0.1}
`,
    ),
  );
  assert.deepEqual(
    bundle.spec.scorers.map(({ plugin, weight }) => [plugin, weight]),
    [
      ["prefix-affinity", 0.6],
      ["queue-depth", 0.1],
      ["load-balance", 0.3],
    ],
  );
  const bonus = "routing: {type: weighted-scoring, params: {prefix_match_bonus: 0.5}}\n";
  assert.deepEqual(loadProfile(file(t, bonus)).spec.scorers.at(-1), {
    plugin: "prefix-held",
    weight: 0.5,
    parameters: {},
  });
});

test("a shipped profile goes by AIBrix's name of it as well, where no other one has that name", () => {
  for (const name of ["prefix-cache", "prefix-aware"])
    assert.deepEqual(loadProfile(name).spec, loadProfile("aibrix-prefix-cache").spec);
  assert.equal(loadProfile("least-request").name, "aibrix-least-request");
  for (const name of ["random", "power-of-two", "vtc-basic"]) assert.equal(loadProfile(name).name, name);
});
