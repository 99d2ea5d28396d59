import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { DEFAULT_LIMITS } from "#live/http/limits.ts";

import { capture } from "./captures.ts";
import { CHAT, type RigOptions, ask, errorOf, startRig } from "./rig.ts";
import { type RawRequest, chatAnswer, headerOf, jsonReply } from "./stub-engine.ts";

const LONG_CHAT = { model: "tiny", messages: [{ role: "user", content: "a b c d e f g h i j" }] };

/** The request as the engine got it. */
async function forwarded(
  headers: Record<string, string>,
  options: RigOptions = {},
): Promise<{ request: RawRequest; headers: Record<string, unknown> }> {
  const rig = await startRig(
    [
      (_r, socket) =>
        socket.write(
          jsonReply(
            200,
            chatAnswer("ok"),
            "date: Sat, 21 Nov 2026 00:00:00 GMT\r\nserver: uvicorn\r\nx-gnomon-endpoint: evil\r\nx-gnomon-hit-tokens: 9999\r\nx-secret-hop: 1\r\n" +
              "connection: x-secret-hop\r\nkeep-alive: timeout=5\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-request-id: theirs\r\n",
          ),
        ),
    ],
    options,
  );
  const got = await ask(rig.url, CHAT, { headers, path: "/v1/chat/completions?debug=1" });
  assert.equal(got.status, 200);
  const request = rig.engines[0]!.requests[0]!;
  await rig.close();
  return { request, headers: got.headers };
}

describe("headers to the engine", () => {
  test("the client's own pass; those of one hop and those that are ours do not", async () => {
    const { request } = await forwarded({
      "x-custom": "kept",
      "x-vllm-priority": "3",
      "x-session-id": "s1",
      "x-gnomon-endpoint": "z",
      "x-gnomon-hit-tokens": "9999",
      "X-Data-Parallel-Rank": "7",
      "proxy-authorization": "Basic x",
      te: "trailers",
      connection: "keep-alive, x-hop",
      "x-hop": "1",
      "accept-encoding": "gzip",
      expect: "100-continue",
      authorization: "Bearer sk-client",
    });
    const names = request.headers.map(([name]) => name.toLowerCase());
    for (const name of ["x-custom", "x-session-id", "content-type"]) assert.ok(names.includes(name));
    for (const name of [
      "x-vllm-priority",
      "x-gnomon-endpoint",
      "x-gnomon-hit-tokens",
      "x-data-parallel-rank",
      "proxy-authorization",
      "te",
      "x-hop",
      "accept-encoding",
      "expect",
      "transfer-encoding",
    ]) {
      assert.ok(!names.includes(name), name);
    }
    assert.equal(headerOf(request, "authorization"), "Bearer sk-client");
    assert.equal(headerOf(request, "connection"), "keep-alive");
    assert.equal(names.filter((name) => name === "content-length").length, 1);
    assert.equal(request.path, "/v1/chat/completions?debug=1");
  });

  test("the endpoint's key takes the place of the client's", async () => {
    const { request } = await forwarded({ authorization: "Bearer client" }, { entry: { apiKey: "engine-key" } });
    const sent = request.headers.filter(([name]) => name.toLowerCase() === "authorization");
    assert.deepEqual(sent, [["authorization", "Bearer engine-key"]]);
  });

  test("the rank comes from the endpoint alone", async () => {
    const { request } = await forwarded({ "x-data-parallel-rank": "7" }, { entry: { dataParallelRank: 1 } });
    const sent = request.headers.filter(([name]) => name.toLowerCase() === "x-data-parallel-rank");
    assert.deepEqual(sent, [["x-data-parallel-rank", "1"]]);
  });

  test("keys of the gateway stay there", async () => {
    const { request } = await forwarded({ authorization: "bearer gate-key" }, { clientKeys: ["gate-key"] });
    assert.equal(headerOf(request, "authorization"), undefined);
  });

  test("a sane request id is the engine's too, and another is replaced", async () => {
    const sane = await forwarded({ "x-request-id": "my-req-42" });
    assert.equal(headerOf(sane.request, "x-request-id"), "my-req-42");
    assert.equal(sane.headers["x-request-id"], "my-req-42");
    const odd = await forwarded({ "x-request-id": 'a b"c'.padEnd(300, "x") });
    assert.match(headerOf(odd.request, "x-request-id")!, /^[0-9a-f-]{36}$/);
    assert.equal(odd.headers["x-request-id"], headerOf(odd.request, "x-request-id"));
  });
});

describe("headers to the client", () => {
  test("the engine's own pass; those of one hop and forged ones do not", async () => {
    const { headers } = await forwarded({});
    assert.equal(headers["date"], "Sat, 21 Nov 2026 00:00:00 GMT");
    assert.equal(headers["server"], "uvicorn");
    assert.deepEqual(headers["set-cookie"], ["a=1", "b=2"]);
    assert.equal(headers["x-gnomon-endpoint"], "a");
    assert.equal(headers["x-gnomon-reason"], "only; there is no other endpoint");
    assert.equal(headers["x-gnomon-hit-tokens"], "0");
    assert.equal(headers["x-secret-hop"], undefined);
    assert.notEqual(headers["keep-alive"], "timeout=5");
    assert.notEqual(headers["x-request-id"], "theirs");
  });

  test("the answer has the hit tokens of the decision, and so does an endpoint's own error", async () => {
    for (const status of [200, 400]) {
      const rig = await startRig([(_r, socket) => socket.write(jsonReply(status, chatAnswer("ok")))]);
      const told: unknown[] = [];
      for (let i = 0; i < 3; i++) {
        told.push(
          (await ask(rig.url, LONG_CHAT, { headers: { "x-gnomon-hit-tokens": "1" } })).headers["x-gnomon-hit-tokens"],
        );
      }
      const decided = rig.decisions.map((decision) => (decision.kind === "routed" ? String(decision.hitTokens) : ""));
      assert.deepEqual(told, decided);
      if (status === 200) assert.deepEqual(told, ["0", "8", "8"]);
      const none = await ask(rig.url, { ...LONG_CHAT, model: "unknown" });
      assert.equal(none.headers["x-gnomon-hit-tokens"], undefined);
      await rig.close();
    }
  });
});

describe("what vLLM's own answers carry", () => {
  test("its load report and its other headers pass, framed by the gateway", async () => {
    for (const [name, header, value] of [
      ["orca_json", "endpoint-load-metrics", /^JSON \{"named_metrics"/],
      ["orca_text", "endpoint-load-metrics", /^TEXT named_metrics/],
      ["chat_stream", "vary", /^Origin$/],
      ["chat_stream", "server", /^uvicorn$/],
      ["err_method", "allow", /^POST$/],
    ] as const) {
      const rig = await startRig([(_r, socket) => socket.write(capture(name).response)]);
      const got = await ask(rig.url, CHAT);
      assert.match(String(got.headers[header]), value, name);
      assert.equal(got.headers["transfer-encoding"], name === "chat_stream" ? "chunked" : undefined);
      await rig.close();
    }
  });

  test("kept connections are given up before the engine closes them", async () => {
    assert.ok(DEFAULT_LIMITS.upstreamKeepAliveMillis < 5_000);
    const rig = await startRig(
      [(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok"), "keep-alive: timeout=60\r\n"))],
      { limits: { upstreamKeepAliveMillis: 30 } },
    );
    await ask(rig.url, CHAT);
    const { sockets } = rig.engines[0]!;
    const start = Date.now();
    while (sockets.size > 0 && Date.now() - start < 60_000) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(sockets.size, 0, "whatever the engine hints");
    await rig.close();
  });
});

describe("client keys", () => {
  test("one of them is needed under /v1, its scheme in any case", async () => {
    const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
      clientKeys: ["one", "two"],
    });
    const right: Record<string, string>[] = [
      { authorization: "Bearer one" },
      { authorization: "bearer two" },
      { "x-api-key": "one" },
      { "x-api-key": "two", authorization: "Bearer of-another-gateway" },
    ];
    for (const headers of right) {
      assert.equal((await ask(rig.url, CHAT, { headers })).status, 200);
      assert.equal((await ask(rig.url, undefined, { method: "GET", path: "/v1/models", headers })).status, 200);
    }
    for (const { headers } of rig.engines[0]!.requests) {
      assert.ok(!headers.some(([name]) => /^(?:authorization|x-api-key)$/i.test(name)), "keys stay here");
    }
    const wrong: Record<string, string>[] = [
      {},
      { authorization: "Bearer three" },
      { authorization: "Basic one" },
      { "x-api-key": "three" },
    ];
    for (const headers of wrong) {
      const got = await ask(rig.url, CHAT, { headers });
      assert.equal(got.status, 401);
      assert.equal(errorOf(got).type, "AuthenticationError");
    }
    assert.equal((await ask(rig.url, undefined, { method: "GET", path: "/v1/models" })).status, 401);
    await rig.close();
  });
});
