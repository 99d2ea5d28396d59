import assert from "node:assert/strict";
import { test } from "node:test";
import { type Rig, startRig } from "../live/gateway/rig.ts";
import { startAs } from "./captures.ts";

const post = (url: string, path: string, body: object) =>
  fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
const chat = { messages: [{ role: "user", content: "hi" }], max_completion_tokens: 2 };

test("adapters come and go as at vLLM, with its answers and errors", async () => {
  const emulator = await startAs("18101", { runtimeAdapters: true });
  try {
    const { url } = emulator;
    const models = async () =>
      ((await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string; parent: string | null }[] }).data;
    const say = async (path: string, body: object) => {
      const got = await post(url, path, body);
      const text = await got.text();
      return [
        got.status,
        text.startsWith("{") ? (JSON.parse(text) as { error: { message: string } }).error.message : text,
      ];
    };
    assert.equal((await post(url, "/v1/chat/completions", { ...chat, model: "fr" })).status, 404);
    const loaded = await say("/v1/load_lora_adapter", { lora_name: "fr", lora_path: "/adapters/fr" });
    assert.deepEqual(loaded, [200, "Success: LoRA adapter 'fr' added successfully."]);
    assert.deepEqual(
      (await models()).map(({ id, parent }) => [id, parent]),
      [
        ["tiny", null],
        ["fr", "tiny"],
      ],
    );
    const answer = await post(url, "/v1/chat/completions", { ...chat, model: "fr" });
    assert.equal(((await answer.json()) as { model: string }).model, "fr");
    const again = await say("/v1/load_lora_adapter", { lora_name: "fr", lora_path: "/adapters/fr" });
    assert.deepEqual([again[0], /already been loaded/.test(String(again[1]))], [400, true]);
    const inPlace = { lora_name: "fr", lora_path: "/other", load_inplace: true };
    assert.equal((await say("/v1/load_lora_adapter", inPlace))[0], 200);
    assert.equal((await say("/v1/load_lora_adapter", { lora_name: "tiny", lora_path: "/x" }))[0], 400);
    assert.deepEqual(await say("/v1/unload_lora_adapter", { lora_name: "fr" }), [
      200,
      "Success: LoRA adapter 'fr' removed successfully.",
    ]);
    assert.deepEqual(await say("/v1/unload_lora_adapter", { lora_name: "fr" }), [
      404,
      "The lora adapter 'fr' cannot be found.",
    ]);
    assert.equal((await post(url, "/v1/chat/completions", { ...chat, model: "fr" })).status, 404);
  } finally {
    await emulator.close();
  }
});

test("without that option the routes are not there", async () => {
  const emulator = await startAs("18101");
  const got = await post(emulator.url, "/v1/load_lora_adapter", { lora_name: "fr", lora_path: "/x" });
  assert.deepEqual([got.status, await got.text()], [404, '{"detail":"Not Found"}']);
  await emulator.close();
});

test("the gateway's administration loads one at all engines", async () => {
  const emulators = [
    await startAs("18101", { runtimeAdapters: true }),
    await startAs("18101", { runtimeAdapters: true }),
  ];
  let rig: Rig | undefined;
  try {
    const administration = {
      paths: ["/v1/load_lora_adapter"],
      access: () => "allowed" as const,
      millisMax: 5_000,
    };
    rig = await startRig([], { urls: emulators.map(({ url }) => url), administration });
    const got = await post(rig.adminUrl, "/v1/load_lora_adapter", { lora_name: "fr", lora_path: "/x" });
    assert.equal(got.status, 200, await got.text());
    for (const { url } of emulators)
      assert.equal((await post(url, "/v1/chat/completions", { ...chat, model: "fr" })).status, 200);
  } finally {
    await rig?.close();
    for (const emulator of emulators) await emulator.close();
  }
});
