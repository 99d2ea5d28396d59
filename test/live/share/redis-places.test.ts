import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { writeFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RedisPlace, redisClient } from "#live/share/redis-connection.ts";
import { RedisLink } from "#live/share/redis-link.ts";
import { type Replica, replica, until } from "./memory-fleet.ts";
import { freePort, type OwnRedis, ownRedis } from "./redis-server.ts";

const NOWHERE: RedisPlace = { cluster: [], sentinels: [], sentinelName: "fleet", tls: false, timeoutMillis: 300 };
const WITHOUT = "no redis-server in PATH";
/** They take seconds: servers that elect one another wait for each other. */
const isAsked = process.env["TEST_FAULTS"] !== undefined;
const options = { skip: isAsked ? false : "slow: asked for by TEST_FAULTS=1" };

function pair(t: TestContext, place: RedisPlace): [Replica, Replica] {
  const of = (name: string): Replica => {
    const stream = "gnomon:news";
    const link = new RedisLink({ place, stream, entriesMax: 1_000, warmMillis: 60_000, leaseMillis: 1_000 });
    const made = replica(t, link, name, { leaseMillis: 1_000 });
    void made.share.start();
    return made;
  };
  return [of("one"), of("two")];
}

async function share([one, two]: readonly [Replica, Replica], charges: number): Promise<void> {
  await until(() => [one, two].every(({ share: of }) => of.status().state === "shared"), "they share", 15_000);
  one.arrive(`r${charges}`);
  await until(() => two.intake.router.peers.openCharges === charges, `${charges} are known`, 15_000);
}

async function servers(t: TestContext, count: number, flags: readonly string[]): Promise<OwnRedis[] | undefined> {
  const all = await Promise.all(Array.from({ length: count }, () => ownRedis(flags)));
  for (const one of all) t.after(() => one?.stop());
  return all.every((one) => one !== undefined) ? all : undefined;
}

const command = async (port: number, ...words: readonly [string, ...string[]]): Promise<unknown> => {
  const client = redisClient({ ...NOWHERE, url: `redis://127.0.0.1:${port}` }, 2_000);
  await client.connect();
  const [name, ...rest] = words;
  const answer: unknown = await client.call(name, ...rest);
  client.disconnect();
  return answer;
};

test("a cluster of three: replicas share, whichever nodes they are given", options, async (t) => {
  const nodes = await servers(t, 3, ["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]);
  if (nodes === undefined) return t.skip(WITHOUT);
  const ports = nodes.map(({ port }) => port);
  const ranges = [
    [0, 5_460],
    [5_461, 10_922],
    [10_923, 16_383],
  ] as const;
  for (const [i, port] of ports.entries()) {
    await command(port, "CLUSTER", "ADDSLOTSRANGE", ...ranges[i]!.map(String));
    await command(port, "CLUSTER", "SET-CONFIG-EPOCH", String(i + 1));
    if (i > 0) await command(ports[0]!, "CLUSTER", "MEET", "127.0.0.1", String(port));
  }
  const isWhole = async () =>
    (await Promise.all(ports.map((port) => command(port, "CLUSTER", "INFO")))).every((info) =>
      /cluster_state:ok[^]*cluster_known_nodes:3/.test(String(info)),
    );
  for (let i = 0; i < 200 && !(await isWhole()); i++) await pause(50);
  for (const port of [ports[0]!, ports[2]!]) {
    const both = pair(t, { ...NOWHERE, cluster: [`127.0.0.1:${port}`] });
    await share(both, 1);
    assert.deepEqual(both[1].events, []);
    for (const { share: one } of both) await one.stop();
  }
});

test("Sentinels: replicas find the server, and its successor when it dies", options, async (t) => {
  const data = await servers(t, 2, []);
  if (data === undefined) return t.skip(WITHOUT);
  const [master, second] = data as [OwnRedis, OwnRedis];
  await command(second.port, "REPLICAOF", "127.0.0.1", String(master.port));
  const folder = await mkdtemp(join(tmpdir(), "gnomon-sentinel-"));
  const sentinels: OwnRedis[] = [];
  for (let i = 0; i < 3; i++) {
    const file = join(folder, `sentinel-${i}.conf`);
    await writeFile(
      file,
      `sentinel monitor fleet 127.0.0.1 ${master.port} 2\nsentinel down-after-milliseconds fleet 400\n` +
        "sentinel failover-timeout fleet 2000\n",
    );
    const port = await freePort();
    const sentinel = await ownRedis([], port, [file, "--sentinel"]);
    assert.ok(sentinel !== undefined);
    t.after(() => sentinel.stop());
    sentinels.push(sentinel);
  }
  const both = pair(t, { ...NOWHERE, sentinels: sentinels.map(({ port }) => `127.0.0.1:${port}`) });
  await share(both, 1);
  await master.kill();
  await until(() => both[0].share.counts.losses > 0, "it is alone", 10_000);
  await until(() => both.every(({ share: of }) => of.status().state === "shared"), "they share again", 20_000);
  both[0].arrive("after");
  await until(() => both[1].intake.router.peers.openCharges === 2, "the successor passes reports", 15_000);
});
