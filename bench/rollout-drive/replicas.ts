import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PolicyView } from "#live/admin/policy-admin.ts";
import { ownRedis } from "../../test/live/share/redis-server.ts";
import { Clients } from "./clients.ts";
import { DrivenGateway, startEngines } from "./gateway.ts";

const ENGINES = 3;
const CLIENTS = 24;
const SECRET_ENV = "BENCH_SECRET";
const ARMS = [{ name: "control" }, { name: "other", profile: "llm-d" }];
const SWITCHBACK = { kind: "switchback", windowMillis: 4_000, washoutMillis: 500 };
const MORE = { guardrails: [], baselineMillis: 0, cooldownMillis: 0 };

/**
 * Two gateways that share over a Redis run one rollout in step and keep nothing else: one of them is killed with -9 and
 * started again, Redis is killed and comes back empty, and steps are made at either. False where one thing is not as it
 * must be.
 */
export async function replicas(): Promise<boolean> {
  const redis = await ownRedis();
  if (redis === undefined) return skipped();
  process.env[SECRET_ENV] = "of the bench";
  const folder = mkdtempSync(join(tmpdir(), "gnomon-rollout-replicas-"));
  const engines = await startEngines(ENGINES, "emulated-default");
  const [one, other] = ["one", "other"].map((name) => {
    const own = join(folder, name);
    mkdirSync(own);
    return new DrivenGateway(own, {
      listen: { port: 0 },
      endpoints: engines.map((url) => ({ url })),
      prefix: { secretEnv: SECRET_ENV },
      share: { url: redis.url, key: "bench" },
      rollout: { lookMillis: 250 },
    });
  }) as [DrivenGateway, DrivenGateway];
  try {
    await Promise.all([one.start(), other.start()]);
    let asked = 0;
    const clients = new Clients(() => (asked++ % 2 === 0 ? one.url : other.url), CLIENTS);
    const lags: number[] = [];
    const both = async (name: string, phase: string): Promise<void> => {
      const since = performance.now();
      for (const gateway of [one, other]) await gateway.until(name, phase, (rollout) => rollout.phase === phase);
      lags.push(performance.now() - since);
    };
    await one.admin("POST", "/rollout", { name: "first", arms: ARMS, design: SWITCHBACK, ...MORE });
    await both("first", "running");
    await seconds(9);
    clients.pause();
    await one.end("SIGKILL");
    await one.start();
    await one.until("first", "the store", ({ phase }) => phase === "running");
    const windows = await Promise.all([one, other].map(async (of) => (await of.rollout("first")).window?.number));
    clients.resume();
    await seconds(5);
    await redis.kill();
    await other.admin("POST", "/rollout/first/rollback", { reason: "while the store is away" });
    await seconds(2);
    const { phase: apart } = await one.rollout("first");
    await redis.restart();
    await both("first", "rolled-back");
    const secondAt = Date.now();
    await other.admin("POST", "/rollout", { name: "second", arms: ARMS, design: SWITCHBACK, ...MORE });
    await both("second", "running");
    await seconds(9);
    const refused = await one.admin("POST", "/rollout", { name: "third", arms: ARMS, ...MORE }).catch(String);
    await one.admin("POST", "/rollout/second/promote", { arm: "other", evenSo: true });
    await both("second", "promoted");
    await clients.stop();
    const policies = (await Promise.all([one, other].map((of) => of.admin("GET", "/policy")))) as PolicyView[];
    const promoted = policies.map(({ defaultProfile }) => defaultProfile);
    const mixed = mixedWindows(clients, secondAt);
    process.stdout.write(
      `replicas    ${mixed.windows} windows, ${mixed.wrong} with requests on both arms; after a kill -9 in window ${windows.join(" and ")}; ` +
        `Redis away: ${apart} at one, rolled back at the other, and at both once it is back, empty; promoted at one: ${promoted.join(" and ")}\n` +
        `            steps are taken by both after ${lags.map((one_) => `${one_.toFixed(0)} ms`).join(", ")}; a second rollout of the model: ${String(refused).slice(0, 120)}\n` +
        `            ${clients.requests} requests, failed ${clients.failed} ${clients.failures.join("; ")}\n`,
    );
    return (
      mixed.windows > 4 &&
      mixed.wrong === 0 &&
      windows[0] === windows[1] &&
      apart === "running" &&
      /second is running/.test(String(refused)) &&
      promoted.join() === "llm-d,llm-d" &&
      clients.failed === 0
    );
  } finally {
    for (const gateway of [one, other]) await gateway.end("SIGKILL").catch(() => {});
    await redis.stop();
    rmSync(folder, { recursive: true });
  }
}

/** In a switchback all requests of a window are on one arm, whichever gateway they came to. */
function mixedWindows({ routed }: Clients, secondAt: number): { readonly windows: number; readonly wrong: number } {
  const arms = new Map<string, Set<string>>();
  for (const { window, arm, at } of routed) {
    if (window < 0) continue;
    const key = `${at < secondAt ? "first" : "second"} ${window}`;
    arms.set(key, (arms.get(key) ?? new Set()).add(arm));
  }
  return { windows: arms.size, wrong: [...arms.values()].filter((seen) => seen.size > 1).length };
}

function skipped(): boolean {
  process.stdout.write("replicas    skipped: no redis-server in PATH\n");
  return true;
}

function seconds(count: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000 * count));
}
