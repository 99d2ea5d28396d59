import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { FleetKeeperOptions } from "#live/keeper/fleet-keeper.ts";
import { staticTargets, type StaticServer } from "#live/discovery/static.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { answer, engineText, modelsText, StubEngine } from "../discovery/stub-engine.ts";

async function stub(t: TestContext, port = 0): Promise<StubEngine> {
  const engine = await StubEngine.start(port);
  t.after(() => engine.kill());
  return engine;
}

function fleet(t: TestContext, servers: StaticServer[], options: Partial<FleetKeeperOptions> = {}): FleetUnderTest {
  const made = new FleetUnderTest(options);
  made.keeper.setTargets("static", staticTargets(servers));
  t.after(() => made.keeper.stop());
  return made;
}

test("an endpoint joins with its models, labels and capacity, and its load follows", async (t) => {
  const engine = await stub(t);
  engine.models = answer(200, modelsText("base", "adapter-a"));
  engine.metrics = answer(200, engineText({ running: 3, waiting: 2 }));
  const { url } = engine;
  const made = fleet(t, [{ url, labels: { role: "decode" }, concurrencyMax: 8 }]);
  await until("two loads", () => made.loads(url).length >= 2);
  assert.deepEqual(made.inputs[0], {
    kind: "endpoint-joined",
    at: made.inputs[0]!.at,
    endpoint: {
      id: url,
      models: ["base", "adapter-a"],
      labels: { role: "decode" },
      kvCapacityTokens: 1600,
      concurrencyMax: 8,
    },
  });
  const load = made.loads(url)[0]!;
  assert.deepEqual([load.running, load.waiting, load.kvUtilization], [3, 2, 0.5]);
  assert.equal(made.row(url)!.freshness, "fresh");
  const entry = made.directory.get(url)!;
  assert.deepEqual([entry.state, entry.detail, entry.models[0]!["owned_by"]], ["ready", "", "vllm"]);
});

test("a server that is not there yet is reported once and joins when it comes", async (t) => {
  const early = await StubEngine.start();
  const { url, port } = early;
  await early.kill();
  const made = fleet(t, [{ url }]);
  await until("a report", () => made.events.length > 0);
  assert.equal(made.directory.get(url)!.state, "waiting");
  assert.match(made.directory.get(url)!.detail, /ECONNREFUSED/);
  const engine = await stub(t, port);
  engine.models = answer(503, "starting");
  await until("the other reason", () => made.events.length > 1);
  engine.models = answer(200, modelsText("tiny"));
  await until("ready", () => made.directory.get(url)!.state === "ready");
  assert.deepEqual(
    made.events.map(({ kind }) => kind),
    ["waiting", "waiting", "ready"],
  );
});

test("an answer that is no list of models is not accepted", async (t) => {
  const engine = await stub(t);
  const { url } = engine;
  const made = fleet(t, [{ url }]);
  for (const text of ["{", "[]", '{"data":1}', '{"data":[1]}', '{"data":[{"id":""}]}', "null"]) {
    engine.models = answer(200, text);
    const asked = engine.count("/v1/models");
    await until("asked again", () => engine.count("/v1/models") > asked + 1);
    assert.equal(made.inputs.length, 0, text);
  }
  assert.match(made.directory.get(url)!.detail, /no list of models/);
});

test("the key is sent to the engine and shown nowhere", async (t) => {
  const engine = await stub(t);
  const made = fleet(t, [{ url: engine.url, apiKey: "sk-secret" }]);
  await until("a load", () => made.loads(engine.url).length > 0);
  assert.ok(engine.seen.every((line) => line.endsWith("Bearer sk-secret")));
  engine.models = answer(401, '{"error":"Unauthorized"}');
  await engine.kill();
  await until("lost", () => made.directory.get(engine.url)!.state === "lost");
  const told = JSON.stringify([made.inputs, made.events, made.keeper.rows()]);
  assert.ok(!told.includes("sk-secret"));
});

test("scrapes that fail in any way are counted by kind and keep the endpoint in", async (t) => {
  const engine = await stub(t);
  const { url } = engine;
  const made = fleet(t, [{ url }], { times: { scrapeTimeoutMillis: 40 } });
  await until("a load", () => made.loads(url).length > 0);
  const errors = () => made.keeper.rows()[0]!.counts.errors;
  engine.metrics = answer(500, "no");
  await until("status", () => errors().status > 0);
  engine.metrics = answer(200, "<html>");
  await until("garbage", () => errors().garbage > 0);
  engine.metrics = (_, response) => response.destroy();
  await until("cut", () => errors().cut > 0);
  engine.metrics = (_, response) => void response.writeHead(200).write("vllm:num_requests_running 1\n");
  await until("timeout", () => errors().timeout > 1);
  engine.metrics = (_, response) => void response.end(Buffer.alloc(5 * 1024 * 1024, "# comment\n"));
  await until("too large", () => errors()["too-large"] > 0);
  engine.metrics = (request) => void request.socket.end("SSH-2.0-OpenSSH\r\n\r\n");
  await until("not HTTP", () => errors().garbage > 1);
  // On a busy machine the first scrape takes too long, and what the engine has room for is known with a later one.
  const story = made.story(url).filter((kind) => kind !== "endpoint-changed");
  assert.deepEqual(story, ["endpoint-joined"]);
  assert.notEqual(made.keeper.rows()[0]!.lastError, "");
  const before = made.loads(url).length;
  engine.metrics = answer(200, engineText({ running: 7 }));
  await until("loads again", () => made.loads(url).length > before);
  assert.equal(made.loads(url).at(-1)!.running, 7);
  // The one after that load may already have taken too long.
  await until("a scrape without an error", () => made.keeper.rows()[0]!.lastError === "");
});

test("one question at a time is asked of a server", async (t) => {
  const engine = await stub(t);
  engine.metrics = (_, response) => void setTimeout(() => response.end(engineText({})), 25);
  const made = fleet(t, [{ url: engine.url, dataParallelRanks: 2 }], { times: { modelsIntervalMillis: 10 } });
  await until("many scrapes", () => engine.count("/metrics") >= 6 && engine.count("/v1/models") >= 3);
  assert.equal(engine.overlapMax, 1);
  assert.ok(made.keeper.rows()[0]!.counts.skipped > 0, "turns that passed meanwhile are counted");
});

test("an engine without metrics joins and stays, with signals unknown", async (t) => {
  const engine = await stub(t);
  engine.metrics = answer(404, "not found");
  const made = fleet(t, [{ url: engine.url, kvCapacityTokens: 4096 }]);
  await until("scrapes", () => engine.count("/metrics") > 3);
  const row = made.row(engine.url)!;
  assert.deepEqual([row.freshness, row.endpoint.kvCapacityTokens], ["unknown", 4096]);
});

test("a server that nobody answers for leaves, and joins again with an empty cache", async (t) => {
  const engine = await StubEngine.start();
  const { url, port } = engine;
  const made = fleet(t, [{ url }]);
  await until("joined", () => made.story(url).length === 1);
  await engine.kill();
  await until("left", () => made.story(url).length === 2);
  assert.equal(made.directory.get(url)!.state, "lost");
  assert.equal(made.row(url), undefined);
  const again = await stub(t, port);
  again.models = answer(200, modelsText("other"));
  await until("joined again", () => made.story(url).length === 3);
  assert.deepEqual(made.story(url), ["endpoint-joined", "endpoint-left", "endpoint-joined"]);
  assert.deepEqual(made.row(url)!.endpoint.models, ["other"]);
});

test("a process replaced sooner than that is seen by its counters, and its models are read again", async (t) => {
  const engine = await StubEngine.start();
  const { url, port } = engine;
  engine.metrics = answer(200, engineText({ promptTokens: 500 }));
  const made = fleet(t, [{ url }], { times: { lostAfterMillis: 9_000 } });
  await until("a load", () => made.loads(url).length > 1);
  await engine.kill();
  await until("unreachable", () => made.keeper.rows()[0]!.counts.errors.connect > 0);
  const again = await stub(t, port);
  again.models = answer(200, modelsText("other"));
  again.metrics = answer(200, engineText({ promptTokens: 3, blocks: 201 }));
  await until("the new models", () => made.row(url)!.endpoint.models[0] === "other");
  assert.deepEqual(made.story(url), ["endpoint-joined", "blocks-cleared", "endpoint-changed", "endpoint-changed"]);
  assert.equal(made.row(url)!.endpoint.kvCapacityTokens, 3200);
});

test("adapters that come and go change the endpoint; a list that cannot be read does not", async (t) => {
  const engine = await stub(t);
  const { url } = engine;
  const made = fleet(t, [{ url }], { times: { modelsIntervalMillis: 10 } });
  await until("joined", () => made.row(url) !== undefined);
  engine.models = answer(200, modelsText("tiny", "adapter"));
  await until("changed", () => made.row(url)!.endpoint.models.length === 2);
  engine.models = answer(500, "no");
  const asked = engine.count("/v1/models");
  await until("asked again", () => engine.count("/v1/models") > asked + 2);
  assert.deepEqual(made.row(url)!.endpoint.models, ["tiny", "adapter"]);
  assert.deepEqual(made.story(url), ["endpoint-joined", "endpoint-changed"]);
});

test("ranks of one server share its scrapes and have loads of their own", async (t) => {
  const engine = await stub(t);
  const { url } = engine;
  engine.metrics = answer(200, engineText({ running: 4, ranks: ["0", "1"], blocks: 202 }));
  const made = fleet(t, [{ url, dataParallelRanks: 2 }]);
  await until("loads", () => made.loads(`${url}#1`).length > 2);
  assert.equal(made.row(`${url}#0`)!.endpoint.kvCapacityTokens, 1600);
  assert.equal(made.directory.get(`${url}#1`)!.dataParallelRank, 1);
  assert.equal(made.loads(`${url}#0`)[0]!.running, 4);
  assert.ok(engine.count("/metrics") <= made.loads(`${url}#0`).length + 1, "not one scrape per rank");
});

test("what a source names no longer leaves; what it cordons takes no more requests", async (t) => {
  const [one, two] = [await stub(t), await stub(t)];
  const made = fleet(t, [{ url: one.url }, { url: two.url }]);
  await until("both", () => made.row(one.url) !== undefined && made.row(two.url) !== undefined);
  const [first, second] = staticTargets([{ url: one.url }, { url: two.url }]);
  made.keeper.setTargets("static", [{ ...first!, cordoned: true }, second!]);
  assert.equal(made.row(one.url)!.cordoned, true);
  made.keeper.setTargets("static", [{ ...first!, labels: { a: "b" } }]);
  assert.equal(made.row(one.url)!.cordoned, false);
  assert.deepEqual(made.row(one.url)!.endpoint.labels, { a: "b" });
  assert.equal(made.row(two.url), undefined);
  assert.equal(made.directory.get(two.url), undefined);
  const asked = two.seen.length;
  await until("the other goes on", () => one.count("/metrics") > 8);
  assert.ok(two.seen.length <= asked + 1);
  assert.equal(made.keeper.rows().length, 1);
});

test("two sources may not name one endpoint, and no more than the bound are taken", async (t) => {
  const engine = await stub(t);
  const made = fleet(t, [{ url: engine.url }], { endpointsMax: 2 });
  made.keeper.setTargets("other", staticTargets([{ url: engine.url }]));
  assert.equal(made.keeper.targetsRefused, 1);
  made.keeper.setTargets(
    "other",
    staticTargets([
      { url: engine.url, id: "b" },
      { url: engine.url, id: "c" },
    ]),
  );
  assert.equal(made.keeper.targetsRefused, 2);
  assert.deepEqual(
    made.directory.all().map(({ id }) => id),
    ["b", engine.url].sort(),
  );
  assert.throws(() => staticTargets([{ url: engine.url }, { url: `${engine.url}/` }]), /listed twice/);
});

test("stop ends every loop, also one that waits for an answer", async (t) => {
  const [hanging, silent] = [await stub(t), await stub(t)];
  hanging.metrics = () => {};
  silent.models = () => {};
  const made = fleet(t, [{ url: hanging.url }, { url: silent.url }], { times: { scrapeTimeoutMillis: 60_000 } });
  await until("asked", () => hanging.count("/metrics") === 1 && silent.count("/v1/models") === 1);
  await made.keeper.stop();
  const asked = hanging.seen.length + silent.seen.length;
  made.keeper.setTargets("static", []);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.equal(hanging.seen.length + silent.seen.length, asked);
});
