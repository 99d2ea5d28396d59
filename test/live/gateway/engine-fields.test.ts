import assert from "node:assert/strict";
import { test } from "node:test";
import { ENGINE_FIELDS, ENGINE_HEADERS } from "#core/engine-names.ts";
import { CHAT, ask, startRig, type RigOptions } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply } from "./stub-engine.ts";

const ok: Reply = (_request, socket) => socket.write(jsonReply(200, chatAnswer("ok")));
const ROUTES = [
  "/v1/chat/completions",
  "/v1/chat/completions/batch",
  "/v1/completions",
  "/v1/responses",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/embeddings",
  "/pooling",
  "/classify",
  "/score",
  "/rerank",
  "/tokenize",
];
/** Of a client that would be the engines' router. */
const GIVEN = Object.fromEntries(
  ENGINE_FIELDS.map((name) => [name, name === "priority" ? -9 : { remote_host: "evil" }]),
);
const HEADERS = Object.fromEntries(ENGINE_HEADERS.map((name) => [name, "-9"]));

/** What the engine got. */
async function sent(body: object | string, path: string, options: RigOptions = {}, headers = {}) {
  const rig = await startRig([ok], options);
  try {
    const got = await ask(rig.url, body, { path, headers });
    assert.equal(got.status, 200, got.body);
    const [request] = rig.engines[0]!.requests;
    return { body: request!.body.toString(), names: request!.headers.map(([name]) => name.toLowerCase()), rig };
  } finally {
    await rig.close();
  }
}

test("what engines arrange among themselves reaches none from a client, by whatever route, and is counted by name", async () => {
  for (const path of ROUTES) {
    const plain = { model: "tiny", prompt: "a b", input: "a b", messages: CHAT.messages, cache_salt: "s" };
    const xargs = { vllm_xargs: { ...GIVEN, mine: 1 }, metadata: { priority: "the client's" } };
    const { body, names, rig } = await sent({ ...GIVEN, ...plain, ...xargs }, path, {}, HEADERS);
    const left = { ...plain, vllm_xargs: { mine: 1 }, metadata: xargs.metadata };
    assert.deepEqual(JSON.parse(body), left, path);
    for (const name of ENGINE_HEADERS) assert.ok(!names.includes(name), `${path} ${name}`);
    const counted = Object.fromEntries([...ENGINE_FIELDS, ...ENGINE_HEADERS].map((name) => [name, 1]));
    assert.deepEqual({ ...rig.gateway.counters.stripped }, counted, path);
  }
});

test("hidden among the parameters of an extension alone, they are found as well", async () => {
  const hidden = { ...CHAT, vllm_xargs: { kv_transfer_params: "no object", extra_args: { priority: 1 } } };
  const { body } = await sent(hidden, "/v1/chat/completions");
  assert.deepEqual(JSON.parse(body), { ...CHAT, vllm_xargs: { extra_args: {} } });
});

test("what the configuration allows passes byte for byte, and so does a body with nothing of it", async () => {
  const allowed = { engineFields: ["priority", "x-vllm-priority", "x-data-parallel-rank"] } as const;
  const text = `{ "priority":3 , "model":"tiny","prompt":"a","metadata":{"kv_transfer_params":1}}`;
  const passed = await sent(text, "/v1/completions", allowed, HEADERS);
  assert.equal(passed.body, text);
  assert.deepEqual(
    ENGINE_HEADERS.filter((name) => passed.names.includes(name)),
    ["x-vllm-priority", "x-data-parallel-rank"],
  );
  const bare = text.replace("priority", "user");
  assert.equal((await sent(bare.replace("3", '"u"'), "/v1/completions")).body, bare.replace("3", '"u"'));
});

test("of a long body that is read in turns too, and of a conversation whose beginning is known", async () => {
  const rig = await startRig([ok]);
  try {
    for (const chars of [200_000, 9_000]) {
      for (let turns = 1; turns < 5; turns++) {
        const messages = Array.from({ length: 2 * turns + 1 }, (_, i) => ({
          role: i % 2 === 0 ? "user" : "assistant",
          content: "word ".repeat(chars / 5),
        }));
        const chat = { model: "tiny", messages, max_tokens: 3 };
        await ask(rig.url, { kv_transfer_params: { remote_host: "evil" }, ...chat, priority: 4 });
        assert.deepEqual(JSON.parse(rig.engines[0]!.requests.at(-1)!.body.toString()), chat);
      }
    }
    assert.ok((rig.gateway.counters.knownBodies["known"] ?? 0) > 0);
    assert.deepEqual({ ...rig.gateway.counters.stripped }, { kv_transfer_params: 8, priority: 8 });
  } finally {
    await rig.close();
  }
});
