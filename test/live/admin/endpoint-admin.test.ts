import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";

import { nowMicros } from "#live/base/clock.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { type EndpointControl, EndpointAdmin } from "#live/admin/endpoint-admin.ts";
import { endpointRoutes } from "#live/admin/endpoint-routes.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { StubEngine } from "../discovery/stub-engine.ts";

async function started(t: TestContext) {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  const { url: id } = engine;
  fleet.keeper.setTargets("static", staticTargets([{ url: id }]));
  await until("ready", () => fleet.row(id) !== undefined);
  const admin = new EndpointAdmin(fleet);
  const app = new Hono<{ Bindings: HttpBindings }>();
  endpointRoutes(admin)(app);
  const call = async (method: string, path: string, body?: string) => {
    const answer = await app.request(`http://x/gnomon/admin/endpoints${path}`, { method, ...(body && { body }) });
    return { status: answer.status, body: (await answer.json()) as EndpointControl & { problems?: string[] } };
  };
  const on = (step: string, body?: string) => call("POST", `/${encodeURIComponent(id)}/${step}`, body);
  return { engine, fleet, admin, call, on, id };
}

function arrive({ intake }: FleetUnderTest, requestId: string): void {
  const blocks = { hashes: new Int32Array(0), length: 0, blockTokens: 16 };
  const of = { model: "tiny", tenant: "", session: "", sloClass: "", profile: "" };
  const sizes = { priority: 0, promptTokens: 100, promptTokensExact: false, outputTokensMax: undefined, sequences: 1 };
  const request = { id: requestId, ...of, ...sizes, blocks };
  intake.accept({ kind: "request-arrived", at: nowMicros(), request });
}

function finish({ intake }: FleetUnderTest, requestId: string): void {
  const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
  intake.accept({ kind: "request-finished", at: nowMicros(), requestId, outcome: "ok", ...counts });
}

test("a cordon is an input of the router, shows who made it, and outlives what the source reports", async (t) => {
  const { fleet, on, id } = await started(t);
  const cordoned = await on("cordon");
  assert.deepEqual([cordoned.status, cordoned.body.cordonedBy, cordoned.body.drain], [200, "operator", ""]);
  assert.equal(fleet.row(id)!.cordoned, true);
  await on("cordon");
  fleet.keeper.setTargets("static", staticTargets([{ url: id, labels: { zone: "a" } }]));
  assert.equal(fleet.row(id)!.cordoned, true);
  assert.equal((await on("uncordon")).body.cordonedBy, "");
  assert.equal(fleet.row(id)!.cordoned, false);
  assert.deepEqual(fleet.story(id), [
    "endpoint-joined",
    "endpoint-cordoned",
    "endpoint-changed",
    "endpoint-uncordoned",
  ]);
  assert.deepEqual(
    fleet.events.filter(({ kind }) => kind.endsWith("cordoned")).map(({ kind, detail }) => `${kind}: ${detail}`),
    ["cordoned: an operator wants no new requests for it", "uncordoned: an operator lets it have requests again"],
  );
});

test("what its source cordons stays cordoned by it; one that is named no longer forgets what was done by hand", async (t) => {
  const { fleet, on, id } = await started(t);
  fleet.keeper.setTargets("static", staticTargets([{ url: id, cordoned: true }]));
  await on("cordon");
  assert.equal((await on("uncordon")).body.cordonedBy, "source");
  assert.equal(fleet.row(id)!.cordoned, true);
  await on("drain", '{"graceMillis": 3600000}');
  fleet.keeper.setTargets("static", []);
  fleet.keeper.setTargets("static", staticTargets([{ url: id }]));
  await until("back", () => fleet.row(id)?.cordoned === false);
});

test("a drain is over once nothing is in flight; after its grace the directory has the rest leave; uncordoned, all is as before", async (t) => {
  const { fleet, on, call, id } = await started(t);
  arrive(fleet, "one");
  const { body } = await on("drain", '{"graceMillis": 1}');
  assert.deepEqual([body.drain, body.requestsInFlight, body.cordonedBy], ["draining", 1, "operator"]);
  await until("the grace", () => fleet.directory.get(id)!.evicts === true);
  finish(fleet, "one");
  assert.equal((await call("GET", `/${encodeURIComponent(id)}`)).body.drain, "drained");
  assert.equal((await on("uncordon")).body.drain, "");
  assert.equal(fleet.directory.get(id)!.evicts, false);
  const endless = await on("drain");
  assert.deepEqual([endless.body.drain, fleet.directory.get(id)!.evicts], ["drained", false]);
  assert.equal((await on("drain", '{"graceMillis": 0}')).body.drain, "drained");
  assert.equal(fleet.directory.get(id)!.evicts, true);
});

test("what keeps requests from an endpoint is named: its engine sleeps, it hangs, it is gone; of one that is well nothing", async (t) => {
  const { engine, fleet, call, id } = await started(t);
  const kept = async () => (await call("GET", `/${encodeURIComponent(id)}`)).body.kept;
  assert.equal(await kept(), "");
  fleet.intake.accept({ kind: "endpoint-slept", at: nowMicros(), endpoint: id, asleep: true });
  fleet.intake.accept({ kind: "endpoint-suspended", at: nowMicros(), endpoint: id, reason: "silent" });
  assert.equal(await kept(), "asleep; hung");
  fleet.intake.accept({ kind: "endpoint-slept", at: nowMicros(), endpoint: id, asleep: false });
  await engine.kill();
  await until("lost", () => fleet.directory.get(id)!.state === "lost");
  assert.match((await kept()) ?? "", /ECONN/);
});

test("wrong calls change nothing and name what is accepted", async (t) => {
  const { fleet, call, on, id } = await started(t);
  const unknown = await call("POST", "/nobody/drain");
  assert.deepEqual([unknown.status, unknown.body.problems], [404, [`endpoint: expected one of ${id}`]]);
  for (const wrong of ['{"graceMillis": -1}', '{"graceMillis": "1"}', '{"grace": 1}', "[1]", "{"]) {
    const { status, body } = await on("drain", wrong);
    assert.equal(status, 400, wrong);
    assert.match(body.problems![0]!, /graceMillis|body: expected/);
  }
  assert.equal((await on("drain", `{"graceMillis": 1${" ".repeat(5000)}}`)).status, 413);
  assert.equal(fleet.row(id)!.cordoned, false);
});
