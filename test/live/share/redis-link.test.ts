import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, test, type TestContext } from "node:test";
import { type RedisPlace, redisClient } from "#live/share/redis-connection.ts";
import { RedisLink } from "#live/share/redis-link.ts";
import { WIRE_VERSION } from "#live/share/report.ts";
import { chain } from "../../core/state.ts";
import { type Replica, replica, until } from "./memory-fleet.ts";
import { type OwnRedis, ownRedis } from "./redis-server.ts";

let redis: OwnRedis | undefined;
before(async () => {
  redis = await ownRedis(["--maxmemory-policy", "noeviction"]);
});
after(async () => redis?.stop());

const WITHOUT = "no redis-server in PATH";
let streams = 0;

function place(url: string, timeoutMillis = 30_000): RedisPlace {
  return { url, cluster: [], sentinels: [], sentinelName: "", tls: false, timeoutMillis };
}

/** Two replicas that share one stream of their own. */
function replicas(t: TestContext, { url }: OwnRedis, timeoutMillis?: number): [Replica, Replica] {
  const stream = `test-${++streams}`;
  const at = place(url, timeoutMillis);
  return [started(t, at, stream, "one"), started(t, at, stream, "two")];
}

function started(t: TestContext, at: RedisPlace, stream: string, name: string): Replica {
  const link = new RedisLink({ place: at, stream, entriesMax: 10_000, warmMillis: 60_000, leaseMillis: 200 });
  const made = replica(t, link, name);
  void made.share.start();
  return made;
}

const shared = (...all: readonly Replica[]) => until(() => all.every(isShared), "they share");
const isShared = ({ share }: Replica) => share.status().state === "shared";
const known = (of: Replica) => of.intake.router.peers.openCharges;

test("replicas share over Redis, and one that comes later knows what was sent before", async (t) => {
  if (redis === undefined) return t.skip(WITHOUT);
  const [one, two] = replicas(t, redis);
  await shared(one, two);
  one.arrive("r0", { blocks: chain(1, 600) });
  one.finish("r0");
  one.arrive("r1");
  await until(() => known(two) === 1, "the charge is known");
  const late = started(t, place(redis.url), `test-${streams}`, "late");
  await until(() => known(late) === 1, "the snapshot came");
  late.arrive("r2", { blocks: chain(1, 600) });
  assert.equal(late.hits("r2"), 9_600);
  assert.ok(one.share.status().lagMillis !== undefined, "own reports come back, by which the lag is measured");
});

test("Redis killed: each goes on alone; restarted, without what it held: they share again", async (t) => {
  const own = await ownRedis();
  if (own === undefined) return t.skip(WITHOUT);
  t.after(() => own.stop());
  const [one, two] = replicas(t, own);
  await shared(one, two);
  one.arrive("r1");
  await until(() => known(two) === 1, "the charge is known");
  await own.kill();
  await until(() => !isShared(one) && !isShared(two), "they are alone");
  assert.notEqual(one.arrive("r2"), "");
  await until(() => known(two) === 0, "the lease ends");
  await own.restart();
  await until(() => known(two) === 2, "what is in flight is known again");
  assert.deepEqual(
    two.events.map(({ kind }) => kind),
    ["sharing-lost", "sharing-recovered"],
  );
});

test("Redis stopped for a while: reports are dropped and counted, and made good once it goes on", async (t) => {
  if (redis === undefined) return t.skip(WITHOUT);
  const [one, two] = replicas(t, redis, 150);
  await shared(one, two);
  redis.signal("SIGSTOP");
  one.arrive("r1");
  await until(() => !isShared(one), "it is alone");
  one.arrive("r2");
  await until(() => one.share.counts.newsDropped > 0, "news are dropped");
  redis.signal("SIGCONT");
  await until(() => known(two) === 2, "all is known");
});

test("Redis full: nobody can write, each goes on alone, until there is room", async (t) => {
  if (redis === undefined) return t.skip(WITHOUT);
  const [one, two] = replicas(t, redis);
  await shared(one, two);
  const admin = redisClient(place(redis.url), 1_000);
  t.after(() => admin.disconnect());
  await admin.connect();
  await admin.config("SET", "maxmemory", "1");
  one.arrive("r1");
  await until(() => !isShared(one), "it is alone");
  assert.match(one.events.at(-1)!.detail, /maxmemory/);
  await admin.config("SET", "maxmemory", "0");
  await until(() => known(two) === 1, "it is known");
});

test("a shared text is replaced by one of many that ask at once; without Redis, asking fails with the reason", async (t) => {
  const own = await ownRedis();
  if (own === undefined) return t.skip(WITHOUT);
  t.after(() => own.stop());
  const [one, two] = replicas(t, own);
  await shared(one, two);
  const links = [1, 2].map(() => {
    const stream = `test-${streams}`;
    const made = new RedisLink({ place: place(own.url), stream, entriesMax: 10, warmMillis: 1000, leaseMillis: 200 });
    const nothing = () => {};
    made.start({ connected: nothing, lost: nothing, received: nothing, caughtUp: nothing });
    t.after(() => made.stop());
    return made;
  });
  const [first, second] = links as [RedisLink, RedisLink];
  await until(() => links.every(({ takes }) => takes), "both write");
  assert.equal(await first.readShared("text"), undefined);
  const asked = await Promise.all(
    links.flatMap((link, i) => [link, link].map((l) => l.replaceShared("text", 0, `${i}`))),
  );
  assert.deepEqual(
    asked.filter((revision) => revision !== undefined),
    [1],
  );
  assert.equal(await second.replaceShared("text", 1, "new"), 2);
  assert.deepEqual(await first.readShared("text"), { revision: 2, text: "new" });
  await own.kill();
  await assert.rejects(first.readShared("text"), /^Error: Redis at 127\.0\.0\.1:\d+: no connection/);
  await assert.rejects(first.replaceShared("text", 2, "lost"), /no connection|closed/);
  await own.restart();
  await until(() => links.every(({ takes }) => takes), "both write again");
  assert.equal(await first.readShared("text"), undefined);
  assert.equal(await first.replaceShared("text", 0, "again"), 1);
});

test("what limits have counted stays in Redis with its age, by its clock, and neighbouring versions are read too", async (t) => {
  if (redis === undefined) return t.skip(WITHOUT);
  const client = redisClient(place(redis.url), 10_000);
  await client.connect();
  t.after(() => client.disconnect());
  const [stream, key] = [`test-${++streams}`, `limits-${streams}`];
  const link = new RedisLink({
    place: { ...place(redis.url), timeoutMillis: 10_000 },
    stream,
    entriesMax: 100,
    warmMillis: 0,
    leaseMillis: 200,
  });
  const isConnected = new Promise<void>((resolve) => {
    const none = (): void => {};
    link.start({ received: none, caughtUp: none, connected: resolve, lost: none });
  });
  t.after(() => link.stop());
  await isConnected;
  assert.deepEqual(await link.readLimits(key), []);
  await link.writeLimits(key, "own", 3_600_000);
  for (const by of [-2, -1, 1, 2]) await client.set(`${key}:${WIRE_VERSION + by}`, `by ${by}`, "PX", 1_800_000);
  // As if half an hour had passed.
  await client.pexpire(`${key}:${WIRE_VERSION}`, 1_800_000);
  const found = await link.readLimits(key);
  assert.deepEqual(
    found.map(({ text }) => text),
    ["by -1", "own", "by 1"],
  );
  for (const { leftMillis } of found) assert.ok(leftMillis > 900_000 && leftMillis <= 1_800_000, String(leftMillis));
});

test("a connection that nobody answers any more is made anew", async (t) => {
  if (redis === undefined) return t.skip(WITHOUT);
  const { port } = redis;
  let isSilent = false;
  const connections: Socket[] = [];
  const proxy = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    // What is silent once stays so, as behind an address that nobody has any more.
    const isOld = () => isSilent && connections.indexOf(client) < silentUpTo;
    connections.push(client);
    client.on("data", (bytes) => isOld() || server.write(bytes));
    server.on("data", (bytes) => isOld() || client.write(bytes));
    for (const one of [client, server]) one.on("error", () => {});
    client.on("close", () => server.destroy());
  }).listen(0, "127.0.0.1");
  let silentUpTo = 0;
  await once(proxy, "listening");
  t.after(() => {
    for (const one of connections) one.destroy();
    proxy.close();
  });
  const at = place(`redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`, 300);
  const one = started(t, at, `test-${++streams}`, "one");
  await shared(one);
  silentUpTo = connections.length;
  isSilent = true;
  await until(() => !isShared(one), "it is alone");
  await until(() => isShared(one), "by new connections it shares again");
  assert.ok(connections.length > silentUpTo);
});
