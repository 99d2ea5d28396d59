import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pino } from "pino";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { createLiveStack } from "#serve/live-stack.ts";
import { inProcess } from "../../cli/in-process.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { CompletionEngine, EVENTS, target } from "./completion-engine.ts";

test("two workers serve at one port: one page of metrics, one trace that replays, retries, admin calls, a clean end", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-workers-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const engines = [await CompletionEngine.start(), await CompletionEngine.start()] as const;
  const set = [
    "listen.workers=2",
    "listen.drainNoticeMillis=0",
    `record.directory=${directory}`,
    "scrape.intervalMillis=50",
    "admin.tokenEnv=ADMIN",
    "admission.limits.few={type: rate-limit, per: all, requestsMax: 61, windowMillis: 86400000}",
  ];
  const environment = { ADMIN: "the admin's token, which is long" };
  const stack = await createLiveStack(servePlan({ set }, environment), environment, pino({ level: "silent" }));
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  stack.keeper.setTargets("static", [target("a", engines[0].url), target("b", engines[1].url)]);
  await until("the endpoints are there", () => stack.tap.router.endpointRows(0).length === 2);

  const ask = async (n: number, stream: boolean) => {
    const prompt = Array.from({ length: 100 }, (_, i) => (i < 80 ? i : n * 1_000 + i));
    const headers = { "content-type": "application/json", connection: "close", "x-request-id": "the-same-for-all" };
    const body = JSON.stringify({ model: "tiny", prompt, stream });
    const response = await fetch(`${url}/v1/completions`, { method: "POST", headers, body });
    return { status: response.status, text: await response.text(), headers: response.headers };
  };
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n, n % 2 === 0)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.ok(answers.every(({ text }, n) => n % 2 === 1 || text === `${EVENTS.join("")}data: [DONE]\n\n`));
  assert.ok(answers.some(({ headers }) => Number(headers.get("x-gnomon-hit-tokens")) > 0));
  assert.match(answers[0]!.headers.get("x-gnomon-reason")!, /tokens cached|equal to/);
  assert.ok(engines.every(({ served }) => served > 0));

  engines[0].fails = true;
  const retried = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n, n % 2 === 0)));
  assert.deepEqual(new Set(retried.map(({ status }) => status)), new Set([200]), "none failed");

  const limited = await Promise.all([ask(1, false), ask(2, false), ask(3, false)]);
  assert.deepEqual(
    limited.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 429, 429],
    "one limit holds for both",
  );

  const page = async () => (await fetch(`${url}/metrics`)).text();
  const value = (text: string, name: string): number =>
    text
      .split("\n")
      .filter((line) => line.startsWith(name))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  await until("all were counted", () => stack.tap.router.inFlight === 0);
  const metrics = await page();
  assert.equal(value(metrics, "gnomon_requests_total"), 63);
  assert.equal(value(metrics, "gnomon_worker_up"), 2);
  assert.ok(value(metrics, "gnomon_retries_total") > 0);
  assert.equal(value(metrics, "gnomon_worker_requests_in_flight"), 0);
  assert.equal(value(metrics, 'gnomon_requests_total{route="/v1/completions",model="tiny",status="429"'), 2);
  assert.equal(stack.tap.router.inFlight, 0);
  assert.equal(stack.tap.router.openCharges, 0);
  assert.equal(stack.tap.router.strayInputs, 0);

  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  const refused = await fetch(`${url}/gnomon/endpoints`);
  assert.equal(refused.status, 401);
  const headers = { authorization: `Bearer ${environment.ADMIN}` };
  const shown = await fetch(`${url}/gnomon/endpoints`, { headers });
  assert.equal(((await shown.json()) as { endpoints: unknown[] }).endpoints.length, 2);
  assert.equal((await fetch(`${url}/v1/models`)).status, 200);
  assert.equal((await fetch(`${url}/nothing`)).status, 404);

  await stack.close();
  await assert.rejects(fetch(`${url}/healthz`));
  for (const { stub } of engines) await stub.kill();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
  assert.match(out, /identical/);
});
