import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { KeptFile } from "#serve/state/kept-file.ts";
import { KeptOrders } from "#serve/state/kept-orders.ts";
import { StateFolder } from "#serve/state/state-folder.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";

function folderOf(t: TestContext) {
  const path = mkdtempSync(join(tmpdir(), "gnomon-orders-"));
  t.after(() => rmSync(path, { recursive: true, maxRetries: 10, force: true }));
  const faults: FaultEvent[] = [];
  return { path, faults, folder: new StateFolder(path, (event) => void faults.push(event)) };
}

test("what the disk refuses is named at once, counted, reported once, and written as soon as there is room", async (t) => {
  const { path, faults, folder } = folderOf(t);
  const { orders, rollouts, policy } = folder;
  orders.write(rollouts, "before");
  assert.equal(await orders.settled(5_000), "");
  rmSync(path, { recursive: true });
  orders.write(rollouts, "lost");
  orders.write(policy, "version");
  assert.match(await orders.settled(5_000), /^\S+gnomon-orders-\S+: ENOENT/);
  orders.write(rollouts, "after");
  assert.match(await orders.settled(5_000), /ENOENT/);
  assert.ok(orders.status.isUnwritten && orders.status.failures >= 4, JSON.stringify(orders.status));
  assert.deepEqual(
    faults.map(({ kind }) => kind),
    ["state-failed"],
  );
  mkdirSync(path);
  // Nobody asks again.
  await until("it is written", () => !orders.status.isUnwritten);
  assert.equal(readFileSync(join(path, "rollouts.json"), "utf8"), "after");
  assert.equal(readFileSync(join(path, "policy.json"), "utf8"), "version");
  assert.equal(faults.at(-1)?.kind, "state-written");
  assert.equal(await orders.settled(0), "");
});

test("a disk that never answers is named in time, and holds up nothing", async () => {
  const silent = { write: () => new Promise<void>(() => {}) } as unknown as KeptFile;
  const orders = new KeptOrders([silent], { path: "/there", report: () => {} });
  orders.write(silent, "text");
  assert.equal(await orders.settled(20), "/there: the disk did not answer within 0.02 s");
  assert.ok(orders.status.isUnwritten);
});

test("of two files the first is on the disk before the second is begun, whichever was asked for first", async () => {
  const done: string[] = [];
  const file = (name: string) =>
    ({
      write: async (text: string) => {
        done.push(`${name} ${text}`);
        await Promise.resolve();
        done.push(`${name} written`);
      },
    }) as unknown as KeptFile;
  const [policy, rollouts] = [file("policy"), file("rollouts")];
  const orders = new KeptOrders([policy, rollouts], { path: "", report: () => {} });
  orders.write(rollouts, "1");
  await orders.settled(1_000);
  done.length = 0;
  orders.write(rollouts, "2");
  orders.write(policy, "2");
  orders.write(policy, "3");
  await orders.settled(1_000);
  assert.deepEqual(done, ["policy 3", "policy written", "rollouts 2", "rollouts written"]);
});
