import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { stringify } from "yaml";
import fc from "fast-check";
import { aibrixProfile } from "#config/peer-aibrix.ts";
import { withAibrixParameters } from "#config/aibrix-environment.ts";
import { exportAibrix } from "#config/export-aibrix.ts";
import { exportLlmD } from "#config/export-llm-d.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { spaceFor } from "#cli/tune/tune-space.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { variantOf } from "#shadow/tune/policy-space.ts";
import { drawTraffic } from "../core/traffic.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-export-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const SPACES = { "llm-d": spaceFor("llm-d", [], false), aibrix: spaceFor("aibrix", [], false) };

/** A policy some steps away from one of those that come with gnomon, within what a router can express. */
function drawnSpec(router: "llm-d" | "aibrix", seed: number): ProfileSpec {
  const { space, bases } = SPACES[router];
  const random = randomFor(seed, 1);
  let spec = bases[random.below(bases.length)]!.spec;
  for (let step = random.below(8); step > 0; step--) {
    const other = bases[random.below(bases.length)]!.spec;
    spec = variantOf([spec, other], space, random)?.spec ?? spec;
  }
  return spec;
}

/** What a router decides under a profile, whatever its plugins are called. */
function decisionsUnder(spec: ProfileSpec, seed: number): string[] {
  const router = new Router({
    seed: 7,
    profiles: { d: spec },
    defaultProfile: "d",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 50_000,
  });
  return drawTraffic(router, seed, 150).map(({ decision }) =>
    JSON.stringify(
      decision && { ...decision, breakdown: [[...decision.breakdown.values], [...decision.breakdown.totals]] },
    ),
  );
}

function readBack(document: unknown): ProfileSpec {
  const file = join(FOLDER, "exported.yaml");
  writeFileSync(file, stringify(document));
  return loadProfile(file).spec;
}

test("what is exported as an EndpointPickerConfig is read back unchanged and decides the same, to the bit", () => {
  fc.assert(
    fc.property(fc.nat(1e6), (seed) => {
      const spec = drawnSpec("llm-d", seed);
      const exported = exportLlmD(spec);
      assert.ok(exported.ok);
      const back = readBack(exported.value);
      assert.deepEqual(decisionsUnder(back, seed), decisionsUnder(spec, seed));
      assert.deepEqual(exportLlmD(back), exported, "and is exported as the same again");
    }),
    { numRuns: 12 },
  );
});

test("llm-d's own policies are all expressible, with both stages where there are two", () => {
  // Two stages of filters were those of an older design of it.
  for (const name of profileNames().filter((one) => one.startsWith("llm-d") && one !== "llm-d-two-stage")) {
    const { spec } = loadProfile(name);
    const exported = exportLlmD(spec);
    assert.ok(exported.ok, `${name}: ${exported.ok ? "" : exported.reasons.join("; ")}`);
    assert.deepEqual(decisionsUnder(readBack(exported.value), 3), decisionsUnder(spec, 3), name);
  }
  const divided = exportLlmD(loadProfile("llm-d-pd").spec);
  assert.ok(divided.ok);
  assert.deepEqual(
    divided.value.schedulingProfiles.map(({ name }) => name),
    ["decode", "prefill"],
  );
  assert.deepEqual(readBack(divided.value), withParameters(loadProfile("llm-d-pd").spec));
});

/** As the importer leaves it: stated where they were left out. */
function withParameters({ disaggregation, ...rest }: ProfileSpec): ProfileSpec {
  const stated = { matchLengthWeight: 0, matchLengthScaleTokens: 8192 };
  const stage = <T extends ProfileSpec>(one: T): T => ({
    ...one,
    scorers: one.scorers.map((scorer) =>
      scorer.plugin === "prefix-affinity" ? { ...scorer, parameters: stated } : scorer,
    ),
  });
  return { ...stage(rest), disaggregation: { ...disaggregation!, prefill: stage(disaggregation!.prefill) } };
}

test("what a scorer of llm-d reads and llm-d does not make by itself is declared beside it", () => {
  const exported = exportLlmD({
    filters: [],
    scorers: [{ plugin: "token-load", parameters: {}, weight: 1 }],
    picker: { plugin: "max-score", parameters: { tieBreak: "random" } },
  });
  assert.ok(exported.ok);
  const types = exported.value.plugins.map(({ type }) => type);
  assert.ok(types.includes("inflight-load-producer"));
});

test("what llm-d cannot express is refused with its place", () => {
  const exported = exportLlmD(loadProfile("gnomon").spec);
  assert.ok(!exported.ok);
  assert.deepEqual(exported.reasons, [
    "default.filters[0]: llm-d has no filter like imbalance",
    "default.scorers[0]: llm-d has no scorer like predicted-latency",
    'default.picker: tieBreak "rotate": llm-d\'s max-score-picker has "random" alone',
  ]);
  const session = exportLlmD({
    filters: [{ plugin: "session-pin", parameters: { idleSecondsMax: 60 } }],
    scorers: [{ plugin: "queue", parameters: {}, weight: 1 }],
    picker: { plugin: "max-score", parameters: { tieBreak: "random" } },
  });
  assert.ok(session.ok);
  assert.deepEqual(session.value.plugins[1]?.parameters, {
    strategy: "session_id",
    sessionIdConfig: { evictionTtlSeconds: 60 },
  });
});

test("what is exported as AIBrix's environment is the same policy when it is read back", () => {
  fc.assert(
    fc.property(fc.nat(1e6), (seed) => {
      const spec = drawnSpec("aibrix", seed);
      const exported = exportAibrix(spec);
      assert.ok(exported.ok);
      const { AIBRIX_ROUTING_ALGORITHM: strategy = "" } = exported.value;
      const back = withAibrixParameters(aibrixProfile(strategy), exported.value).spec;
      assert.deepEqual(decisionsUnder(back, seed), decisionsUnder(spec, seed));
    }),
    { numRuns: 12 },
  );
  const refused = exportAibrix(loadProfile("gnomon").spec);
  assert.ok(!refused.ok);
  assert.match(
    refused.reasons.join("\n"),
    /scorers\[0\]: AIBrix has no strategy that scores as predicted-latency does/,
  );
});
