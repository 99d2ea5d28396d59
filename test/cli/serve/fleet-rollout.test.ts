import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { ownRedis } from "../../live/share/redis-server.ts";
import { ADMIN, gnomon } from "../command-line.ts";
import { answeringEngine } from "./answering-engine.ts";
import { gatewayHere } from "./gateway-here.ts";

const TOKEN = "a-token-for-this-test";
const REPLICAS = 3;
const MODEL = "tiny";
const WAIT_MILLIS_MAX = 20_000;

interface Replica {
  readonly url: string;
  readonly ask: (
    method: "GET" | "POST",
    path: string,
    body?: object,
  ) => Promise<{ status: number; millis: number; body: unknown }>;
}

async function replicaOf(
  t: TestContext,
  folder: string,
  redis: string,
  engine: string,
  number: number,
): Promise<Replica> {
  const file = join(folder, `gnomon-${number}.json`);
  const fixed = {
    listen: { port: 0 },
    admin: { tokenEnv: "FLEET_TOKEN" },
    prefix: { secretEnv: "FLEET_SECRET" },
    share: { url: redis, replica: `gateway-${number}` },
    rollout: { lookMillis: 100 },
    endpoints: [{ url: engine }],
    log: { level: "error" },
  };
  writeFileSync(file, JSON.stringify(fixed));
  const { url, adminUrl: admin } = await started(t, ["--config", file], number);
  const ask: Replica["ask"] = async (method, path, body) => {
    const since = performance.now();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const answer = await fetch(`${admin}/gnomon/admin${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, millis: performance.now() - since, body: JSON.parse(text) as unknown };
  };
  return { url, ask };
}

/** The first is a process of its own, so that nothing but Redis is between it and the others, which are in this one. */
async function started(
  t: TestContext,
  flags: readonly string[],
  number: number,
): Promise<{ readonly url: string; readonly adminUrl: string }> {
  const variables = { FLEET_TOKEN: TOKEN, FLEET_SECRET: "a-secret-for-this-test" };
  if (number > 1) return gatewayHere(t, flags, variables);
  const served = gnomon(t, ["serve", ...flags], variables);
  const [, url = ""] = await served.said(/gnomon is ready at (http:\S+): /);
  const [, adminUrl = ""] = await served.said(ADMIN);
  return { url, adminUrl };
}

async function send({ url }: Replica, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const body = { model: MODEL, messages: [{ role: "user", content: `number ${i}` }], max_tokens: 4 };
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200, await answer.text());
  }
}

async function viewOf({ ask }: Replica, name: string): Promise<RolloutView> {
  return (await ask("GET", `/rollout/${name}`)).body as RolloutView;
}

const counted = ({ arms }: RolloutView) => arms?.reduce((sum, { total }) => sum + total.requests, 0);

/** Until all show of a rollout what is expected. */
async function allShow<T>(
  replicas: readonly Replica[],
  name: string,
  of: (view: RolloutView) => T,
  expected: T,
): Promise<void> {
  const since = performance.now();
  for (;;) {
    const shown = await Promise.all(replicas.map(async (one) => of(await viewOf(one, name))));
    if (shown.every((one) => one === expected)) return;
    if (performance.now() - since > WAIT_MILLIS_MAX)
      return assert.deepEqual(
        shown,
        replicas.map(() => expected),
      );
    await sleep(50);
  }
}

test("three gateways over Redis judge a rollout as one, also after Redis stood still, and after it was killed and came back empty", async (t) => {
  const redis = await ownRedis();
  if (redis === undefined) return t.skip("no redis-server in PATH");
  const folder = mkdtempSync(join(tmpdir(), "gnomon-fleet-"));
  t.after(async () => {
    await redis.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const all: Replica[] = [];
  const engine = await answeringEngine(t, MODEL);
  for (let i = 1; i <= REPLICAS; i++) all.push(await replicaOf(t, folder, redis.url, engine.url, i));
  const [one, other, third] = all as [Replica, Replica, Replica];
  const arms = [{ name: "control" }, { name: "other", profile: "llm-d" }];
  const design = { kind: "split", by: "request", windowMillis: 600_000 };
  const document = (name: string) => ({ name, arms, design, baselineMillis: 0, cooldownMillis: 0, guardrails: [] });

  const started = await one.ask("POST", "/rollout", document("first"));
  assert.equal(started.status, 200, JSON.stringify(started.body));
  await allShow(all, "first", ({ scope }) => /^what \d gateways? sees?, judged by gateway-\d/.test(scope ?? ""), true);
  await Promise.all([send(one, 30), send(other, 20), send(third, 10)]);
  await allShow(all, "first", counted, 60);
  const views = await Promise.all(all.map((each) => viewOf(each, "first")));
  for (const { verdict, differences, arms: each } of views) {
    assert.deepEqual(verdict, views[0]!.verdict);
    assert.deepEqual(differences, views[0]!.differences);
    assert.deepEqual(each, views[0]!.arms);
  }

  // A policy that is set at one of them is in force at all, under one number.
  assert.equal((await other.ask("POST", "/policy", { limits: { attemptsMax: 4 } })).status, 200);
  const version = async (each: Replica) => ((await each.ask("GET", "/policy")).body as { version: number }).version;
  for (let i = 0; i < 100; i++) {
    if ((await Promise.all(all.map(version))).every((one) => one === 2)) break;
    await sleep(50);
  }
  assert.deepEqual(await Promise.all(all.map(version)), [2, 2, 2]);

  // Redis stands still: an order acts at once, and its answer has what is not so yet.
  redis.signal("SIGSTOP");
  await allShow([other], "first", ({ scope }) => scope.startsWith("this gateway's own share alone"), true);
  const rolledBack = await one.ask("POST", "/rollout/first/rollback", {});
  assert.deepEqual([rolledBack.status, rolledBack.millis < 2_500], [202, true], JSON.stringify(rolledBack.body));
  assert.match((rolledBack.body as { unkept: string[] }).unkept.join(), /^other gateways may not know of it: /);
  assert.equal((await viewOf(one, "first")).phase, "rolled-back");
  redis.signal("SIGCONT");
  await allShow(all, "first", ({ phase }) => phase, "rolled-back");

  // Redis is killed with all that it held; nothing that was seen is lost or counts twice.
  await third.ask("POST", "/rollout", document("second"));
  await allShow(all, "second", ({ scope }) => /judged by/.test(scope ?? ""), true);
  await Promise.all([send(one, 10), send(third, 10)]);
  await allShow(all, "second", counted, 20);
  await redis.kill();
  await allShow(all, "second", ({ scope }) => scope.startsWith("this gateway's own share alone"), true);
  await Promise.all([send(one, 10), send(other, 10)]);
  await redis.restart();
  await allShow(all, "second", ({ scope }) => /judged by/.test(scope ?? ""), true);
  await allShow(all, "second", counted, 40);
  const texts = await Promise.all(all.map(async (each) => (await viewOf(each, "second")).verdict.text));
  assert.deepEqual(
    texts,
    texts.map(() => texts[0]),
  );
});
