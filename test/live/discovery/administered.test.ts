import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { engineDefaults } from "#engine/config.ts";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { createGateway } from "#live/gateway/gateway.ts";
import { adminAccess } from "#live/admin/admin-access.ts";

import { type Got, IDENTITY, WORD_TOKENIZER, ask } from "../gateway/rig.ts";
import { FleetUnderTest, until } from "./fleet-under-test.ts";

const PATHS = ["/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/reset_prefix_cache"];
/** With which the emulator lets its cache be reset, as vLLM does in its development mode. */
const KV_EVENTS = { port: 0, replayPort: undefined, topic: "kv", bufferSteps: 10 };
const engine = engineDefaults({ blockTokens: 16, kvBlocks: 1_024 });

async function emulator(t: TestContext, model = "tiny", runtimeAdapters = true): Promise<Emulator> {
  const options = { host: "127.0.0.1", port: 0, seed: 1, model, engine, timeScale: 1_000, runtimeAdapters };
  const started = await startEmulator({ ...options, kvEvents: KV_EVENTS });
  t.after(() => started.close());
  return started;
}

/** A gateway that reads the models of its engines every 30 s, as by default. */
class Administered {
  readonly fleet = new FleetUnderTest();
  readonly gateway = createGateway({
    intake: this.fleet.intake,
    directory: this.fleet.directory,
    tokenizer: () => WORD_TOKENIZER,
    identity: IDENTITY,
    observe: { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} },
    administration: {
      paths: PATHS,
      access: adminAccess("secret"),
      millisMax: 5_000,
      done: (done) => this.fleet.keeper.administered(done),
    },
  });
  url = "";
  adminUrl = "";

  static async of(t: TestContext, ...engines: readonly Emulator[]): Promise<Administered> {
    const made = new Administered();
    made.url = (await made.gateway.listen("127.0.0.1", 0)).url;
    made.adminUrl = (await made.gateway.listenAdmin("127.0.0.1", 0)).url;
    t.after(() => made.fleet.keeper.stop());
    t.after(() => made.gateway.close(0));
    await made.serve(...engines);
    return made;
  }

  async serve(...engines: readonly Emulator[]): Promise<void> {
    this.fleet.keeper.setTargets("static", staticTargets(engines.map(({ url }) => ({ url }))));
    for (const { url } of engines)
      await until("an engine is ready", () => this.fleet.directory.get(url)?.state === "ready");
  }

  call(path: string, body: object = {}): Promise<Got> {
    return ask(this.adminUrl, body, { path, headers: { authorization: "Bearer secret" } });
  }

  completion(model: string): Promise<Got> {
    return ask(this.url, { model, prompt: "x y z", max_tokens: 2 }, { path: "/v1/completions" });
  }

  modelsOf({ url }: Emulator): string[] {
    return this.fleet.directory.get(url)!.models.map(({ id }) => id);
  }
}

const load = (lora_name: string) => ({ lora_name, lora_path: `./${lora_name}` });

test("an adapter that is loaded through the gateway is served as soon as the call is answered, and not once unloaded", async (t) => {
  const engines = [await emulator(t), await emulator(t)];
  const made = await Administered.of(t, ...engines);
  assert.equal((await made.completion("a")).status, 404);
  assert.equal((await made.call("/v1/load_lora_adapter", load("a"))).status, 200);
  const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await made.completion("a")).status));
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.equal((await made.call("/v1/unload_lora_adapter", { lora_name: "a" })).status, 200);
  assert.equal((await made.completion("a")).status, 404);
});

test("an engine that joins later gets the adapters of others of its model before it serves anybody", async (t) => {
  const first = await emulator(t);
  const made = await Administered.of(t, first);
  for (const name of ["a", "b", "gone"])
    assert.equal((await made.call("/v1/load_lora_adapter", load(name))).status, 200);
  assert.equal((await made.call("/v1/unload_lora_adapter", { lora_name: "gone" })).status, 200);
  const [same, other, fixed] = [await emulator(t), await emulator(t, "other"), await emulator(t, "tiny", false)];
  await made.serve(first, same, other, fixed);
  assert.deepEqual(made.modelsOf(same), ["tiny", "a", "b"]);
  assert.deepEqual(made.modelsOf(other), ["other"]);
  assert.deepEqual(made.modelsOf(fixed), ["tiny"], "one that lets no adapters be loaded serves without");
  assert.deepEqual(made.fleet.keeper.adapterLoads, { loaded: 2, failed: 2, forgotten: 0 });
  assert.equal(made.fleet.events.filter(({ kind }) => kind === "adapter-failed").length, 2);
  const joined = made.fleet.inputs.flatMap((input) => (input.kind === "endpoint-joined" ? [input.endpoint] : []));
  assert.deepEqual(joined.find(({ id }) => id === same.url)?.models, ["tiny", "a", "b"]);
});

test("a reset through the gateway empties what is known of each engine's cache at once", async (t) => {
  const engines = [await emulator(t), await emulator(t)];
  const made = await Administered.of(t, ...engines);
  assert.equal((await made.call("/reset_prefix_cache?reset_running_requests=true")).status, 200);
  const cleared = made.fleet.inputs.flatMap((input) => (input.kind === "blocks-cleared" ? [input.endpoint] : []));
  assert.deepEqual(cleared.sort(), engines.map(({ url }) => url).sort());
});
