import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import { aibrixProfile, parseStrategies } from "#config/peer-aibrix.ts";
import { loadProfile } from "#config/profile-file.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { randomFor } from "#core/base/random.ts";
import { vectorRequest, vectorSnapshots } from "../core/vector-state.ts";

const refuses = (text: string, expected: RegExp) =>
  assert.throws(
    () => aibrixProfile(text),
    (error: unknown) => error instanceof ConfigError && expected.test(error.lines.join("\n")),
    text,
  );

test("AIBrix: strategies are parsed as its router parses them", () => {
  assert.deepEqual(parseStrategies("prefix-cache:3,least-latency"), [
    { name: "prefix-cache", weight: 3 },
    { name: "least-latency", weight: 1 },
  ]);
  assert.deepEqual(parseStrategies("throughput:0, least-request:10"), [{ name: "least-request", weight: 10 }]);
  for (const text of ["", ",,", "a:1:2", "a:0.5", "a:-1", "a:1000001", "a:0,b:0"]) {
    assert.throws(() => parseStrategies(text), ConfigError, text);
  }
});

test("a strategy alone is its profile; unknown ones and such that do not score are refused with the accepted", () => {
  assert.equal(aibrixProfile("prefix-cache").name, "aibrix-prefix-cache");
  assert.equal(loadProfile("least-request:5").name, "aibrix-least-request");
  refuses("least-request:1,pd:1", /prefix-cache.*unknown strategy "pd"/);
  refuses("least-request:1,random:1", /expected one that scores.*got random/);
  refuses("least-request:1,least-request:2", /least-request twice/);
});

test("AIBrix: scores are spread between the candidates, weighed by their share, and the highest sum wins", () => {
  const { name, spec } = aibrixProfile("prefix-cache:2,least-request:8");
  assert.equal(name, "prefix-cache:2,least-request:8");
  const profile = buildProfile(name, spec);
  const snapshots = vectorSnapshots([
    { hit: 100, inFlight: 30 },
    { hit: 50, inFlight: 20 },
    { hit: 0, inFlight: 10 },
  ]);
  const ids = snapshots.map(({ id }) => id);
  const request = vectorRequest({ blocks: 100 });
  const choice = profile.choose(request, snapshots, ids, new Uint8Array(3), randomFor(1, 1));
  [0.2, 0.5, 0.8].forEach((total, i) => assert.ok(Math.abs(choice.breakdown.totals[i]! - total) < 1e-12, `${i}`));
  assert.equal(choice.index, 2);
});

test("several profiles are no list of strategies, and strategies that have a profile's name still are one", () => {
  assert.throws(
    () => loadProfile("gnomon,lmetric"),
    (error: unknown) => error instanceof ConfigError && /expected one profile, got 2/.test(error.lines.join()),
  );
  assert.equal(loadProfile("least-request,least-kv-cache").name, "least-request:1,least-kv-cache:1");
});
