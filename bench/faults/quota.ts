import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stringify } from "yaml";
import { BenchRedis, slowProxy } from "../replicas/redis.ts";
import { shareOf } from "../replicas/processes.ts";
import { ask, atRate } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, startGateway } from "./gateway-under-test.ts";
import { type GatewayTrace, longestLag, mostInFlight, mostWithin, readQuotaTrace } from "./quota-trace.ts";
import type { Row } from "./report.ts";

const SECRET_ENV = "BENCH_SECRET";
/** Of each tenant, at each gateway. */
const PER_SECOND = 60;
const SECONDS = 3;
/** Limits by gateway, so that all of them are reached within the time: of a day, and in flight. */
const DAILY = 45;
const IN_FLIGHT = 15;
/** One has a quota of requests in a day, the other one of requests in flight. */
const TENANTS = ["daily", "busy"] as const;
const KEYS = { daily: "the-key-of-the-daily-tenant", busy: "the-key-of-the-busy-tenant" } as const;
const SLOWED_MILLIS = 200;
const WRITTEN_MILLIS = 2_000;
/** Gateways that are replaced, and those that come for them. */
const FIRST = ["first-0", "first-1"];
const NEXT = ["second-0", "second-1"];

type Redis = "well" | "slowed" | "stopped" | "killed";

const TITLES: Readonly<Record<Redis, string>> = {
  well: "Redis well",
  slowed: `Redis slowed by ${SLOWED_MILLIS} ms each way`,
  stopped: "Redis stopped (SIGSTOP)",
  killed: "Redis killed, and started again empty",
};

/**
 * A tenant's quota where several gateways share: all of them are asked at once for far more than it allows. What is let in
 * beyond it is at most what the others let in before their news came: (gateways - 1) times the most that one lets in within
 * the longest lag, both as the traces show them, and where nothing comes through, (gateways - 1) times the quota. Once news
 * come through again, each gateway counts what all of them let in.
 */
export async function quotaRows(seed: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const count of [2, 4]) {
    for (const redis of ["well", "slowed", "stopped", "killed"] as const) rows.push(await exceeded(seed, count, redis));
  }
  rows.push(...(await replacedRows(seed)));
  return rows;
}

/** A quota of a day, and every gateway replaced. */
export async function replacedRows(seed: number): Promise<Row[]> {
  return [await replaced(seed, "one after the other"), await replaced(seed, "killed at once (SIGKILL)")];
}

/** A quota of a day that is used up, and then every gateway replaced: nothing more is let in. */
async function replaced(seed: number, how: "one after the other" | "killed at once (SIGKILL)"): Promise<Row> {
  const count = FIRST.length;
  const folder = mkdtempSync(join(tmpdir(), "gnomon-quota-"));
  const redis = await BenchRedis.start();
  const engines = await startEngines(2, { slots: 1024, tokens: 2, tokenMillis: 10 }, seed);
  process.env[SECRET_ENV] = "a secret of the bench";
  const ports = engines.map(({ port }) => port);
  const url = `redis://127.0.0.1:${redis.port}`;
  const started = (name: string) => startGateway(ports, configOf(folder, name, count, url));
  const headers = { authorization: `Bearer ${KEYS.daily}` };
  const letIn = async ({ port }: GatewayUnderTest, requests: number): Promise<number> => {
    let ok = 0;
    for (let i = 0; i < requests; i++) if ((await ask(port, { stream: false, headers })).status === 200) ok++;
    return ok;
  };
  let gateways = await Promise.all(FIRST.map(started));
  await allShare(gateways);
  let before = 0;
  for (const gateway of gateways) before += await letIn(gateway, 2 * DAILY * count);
  await known(gateways);
  const isKilled = how !== "one after the other";
  if (isKilled) {
    // What was let in within the last second is not written down yet.
    await pause(WRITTEN_MILLIS);
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    gateways = await Promise.all(NEXT.map(started));
    await allShare(gateways);
  } else gateways = await inTurn(gateways, started);
  let after = 0;
  for (const gateway of gateways) after += await letIn(gateway, DAILY);
  const counted = await Promise.all(gateways.map(countedOfDay));
  for (const gateway of gateways) await gateway.stop();
  for (const engine of engines) await engine.killed();
  await redis.kill();
  const traces = [];
  for (const name of [...(isKilled ? [] : FIRST), ...NEXT]) traces.push(await readQuotaTrace(join(folder, name)));
  rmSync(folder, { recursive: true, force: true });
  const differing = traces.reduce((sum, one) => sum + one.differing, 0);
  return {
    what: `a quota of a day that is used up, then both gateways replaced, ${how}`,
    figure: `${before} of ${DAILY * count} let in before, ${after} after; counted ${counted.join(", ")}; ${differing} decisions replayed otherwise`,
    holds: before >= DAILY * count && after === 0 && differing === 0 && counted.every((one) => one >= before),
  };
}

async function inTurn(
  before: readonly GatewayUnderTest[],
  started: (name: string) => Promise<GatewayUnderTest>,
): Promise<GatewayUnderTest[]> {
  let gateways = [...before];
  for (const name of NEXT) {
    const next = await started(name);
    await allShare([...gateways, next]);
    await gateways[0]!.stop();
    gateways = [...gateways.slice(1), next];
  }
  return gateways;
}

async function exceeded(seed: number, count: number, how: Redis): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-quota-"));
  const redis = await BenchRedis.start();
  const proxy = await slowProxy(redis.port, () => (how === "slowed" ? SLOWED_MILLIS : 0));
  const engines = await startEngines(2, { slots: 1024, tokens: 20, tokenMillis: 50 }, seed);
  const names = Array.from({ length: count }, (_, i) => `gateway-${i}`);
  process.env[SECRET_ENV] = "a secret of the bench";
  const ports = engines.map(({ port }) => port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const gateways = await Promise.all(names.map((name) => startGateway(ports, configOf(folder, name, count, url))));
  await allShare(gateways);
  if (how === "stopped") redis.pause();
  if (how === "killed") await redis.kill();
  let failed = 0;
  const hammer = async ({ port }: GatewayUnderTest, tenant: (typeof TENANTS)[number]): Promise<void> =>
    atRate(PER_SECOND, SECONDS, async () => {
      const { status } = await ask(port, { stream: false, headers: { authorization: `Bearer ${KEYS[tenant]}` } });
      if (status !== 200 && status !== 429) failed++;
    });
  await Promise.all(gateways.flatMap((gateway) => TENANTS.map((tenant) => hammer(gateway, tenant))));
  if (how === "stopped") redis.goOn();
  if (how === "killed") await redis.start();
  await known(gateways);
  const counted = await Promise.all(gateways.map(countedOfDay));
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  const traces = new Map<string, GatewayTrace>();
  for (const name of names) traces.set(name, await readQuotaTrace(join(folder, name)));
  for (const engine of engines) await engine.killed();
  proxy.end();
  await redis.kill();
  rmSync(folder, { recursive: true, force: true });
  return judged(traces, count, how, failed, counted);
}

function configOf(folder: string, name: string, count: number, url: string): object {
  const file = join(folder, "keys.yaml");
  const keys = TENANTS.map((tenant) => ({
    name: tenant,
    sha256: createHash("sha256").update(KEYS[tenant]).digest("hex"),
  }));
  writeFileSync(file, stringify({ keys }));
  return {
    // On a busy machine an answer may take long, and a link that is given up is another matter.
    share: { url, replica: name, timeoutMillis: 10_000 },
    prefix: { secretEnv: SECRET_ENV },
    clients: { keysFile: file },
    record: { directory: join(folder, name) },
    log: { level: "error" },
    admission: {
      limits: {
        daily: { type: "usage-quota", windowMillis: 86_400_000, byTenant: { daily: { requestsMax: DAILY * count } } },
        "in-flight": { type: "tenant-quota", requestsMax: 1_000_000, byTenant: { busy: IN_FLIGHT * count } },
      },
    },
  };
}

/** What was decided last has come to all of them. */
async function known(gateways: readonly GatewayUnderTest[]): Promise<void> {
  const until = performance.now() + 20_000;
  let waits = true;
  while (waits && performance.now() < until) {
    await pause(4 * SLOWED_MILLIS);
    const shares = await Promise.all(
      gateways.map(({ adminPort }) => shareOf({ adminUrl: `http://127.0.0.1:${adminPort}` })),
    );
    const isQuiet = (peers: (typeof shares)[number]["peers"]): boolean =>
      peers.length === gateways.length - 1 && peers.every(({ requestsInFlight }) => requestsInFlight === 0);
    waits = shares.some(({ state, peers }) => state !== "shared" || !isQuiet(peers));
  }
}

/** Requests of the day's tenant, as one gateway's limit counts them. */
async function countedOfDay({ adminPort }: GatewayUnderTest): Promise<number> {
  const { limits } = (await (await fetch(`http://127.0.0.1:${adminPort}/gnomon/admission`)).json()) as {
    limits: { name: string; most: { subject: string; used: number }[] }[];
  };
  return limits.find(({ name }) => name === "daily")?.most.find(({ subject }) => subject === "daily")?.used ?? 0;
}

async function allShare(gateways: readonly GatewayUnderTest[]): Promise<void> {
  const until = performance.now() + 30_000;
  for (;;) {
    const shares = await Promise.all(
      gateways.map(({ adminPort }) => shareOf({ adminUrl: `http://127.0.0.1:${adminPort}` })),
    );
    if (shares.every(({ peers }) => peers.length === gateways.length - 1)) return;
    if (performance.now() > until) throw new Error("the gateways do not find each other");
    await pause(50);
  }
}

function judged(
  traces: ReadonlyMap<string, GatewayTrace>,
  count: number,
  how: Redis,
  failed: number,
  counted: readonly number[],
): Row {
  const all = [...traces.values()];
  const isCut = how === "stopped" || how === "killed";
  const lag = isCut ? Infinity : longestLag(traces);
  const letIn = all.flatMap((one) => one.letIn).filter(({ tenant }) => tenant === "daily").length;
  const cells = [
    { what: "in a day", quota: DAILY * count, got: letIn, tenant: "daily" },
    { what: "in flight", quota: IN_FLIGHT * count, got: mostInFlight(all, "busy"), tenant: "busy" },
  ].map(({ what, quota, got, tenant }) => {
    // One gateway alone never exceeds it.
    const most = isCut ? quota : mostWithin(all, tenant, lag);
    const bound = (count - 1) * most;
    const text = `${what} ${got} of ${quota}: ${Math.max(0, got - quota)} over, bound ${bound}`;
    return { text, holds: got >= quota && got - quota <= bound && Number.isFinite(bound) };
  });
  const differing = all.reduce((sum, one) => sum + one.differing, 0);
  const decisions = all.reduce((sum, one) => sum + one.decisions, 0);
  const lagText = isCut ? "nothing comes through" : `longest lag ${(lag / 1000).toFixed(0)} ms`;
  return {
    what: `a tenant's quotas at ${count} gateways that share, ${TITLES[how]}, ${PER_SECOND} requests a second at each`,
    figure: `${cells.map(({ text }) => text).join("; ")}; ${lagText}; afterwards counted ${counted.join(", ")}; ${failed} failed; ${decisions} decisions replayed, ${differing} differ`,
    holds:
      cells.every(({ holds }) => holds) &&
      failed === 0 &&
      differing === 0 &&
      lag > 0 &&
      (isCut || lag < Infinity) &&
      counted.every((one) => one === letIn),
  };
}

/** Whether there is a Redis to start. */
export function hasRedis(): boolean {
  return spawnSync("redis-server", ["--version"]).status === 0;
}
