import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { pino } from "pino";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { createLiveStack } from "#serve/live-stack.ts";
import { inProcess } from "../../cli/in-process.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { ownRedis } from "../../live/share/redis-server.ts";
import { CompletionEngine, target } from "./completion-engine.ts";

const ENVIRONMENT = { SECRET: "a secret of this test", ADMIN: "the admin's token, which is long" };
const LIMIT = 12;
const ROLLOUT = {
  name: "to-lmetric",
  arms: [{ name: "control" }, { name: "other", profile: "lmetric" }],
  design: { kind: "split", windowMillis: 60_000 },
  baselineMillis: 0,
};

async function redisUrl(t: TestContext): Promise<string | undefined> {
  if (process.env["REDIS_URL"] !== undefined) return process.env["REDIS_URL"];
  const own = await ownRedis();
  t.after(() => own?.stop());
  return own?.url;
}

async function started(t: TestContext, name: string, own: readonly string[], engines: readonly CompletionEngine[]) {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-workers-share-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const set = [
    "listen.drainNoticeMillis=0",
    "listen.warmUpMillis=0",
    `record.directory=${directory}`,
    `share.replica=${name}`,
    "prefix.secretEnv=SECRET",
    "admin.tokenEnv=ADMIN",
    `admission.limits.few={type: rate-limit, per: user, requestsMax: ${LIMIT}, windowMillis: 86400000}`,
    ...own,
  ];
  const stack = await createLiveStack(servePlan({ set }, ENVIRONMENT), ENVIRONMENT, pino({ level: "silent" }));
  const seen = { placed: 0, peersReleased: 0 };
  stack.tap.listen({
    accepted: (input, decision) => {
      if (input.kind === "request-arrived" && decision?.kind === "routed") seen.placed++;
      if (input.kind !== "peer-reported") return;
      seen.peersReleased += input.news.filter(({ kind }) => kind === "released").length;
    },
  });
  t.after(() => stack.close());
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  stack.keeper.setTargets(
    "static",
    engines.map((engine, i) => target(`e${i}`, engine.url)),
  );
  await stack.warmUp();
  stack.rollouts.begin();
  await until("the endpoints are there", () => stack.tap.router.endpointRows(0).length === engines.length);
  const ask = async (user: string, first = 0) => {
    const prompt = Array.from({ length: 100 }, (_, i) => first + i);
    const headers = { "content-type": "application/json", connection: "close", "x-gnomon-tenant": "t" };
    const body = JSON.stringify({ model: "tiny", prompt, user, max_tokens: 8 });
    const response = await fetch(`${url}/v1/completions`, { method: "POST", headers, body });
    await response.text();
    const of = (header: string) => response.headers.get(`x-gnomon-${header}`) ?? "";
    return {
      status: response.status,
      endpoint: of("endpoint"),
      hits: Number(of("hit-tokens")),
      profile: of("profile"),
    };
  };
  const rollout = async (path: string, body: object) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${ENVIRONMENT.ADMIN}` };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(`${url}/gnomon/admin/rollout${path}`, request);
    assert.equal(response.status, 200, await response.text());
  };
  return { stack, ask, rollout, directory, seen };
}

/** All that the one let in has ended, and the other one knows. */
async function known(by: Pick<Running, "seen">, of: Pick<Running, "seen">): Promise<void> {
  await until("what the other one did is known", () => by.seen.peersReleased === of.seen.placed);
}

type Running = Awaited<ReturnType<typeof started>>;

/** How many of so many requests of a user are let in, by connections of their own. */
async function letIn({ ask }: Pick<Running, "ask">, user: string, count: number) {
  const all = await Promise.all(Array.from({ length: count }, (_, i) => ask(user, 1_000 * (i + 1))));
  return all.filter(({ status }) => status === 200).length;
}

test("a gateway of two workers shares prefixes, load, limits of users and rollouts over Redis with another one, and both traces replay", async (t) => {
  const url = await redisUrl(t);
  if (url === undefined) return t.skip("no REDIS_URL and no redis-server in PATH");
  const engines = [await CompletionEngine.start(), await CompletionEngine.start(), await CompletionEngine.start()];
  const share = [`share.url=${url}`, `share.key=test-${randomUUID()}`];
  const two = await started(t, "two-workers", [...share, "listen.workers=2"], engines);
  const one = await started(t, "one-thread", share, engines);
  const peersOf = ({ stack }: Running) => stack.tap.router.peers;
  await until("they share", () => peersOf(one).peers.length === 1 && peersOf(two).peers.length === 1);

  // Prefixes: what the workers sent, the other one finds, and the other way round.
  const [first] = await Promise.all([two.ask("a"), two.ask("a", 5_000)]);
  await known(one, two);
  const found = await one.ask("b");
  assert.deepEqual([found.endpoint, found.hits], [first.endpoint, 96]);
  const other = await one.ask("b", 9_000);
  await known(two, one);
  const back = await two.ask("a", 9_000);
  assert.deepEqual([back.endpoint, back.hits], [other.endpoint, 96]);

  // Load, request by request.
  for (const engine of engines) engine.holds = true;
  const held = Array.from({ length: 6 }, (_, i) => two.ask("c", 20_000 * (i + 1)));
  await until("the load is known", () => peersOf(one).openCharges === 6);
  const rows = one.stack.tap.router.endpointRows(0);
  assert.equal(
    rows.reduce((sum, { peerRequestsInFlight }) => sum + peerRequestsInFlight, 0),
    6,
  );
  for (const engine of engines) engine.release();
  assert.ok((await Promise.all(held)).every(({ status }) => status === 200));
  await known(one, two);
  assert.equal(peersOf(one).openCharges, 0);

  // A user's limit: 5 at the workers, then as many more at the other one as are left, and none anywhere.
  assert.equal(await letIn(two, "d", 5), 5);
  await known(one, two);
  assert.equal(await letIn(one, "d", LIMIT), LIMIT - 5);
  await known(two, one);
  assert.equal(await letIn(two, "d", 8), 0);
  assert.equal(await letIn(one, "e", LIMIT + 3), LIMIT, "and another user has the whole");

  // A rollout that is started at the workers and promoted at the other one decides at every worker.
  await two.rollout("", ROLLOUT);
  const phase = ({ stack }: Running) => stack.rollouts.view().rollouts.find(({ name }) => name === ROLLOUT.name)?.phase;
  await until("the other one runs it", () => phase(one) === "running");
  await one.rollout(`/${ROLLOUT.name}/promote`, { arm: "other" });
  await until("the workers' gateway knows", () => phase(two) === "promoted");
  let asked = 0;
  let promoted = 0;
  while (promoted < 16 && asked < 2_000) {
    const { profile } = await two.ask(`f${asked++}`, asked);
    promoted = profile.startsWith("lmetric; version=2") ? promoted + 1 : 0;
  }
  assert.equal(promoted, 16, "whichever worker answers");

  for (const { stack } of [two, one]) {
    assert.equal(stack.tap.router.strayInputs, 0);
    await stack.close();
  }
  for (const { stub } of engines) await stub.kill();
  for (const { directory } of [two, one]) {
    const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
    assert.equal(code, 0, out);
    assert.match(out, /identical/);
  }
});
