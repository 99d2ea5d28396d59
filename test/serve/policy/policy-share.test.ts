import assert from "node:assert/strict";
import { test } from "node:test";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { policyFromDocument } from "#serve/policy/policy-admin.ts";
import { policyOf } from "#serve/policy/policy.ts";
import { PolicyKeeper } from "#serve/policy/policy-keeper.ts";
import { PolicyShare } from "#serve/policy/policy-share.ts";
import { servePlan } from "../../../src/cli/serve/serve-options.ts";
import { MemoryStore } from "../state/memory-store.ts";

function replica(store: MemoryStore, set: readonly string[] = []) {
  const plan = servePlan({ set: ["routing.profile=gnomon", ...set], endpoint: ["http://127.0.0.1:9"] }, {});
  const applied: number[] = [];
  const faults: FaultEvent[] = [];
  const keeper = new PolicyKeeper({
    start: policyOf(plan, plan.config),
    historyMax: 8,
    apply: ({ version }) => void applied.push(version),
    report: () => {},
  });
  const report = (event: FaultEvent) => void faults.push(event);
  const share = new PolicyShare({ store, keeper, running: plan.config, report });
  const change = (document: object, source = "admin") =>
    keeper.offer({
      source,
      by: "test",
      note: "",
      read: (ground) => policyFromDocument(document, "merge", ground, plan.config, {}),
    });
  return { keeper, share, change, applied, faults };
}

type Replica = ReturnType<typeof replica>;

async function syncAll(replicas: readonly Replica[]): Promise<void> {
  for (let i = 0; i < 3; i++) for (const one of replicas) await one.share.sync();
}

/** All have one policy under one number. */
function agreed(replicas: readonly Replica[]) {
  const [first, ...others] = replicas.map(({ keeper }) => ({ version: keeper.version, text: keeper.inForce.text }));
  for (const other of others) assert.deepEqual(other, first);
  const { keeper } = replicas[0]!;
  return { version: keeper.version, profile: keeper.inForce.profile.name, limits: keeper.inForce.config.limits };
}

test("a policy that is set at any replica is in force at all, under one number, by whom and from where", async () => {
  const store = new MemoryStore();
  const all = [replica(store), replica(store), replica(store)];
  await syncAll(all);
  assert.equal(agreed(all).version, 1);
  all[1]!.change({ routing: { profile: "lmetric" } });
  await syncAll(all);
  assert.deepEqual([agreed(all).version, agreed(all).profile], [2, "lmetric"]);
  all[2]!.change({ limits: { attemptsMax: 5 } });
  await syncAll(all);
  assert.deepEqual([agreed(all).version, agreed(all).limits.attemptsMax], [3, 5]);
  const heads = all.map(({ keeper }) =>
    keeper.history().versions.map(({ version, source, by }) => [version, source, by]),
  );
  assert.deepEqual(heads[0], [
    [3, "admin", "test"],
    [2, "admin", "test"],
    [1, "start", ""],
  ]);
  for (const head of heads) assert.deepEqual(head, heads[0]);
  const written = await store.read("policy-in-force");
  await syncAll(all);
  assert.deepEqual(await store.read("policy-in-force"), written, "nobody writes what is there");
});

test("of two changes at the same time none is lost, and all end with both under one number", async () => {
  const store = new MemoryStore();
  const [one, other, third] = [replica(store), replica(store), replica(store)] as const;
  await syncAll([one, other, third]);
  one.change({ limits: { attemptsMax: 5 } });
  other.change({ routing: { profile: "lmetric" } });
  assert.deepEqual([one.keeper.version, other.keeper.version], [2, 2]);
  await syncAll([one, other, third]);
  const { version, profile, limits } = agreed([one, other, third]);
  assert.deepEqual([version, profile, limits.attemptsMax], [3, "lmetric", 5]);
});

test("while the store is away each goes on by itself; afterwards, also with an empty one, both changes are in force", async () => {
  for (const isEmptied of [false, true]) {
    const store = new MemoryStore();
    const [one, other] = [replica(store), replica(store)] as const;
    one.change({ routing: { profile: "llm-d" } });
    await syncAll([one, other]);
    store.isAway = true;
    if (isEmptied) store.empty();
    one.change({ routing: { profile: "lmetric" } });
    other.change({ limits: { attemptsMax: 5 } });
    assert.match(await one.share.sync(), /away/);
    await syncAll([one, other]);
    assert.deepEqual(
      one.faults.map(({ kind }) => kind),
      ["state-failed"],
      "reported once",
    );
    store.isAway = false;
    await syncAll([one, other]);
    const { version, profile, limits } = agreed([one, other]);
    assert.deepEqual([version, profile, limits.attemptsMax], [4, "lmetric", 5], String(isEmptied));
  }
});

test("one that starts takes what is in force, and brings what its configuration has changed since", async () => {
  const store = new MemoryStore();
  const one = replica(store);
  one.change({ routing: { profile: "lmetric" } });
  await syncAll([one]);
  const late = replica(store);
  await late.share.sync();
  assert.deepEqual([agreed([one, late]).version, agreed([one, late]).profile], [2, "lmetric"]);
  const newer = replica(store, ["limits.attemptsMax=7"]);
  await syncAll([newer, one, late]);
  const { version, profile, limits } = agreed([newer, one, late]);
  assert.deepEqual([version, profile, limits.attemptsMax], [3, "lmetric", 7]);
  // One that starts once more with the same configuration changes nothing.
  const again = replica(store, ["limits.attemptsMax=7"]);
  await syncAll([again, one]);
  assert.equal(agreed([again, one, newer]).version, 3);
});

test("a policy that a replica cannot have is refused there and reported once; it does not take it back from the others", async () => {
  const store = new MemoryStore();
  const [one, other] = [replica(store), replica(store, ["policy.documentBytesMax=8192"])] as const;
  await syncAll([one, other]);
  const models = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`${"m".repeat(100)}${i}`, "llm-d"]));
  one.change({ routing: { models } });
  await syncAll([one, other, one]);
  assert.deepEqual([one.keeper.version, other.keeper.version], [2, 1]);
  assert.equal(other.faults.filter(({ kind }) => kind === "policy-refused").length, 1);
});
