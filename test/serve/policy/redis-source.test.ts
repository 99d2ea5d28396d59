import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "#config/config-error.ts";
import type { Policy } from "#serve/policy/policy.ts";
import type { PolicyGround, PolicyProposal } from "#serve/policy/policy-source.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { RedisSource } from "#serve/policy/redis-source.ts";

const GROUND = {} as unknown as PolicyGround;

test("what the key holds is offered once each time that it changes; a Redis that is away changes nothing", async (t) => {
  const held: (string | undefined | Error)[] = [undefined, "a: 1", "a: 1", new Error("away"), "a: 1", "a: 2"];
  const offered: PolicyProposal[] = [];
  const done = Promise.withResolvers<void>();
  const source = new RedisSource({
    key: "gnomon:policy",
    read: async () => {
      const now = held.shift();
      if (held.length === 0) setImmediate(done.resolve);
      if (now instanceof Error) throw now;
      return now;
    },
    policyOf: (text) => ({ text }) as unknown as Policy,
    over: (_inForce, _before, asked) => asked,
    bytesMax: 1_000,
    watchMillis: 1,
  });
  t.after(() => source.stop());
  source.start((proposal) => {
    offered.push(proposal);
    return { outcome: "unchanged", version: 1 };
  });
  await done.promise;
  await source.stop();
  assert.deepEqual(
    offered.map(({ source: from, by, read }) => `${from} ${by} ${read(GROUND).text}`),
    ["redis gnomon:policy a: 1", "redis gnomon:policy a: 2"],
  );
});

test("a document that is too large is refused by its size", async (t) => {
  const offered = Promise.withResolvers<PolicyProposal>();
  const source = new RedisSource({
    key: "k",
    read: () => Promise.resolve("x".repeat(11)),
    policyOf: () => assert.fail("it is not read"),
    over: (_inForce, _before, asked) => asked,
    bytesMax: 10,
    watchMillis: 1_000,
  });
  t.after(() => source.stop());
  source.start((proposal) => {
    offered.resolve(proposal);
    return { outcome: "unchanged", version: 1 };
  });
  const { read } = await offered.promise;
  assert.throws(() => read(GROUND), new ConfigError(["k: expected at most 10 bytes, got 11"]));
});

test("what was refused is offered again when it is retried, and what was accepted is not", async (t) => {
  const outcomes = ["refused", "applied"] as const;
  let [offered, reads] = [0, 0];
  const source = new RedisSource({
    key: "k",
    read: () => {
      reads++;
      return Promise.resolve("a: 1");
    },
    policyOf: (text) => ({ text }) as unknown as Policy,
    over: (_inForce, _before, asked) => asked,
    bytesMax: 1_000,
    watchMillis: 1,
  });
  t.after(() => source.stop());
  source.start(() => {
    const outcome = outcomes[offered++] ?? "applied";
    return outcome === "refused" ? { outcome, version: 1, problems: [] } : { outcome, version: 1, changes: [] };
  });
  const looks = (count: number) => {
    const last = reads + count;
    return until("it is read further times", () => reads >= last);
  };
  await looks(3);
  assert.equal(offered, 1);
  source.retry();
  await until("it is offered again", () => offered === 2);
  source.retry();
  await looks(3);
  assert.equal(offered, 2);
});
