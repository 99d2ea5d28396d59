import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ownRedis } from "../../live/share/redis-server.ts";
import { ADMIN, gnomon } from "../command-line.ts";
import { answeringEngine } from "./answering-engine.ts";
import { type GatewayHere, gatewayHere } from "./gateway-here.ts";

const TOKEN = "a-token-for-this-test";
const VARIABLES = { ORDERS_TOKEN: TOKEN, ORDERS_SECRET: "a-secret-for-this-test" };
const DESIGN = { kind: "canary", windowMillis: 3_600_000, stepPercents: [10, 50] };
const ARMS = [{ name: "control" }, { name: "other", profile: "llm-d" }];

interface Answer {
  readonly status: number;
  readonly millis: number;
  readonly body: {
    readonly outcome?: string;
    readonly unkept?: readonly string[];
    readonly version?: number;
    readonly defaultProfile?: string;
    readonly phase?: string;
    readonly canary?: { readonly step: number; readonly stepPercents: readonly number[] };
    readonly rollouts?: readonly { readonly name: string; readonly phase: string }[];
  };
}

/** A gateway over a folder that is killed and started again; the last one, which only tells, is in the test's process. */
class KilledGateway {
  readonly #t: TestContext;
  readonly #config: string;
  #served: ReturnType<typeof gnomon> | undefined;
  #last: GatewayHere | undefined;
  #admin = "";
  url = "";

  private constructor(t: TestContext, config: string) {
    this.#t = t;
    this.#config = config;
  }

  /** Over what it keeps orders in: a folder, or the Redis that it shares. */
  static async start(
    t: TestContext,
    folder: string,
    kept: { readonly directory: string } | { readonly redis: string },
  ): Promise<KilledGateway> {
    const file = join(folder, "gnomon.json");
    const { url } = await answeringEngine(t);
    const fixed = {
      listen: { port: 0 },
      admin: { tokenEnv: "ORDERS_TOKEN" },
      ...("directory" in kept
        ? { policy: kept }
        : { share: { url: kept.redis }, prefix: { secretEnv: "ORDERS_SECRET" }, rollout: { lookMillis: 100 } }),
      endpoints: [{ url }],
      log: { level: "error" },
    };
    writeFileSync(file, JSON.stringify(fixed));
    const gateway = new KilledGateway(t, file);
    await gateway.start();
    return gateway;
  }

  async start(): Promise<void> {
    this.#served = gnomon(this.#t, ["serve", "--config", this.#config], VARIABLES);
    [, this.url = ""] = await this.#served.said(/gnomon is ready at (http:\S+): /);
    [, this.#admin = ""] = await this.#served.said(ADMIN);
  }

  async startLast(): Promise<void> {
    this.#last = await gatewayHere(this.#t, ["--config", this.#config], VARIABLES);
    [this.url, this.#admin] = [this.#last.url, this.#last.adminUrl];
  }

  async kill(): Promise<void> {
    await this.#last?.stop();
    this.#served?.child.kill("SIGKILL");
    await this.#served?.exit;
  }

  async ask(method: "GET" | "POST", path: string, body?: object): Promise<Answer> {
    const since = performance.now();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const sent = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const answer = await fetch(`${this.#admin}/gnomon/admin${path}`, sent);
    const text = await answer.text();
    const { status } = answer;
    return { status, millis: performance.now() - since, body: JSON.parse(text) as Answer["body"] };
  }

  async order(path: string, body: object): Promise<void> {
    const { status, body: answer } = await this.ask("POST", path, body);
    assert.equal(answer.outcome, "applied", `${path}: ${JSON.stringify(answer)}`);
    // A disk that does not answer within a second may still lose it, and the answer says so: it is written soon after.
    if (status === 202) await sleep(UNKEPT_MILLIS);
    else assert.equal(status, 200);
  }
}

const UNKEPT_MILLIS = 5_000;

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-killed-"));
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 10, force: true }));
  return folder;
}

/** Rollouts of a gateway that is killed right behind the answers of orders. */
class KilledCanary {
  readonly #gateway: KilledGateway;
  readonly #name: string;

  constructor(gateway: KilledGateway, name: string) {
    this.#gateway = gateway;
    this.#name = name;
  }

  /** Of 10 %. While it cools down a gateway that did not run it knows that it was taken back. */
  async start(): Promise<void> {
    const document = { name: this.#name, arms: ARMS, design: DESIGN, baselineMillis: 0, cooldownMillis: 600_000 };
    await this.#gateway.order("/rollout", document);
  }

  async advance(): Promise<void> {
    await this.#gateway.order(`/rollout/${this.#name}/advance`, {});
  }

  async promote(): Promise<void> {
    await this.#gateway.order(`/rollout/${this.#name}/promote`, { arm: "other", evenSo: true });
  }

  async rollBack(): Promise<void> {
    await this.#gateway.order(`/rollout/${this.#name}/rollback`, {});
  }

  async killed(expected: number | string, isLast = false): Promise<void> {
    await this.#gateway.kill();
    await (isLast ? this.#gateway.startLast() : this.#gateway.start());
    // What the store alone has is read right behind the start.
    for (let i = 0; i < 200 && (await this.#stands()) !== expected; i++) await sleep(50);
    assert.equal(await this.#stands(), expected, `${this.#name}: what was answered is lost`);
  }

  /** Its share of the traffic in percent, or what became of it. */
  async #stands(): Promise<number | string | undefined> {
    const { canary, phase } = (await this.#gateway.ask("GET", `/rollout/${this.#name}`)).body;
    return phase === "running" ? canary?.stepPercents[canary.step] : phase;
  }
}

// Each order, each step and each phase: test/serve/rollout/rollout-keeper.test.ts, without a process.
test("a kill -9 right behind the answer loses no policy, canary's step, rollback or promotion that the disk keeps", async (t) => {
  const folder = folderOf(t);
  const gateway = await KilledGateway.start(t, folder, { directory: join(folder, "state") });
  await gateway.order("/policy", { limits: { attemptsMax: 4 } });
  await gateway.kill();
  await gateway.start();
  assert.equal((await gateway.ask("GET", "/policy")).body.version, 2, "the policy is lost");
  await throughAllPhases(gateway);
});

test("the same where Redis alone keeps orders", async (t) => {
  const redis = await ownRedis();
  if (redis === undefined) return t.skip("no redis-server in PATH");
  const folder = folderOf(t);
  t.after(() => redis.stop());
  const gateway = await KilledGateway.start(t, folder, { redis: redis.url });
  await throughAllPhases(gateway);
});

async function throughAllPhases(gateway: KilledGateway): Promise<void> {
  const [one, two] = [new KilledCanary(gateway, "one"), new KilledCanary(gateway, "two")];
  await one.start();
  await one.advance();
  await one.killed(50);
  await one.promote();
  await one.killed("promoted");
  await isPromoted(gateway);
  await two.start();
  await two.rollBack();
  await two.killed("rolled-back", true);
  await gateway.kill();
}

async function isPromoted(gateway: KilledGateway): Promise<void> {
  const profile = async () => (await gateway.ask("GET", "/policy")).body.defaultProfile;
  for (let i = 0; i < 100 && (await profile()) !== "llm-d"; i++) await sleep(50);
  assert.equal(await profile(), "llm-d");
}

/** A folder on a disk of its own, of a quarter of a megabyte; undefined where nobody may mount one. */
function tinyDisk(folder: string): string | undefined {
  const path = join(folder, "disk");
  mkdirSync(path);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", path], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  return path;
}

test("on a full disk a rollback acts and answers at once that it is not kept, and is kept once there is room", async (t) => {
  const folder = folderOf(t);
  const disk = tinyDisk(folder);
  if (disk === undefined) return t.skip("nobody may mount a disk here");
  try {
    const gateway = await KilledGateway.start(t, folder, { directory: join(disk, "state") });
    try {
      await onFullDisk(gateway, disk);
    } finally {
      await gateway.kill();
    }
  } finally {
    execFileSync("umount", ["-l", disk]);
  }
});

async function onFullDisk(gateway: KilledGateway, disk: string): Promise<void> {
  const document = { name: "one", arms: ARMS, design: DESIGN, baselineMillis: 0 };
  assert.equal((await gateway.ask("POST", "/rollout", document)).status, 200);
  const full = join(disk, "full");
  fill(full);
  const { status, millis, body } = await gateway.ask("POST", "/rollout/one/rollback", {});
  assert.deepEqual([status, body.outcome], [202, "applied"]);
  assert.match(body.unkept?.join() ?? "", /not on the disk, so a restart would not know of it: .*ENOSPC/);
  assert.ok(millis < 1_500, `${millis} ms`);
  const changed = await gateway.ask("POST", "/policy", { limits: { attemptsMax: 4 } });
  assert.deepEqual([changed.status, changed.body.outcome], [202, "applied"]);
  const unwritten = async () =>
    /^gnomon_orders_unwritten 1$/m.test(await (await fetch(`${gateway.url}/metrics`)).text());
  assert.ok(await unwritten());
  rmSync(full);
  for (let i = 0; i < 100 && (await unwritten()); i++) await sleep(100);
  await gateway.kill();
  await gateway.startLast();
  assert.equal((await gateway.ask("GET", "/rollout/one")).body.phase, "rolled-back");
  assert.equal((await gateway.ask("GET", "/policy")).body.version, 2);
}

/** Until nothing more fits. */
function fill(path: string): void {
  for (let chars = 262_144; chars >= 1; chars = Math.floor(chars / 2)) {
    try {
      writeFileSync(path, "x".repeat(chars), { flag: "a" });
    } catch {
      // A smaller piece may still fit.
    }
  }
}
