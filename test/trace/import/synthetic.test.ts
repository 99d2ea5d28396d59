import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { golden, ids, readAll } from "./read-all.ts";

const BASE = { conversations: 400, arrivals: { process: "poisson", ratePerSecond: 50 } };
const GROUP = { name: "g", userTokens: 40, outputTokens: 10 };

function generate(spec: object, seed = 1): WorkloadRequest[] {
  return [
    ...synthesize(parseSyntheticSpec("spec", JSON.stringify(spec)), seed, new ImportReport("spec", "synthetic", false)),
  ];
}

describe("a synthetic workload", () => {
  it("is another one with another seed, unless the specification has its own", () => {
    const spec = { ...BASE, groups: [GROUP] };
    assert.notDeepEqual(generate(spec, 1), generate(spec, 2));
    assert.deepEqual(generate({ ...spec, seed: 5 }, 1), generate({ ...spec, seed: 5 }, 2));
  });

  it("extends the prompt of the turn before by its answer and the new text", async () => {
    const { requests } = await readAll(golden("spec.yaml"));
    const last = new Map<string, WorkloadRequest>();
    let followUps = 0;
    for (const request of requests) {
      const before = last.get(request.session);
      if (request.turn > 0 && before !== undefined) {
        followUps++;
        assert.ok(request.promptTokens > before.promptTokens + before.outputTokens);
        assert.deepEqual(ids(request).slice(0, before.blockIds?.length), ids(before));
      }
      if (request.session !== "") last.set(request.session, request);
    }
    assert.ok(followUps > 20);
  });

  it("shares the common prefix with all, a group's prefix with those that drew it, and nothing else", () => {
    const groups = [
      { ...GROUP, name: "a", prefixes: 3, prefixTokens: 64 },
      { ...GROUP, name: "b", prefixTokens: 32 },
    ];
    const requests = generate({ ...BASE, commonPrefixTokens: 40, groups });
    const seen = new Map<number, number>();
    for (const request of requests) for (const id of ids(request)) seen.set(id, (seen.get(id) ?? 0) + 1);
    const shared = [...seen.values()].filter((count) => count > 1);
    // 2 common blocks, 3 prefixes of 4 blocks, 1 of 2.
    assert.equal(shared.length, 2 + 3 * 4 + 2);
    assert.equal(shared.filter((count) => count === requests.length).length, 2);
  });

  it("draws groups by weight and prefixes by popularity", () => {
    const groups = [
      { ...GROUP, name: "heavy", weight: 3, tenant: "h", prefixes: 2, zipfExponent: 1, prefixTokens: 16 },
      { ...GROUP, name: "light", weight: 1, tenant: "l" },
    ];
    const requests = generate({ ...BASE, conversations: 8_000, groups });
    const heavy = requests.filter(({ tenant }) => tenant === "h");
    assert.ok(Math.abs(heavy.length / 8_000 - 0.75) < 0.03);
    const counts = new Map<number, number>();
    for (const request of heavy) counts.set(ids(request)[0] ?? -1, (counts.get(ids(request)[0] ?? -1) ?? 0) + 1);
    const [most = 0] = [...counts.values()].sort((a, b) => b - a);
    assert.ok(Math.abs(most / heavy.length - 2 / 3) < 0.03, "the first of two with exponent 1");
  });

  for (const [process, cv] of [
    ["constant", 0],
    ["poisson", 1],
    ["gamma", 2.5],
    ["gamma", 0.5],
  ] as const)
    it(`arrives at the asked rate and variation: ${process} ${cv}`, () => {
      const arrivals = { process, ratePerSecond: 50, ...(process === "gamma" ? { cv } : {}) };
      const times = generate({ ...BASE, conversations: 20_000, arrivals, groups: [GROUP] }).map(
        ({ arrivalMicros }) => arrivalMicros / 1e6,
      );
      const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
      const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
      const deviation = Math.sqrt(gaps.reduce((a, b) => a + (b - mean) ** 2, 0) / gaps.length);
      assert.ok(Math.abs(mean * 50 - 1) < 0.08, `mean gap ${mean}`);
      assert.ok(Math.abs(deviation / mean - cv) < 0.15 * Math.max(cv, 0.1), `variation ${deviation / mean}`);
    });
});

describe("a specification that is wrong", () => {
  const wrong: [string, object, RegExp][] = [
    [
      "an unknown key",
      { ...BASE, groups: [{ ...GROUP, prefix: 3 }] },
      /groups\[0\]: unknown key prefix; accepted: name, weight, prefixes/,
    ],
    [
      "an unknown process",
      { ...BASE, arrivals: { process: "burst" }, groups: [GROUP] },
      /arrivals\.process: expected process: constant, poisson, gamma, weibull, bursty or together/,
    ],
    [
      "an unknown distribution",
      { ...BASE, groups: [{ ...GROUP, turns: { distribution: "pareto" } }] },
      /groups\[0\]\.turns: .*constant, uniform, exponential, normal, lognormal, geometric or empirical/,
    ],
    ["a negative length", { ...BASE, groups: [{ ...GROUP, userTokens: -1 }] }, /groups\[0\]\.userTokens: /],
    [
      "bounds crossed",
      { ...BASE, groups: [{ ...GROUP, userTokens: { distribution: "uniform", min: 5, max: 2 } }] },
      /groups\[0\]\.userTokens: expected min <= max/,
    ],
    ["no groups", { ...BASE, groups: [] }, /groups: /],
    ["a missing rate", { ...BASE, arrivals: { process: "poisson" }, groups: [GROUP] }, /arrivals\.ratePerSecond: /],
  ];
  for (const [name, spec, message] of wrong)
    it(`is refused with the path and what is accepted: ${name}`, () => {
      assert.throws(
        () => parseSyntheticSpec("my-spec.yaml", JSON.stringify(spec)),
        (error) => {
          assert.ok(error instanceof ImportError);
          assert.match(error.message, /^my-spec\.yaml: /);
          assert.match(error.message, message);
          return true;
        },
      );
    });

  it("is refused when it is no YAML", () => {
    assert.throws(() => parseSyntheticSpec("x.yaml", "a: [1"), /x\.yaml: not YAML/);
    assert.throws(() => parseSyntheticSpec("x.yaml", "a: *b"), /x\.yaml: not YAML: Unresolved alias .*: b/);
  });
});
