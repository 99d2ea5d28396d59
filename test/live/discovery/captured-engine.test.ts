import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { readServedModels } from "#live/endpoints/served-models.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { FleetUnderTest, until } from "./fleet-under-test.ts";

function captured(name: string): Buffer {
  return readFileSync(new URL(`../../golden/vllm-http/${name}.http`, import.meta.url));
}

/** Answers with captured bytes as they were on the wire. Changing `pages` changes the answers. */
async function replayed(t: TestContext, pages: { models: string; metrics: string }): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("data", (head) => socket.write(captured(head.includes("GET /metrics") ? pages.metrics : pages.models)));
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function bodyOf(name: string): string {
  const text = captured(name).toString("utf8");
  return text.slice(text.indexOf("\r\n\r\n") + 4);
}

test("captured lists of models are read, adapters included, with every field kept", () => {
  assert.deepEqual(
    readServedModels(bodyOf("models"))!.map(({ id }) => id),
    ["tiny"],
  );
  const models = readServedModels(bodyOf("models_with_lora"))!;
  assert.deepEqual(models, (JSON.parse(bodyOf("models_with_lora")) as { data: unknown }).data);
  assert.equal(readServedModels(bodyOf("auth_missing_models")), undefined);
});

test("an engine with adapters joins and shows them", async (t) => {
  const url = await replayed(t, { models: "models_with_lora", metrics: "metrics_lora_running" });
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("loads", () => fleet.loads(url).length > 1);
  assert.deepEqual(fleet.row(url)!.endpoint.models, ["tiny", "adapter-a"]);
  assert.equal(fleet.row(url)!.endpoint.kvCapacityTokens, 65_504);
  assert.deepEqual(fleet.loads(url)[0]!.adaptersRunning, ["adapter-a"]);
});

test("two data-parallel ranks behind two API servers, whose page has no process, are distinguished", async (t) => {
  const url = await replayed(t, { models: "models_dp2", metrics: "metrics_dp2_running" });
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  fleet.keeper.setTargets("static", staticTargets([{ url, dataParallelRanks: 2 }]));
  await until("loads", () => fleet.loads(`${url}#1`).length > 1);
  assert.deepEqual([fleet.loads(`${url}#0`)[0]!.running, fleet.loads(`${url}#1`)[0]!.running], [5, 4]);
  assert.deepEqual(
    fleet.router.endpointRows(0).map(({ endpoint }) => endpoint.kvCapacityTokens),
    [65_504, 65_504],
  );
});

test("two ranks behind one address that balances them are one endpoint for the router", async (t) => {
  const url = await replayed(t, { models: "models_dp2", metrics: "metrics_dp2_running" });
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("loads", () => fleet.loads(url).length > 1);
  assert.equal(fleet.loads(url)[0]!.running, 9);
  const [row] = fleet.router.endpointRows(0);
  assert.deepEqual([row?.endpoint.dataParallel, row?.endpoint.kvCapacityTokens], [2, 2 * 65_504]);
});

test("an engine that wants a key is reported and is not taken in without it", async (t) => {
  const url = await replayed(t, { models: "auth_missing_models", metrics: "auth_missing_metrics" });
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("asked", () => fleet.events.length > 0);
  assert.equal(fleet.directory.get(url)!.detail, "GET /v1/models: answered 401: it wants another API key");
  assert.equal(fleet.row(url), undefined);
});

test("more work of one process clears nothing; the page of another process does", async (t) => {
  const pages = { models: "models", metrics: "metrics_cold" };
  const url = await replayed(t, pages);
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("loads", () => fleet.loads(url).length > 1);
  pages.metrics = "metrics_after_preemptions";
  await until("work", () => fleet.loads(url).at(-1)!.prefixHitRatio !== undefined);
  assert.deepEqual(fleet.story(url), ["endpoint-joined"]);
  pages.metrics = "metrics_waiting";
  await until("a queue", () => fleet.row(url)!.effectiveLoad === 40);
  assert.deepEqual(fleet.story(url), ["endpoint-joined", "blocks-cleared", "endpoint-changed"]);
  assert.equal(fleet.row(url)!.endpoint.kvCapacityTokens, 65_504, "that process has more room");
});
