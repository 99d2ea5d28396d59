import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, CHAT, errorOf, startRig } from "./rig.ts";
import { jsonReply, type Reply } from "./stub-engine.ts";

/** What clients of OpenAI's API may ask for and a text model's engine does not serve. */
const PATHS = [
  "/v1/embeddings",
  "/v1/audio/speech",
  "/v1/audio/transcriptions",
  "/v1/rerank",
  "/v2/rerank",
  "/score",
  "/v1/responses",
  "/v1/completions",
];
const BODY = { model: "tiny", input: "x", prompt: "x", query: "x", documents: ["x"], text_1: "x", text_2: "x" };

for (const [status, detail] of [
  [404, "Not Found"],
  [405, "Method Not Allowed"],
] as const) {
  test(`where an engine does not serve a path its ${status} becomes the error object of the API`, async (t) => {
    const reply: Reply = (_request, socket) => void socket.write(jsonReply(status, { detail }));
    const rig = await startRig([reply]);
    t.after(() => rig.close());
    for (const path of PATHS) {
      const got = await ask(rig.url, BODY, { path });
      assert.equal(got.status, status, path);
      const { code, message, param } = errorOf(got);
      assert.deepEqual([code, param], [status, null], path);
      assert.equal(message, `The engines of this model do not serve this path (${detail}).`);
      assert.equal(Number(got.headers["content-length"]), Buffer.byteLength(got.body));
    }
    for (const [method, path] of [
      ["GET", "/v1/responses/resp_1"],
      ["GET", "/v1/responses/resp_1?stream=true"],
      ["POST", "/v1/responses/resp_1/cancel"],
    ] as const) {
      const got = await ask(rig.url, undefined, { method, path });
      assert.equal(got.status, status, path);
      assert.equal(errorOf(got).message, `The engines of this model do not serve this path (${detail}).`, path);
    }
    const claude = await ask(rig.url, { ...CHAT, max_tokens: 1 }, { path: "/v1/messages" });
    assert.deepEqual((JSON.parse(claude.body) as { type: string }).type, "error");
  });
}

test("any other refusal of an engine stays as it is, whatever its length", async (t) => {
  const bodies = [
    { error: { message: "The model `x` does not exist.", type: "NotFoundError", param: "model", code: 404 } },
    { detail: [{ loc: ["body"], msg: "field required" }] },
    { detail: "x", more: 1 },
    { error: { message: "y".repeat(10_000), code: 404 } },
  ];
  let next = 0;
  const rig = await startRig([(_request, socket) => void socket.write(jsonReply(404, bodies[next]!))]);
  t.after(() => rig.close());
  for (const body of bodies) {
    for (const got of [
      await ask(rig.url, CHAT),
      await ask(rig.url, undefined, { method: "GET", path: "/v1/responses/resp_1" }),
    ]) {
      assert.equal(got.status, 404);
      assert.deepEqual(JSON.parse(got.body), body);
    }
    next++;
  }
});

test("batches, files and what else keeps something state that they are not served here", async (t) => {
  const rig = await startRig([() => assert.fail("no engine is asked")]);
  t.after(() => rig.close());
  for (const path of [
    "/v1/batches",
    "/v1/files",
    "/v1/files/file-1/content",
    "/v1/assistants",
    "/v1/fine_tuning/jobs",
  ]) {
    for (const how of [{ path }, { path, method: "GET" }]) {
      const got = await ask(rig.url, how.method === undefined ? CHAT : undefined, how);
      assert.equal(got.status, 404);
      assert.match(errorOf(got).message, /batches, files, .* are not served here/);
    }
  }
  assert.match(errorOf(await ask(rig.url, CHAT, { path: "/v1/moderations" })).message, /There is nothing at POST/);
});
