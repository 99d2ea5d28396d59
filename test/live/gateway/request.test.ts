import assert from "node:assert/strict";
import type { Socket } from "node:net";
import { describe, test } from "node:test";

import type { RouteRequest } from "#core/request/request.ts";

import {
  type Ask,
  CHAT,
  IDENTITY,
  LEARNT,
  type Rig,
  type RigOptions,
  WORD_TOKENIZER,
  ask,
  encodeWords,
  startRig,
} from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  streamOf,
  tokenChunk,
} from "./stub-engine.ts";

const ok: Reply = (_request, socket) => socket.write(jsonReply(200, chatAnswer("ok")));

async function withRig<T>(reply: Reply, body: (rig: Rig) => Promise<T>, options: RigOptions = {}): Promise<T> {
  const rig = await startRig([reply], options);
  try {
    return await body(rig);
  } finally {
    await rig.close();
  }
}

/** The request as the router got it. */
function routed(body: object | string | Buffer, how: Ask = {}, options: RigOptions = {}): Promise<RouteRequest> {
  return withRig(
    ok,
    async (rig) => {
      const got = await ask(rig.url, body, how);
      assert.equal(got.status, 200, got.body);
      const arrival = rig.inputs.find((input) => input.kind === "request-arrived");
      assert.ok(arrival?.kind === "request-arrived");
      return arrival.request;
    },
    options,
  );
}

const text = (prompt: unknown, more: object = {}): Promise<RouteRequest> =>
  routed({ model: "tiny", prompt, ...more }, { path: "/v1/completions" });

const EXACT: RigOptions = {
  tokenizer: () => ({ ...WORD_TOKENIZER, encode: (prompt) => ({ ...encodeWords(prompt), exact: true }) }),
};
const exactly = (prompt: unknown, more: object): Promise<RouteRequest> =>
  routed({ model: "tiny", prompt, ...more }, { path: "/v1/completions" }, EXACT);

describe("what the router learns of a request", () => {
  test("its sequences are its prompts times n", async () => {
    assert.equal((await text("a b")).sequences, 1);
    assert.equal((await text("a b", { n: 3 })).sequences, 3);
    assert.equal((await text(["a", "b", "c"], { n: 2 })).sequences, 6);
    assert.equal((await text([[1], [2]])).sequences, 2);
    assert.equal((await text([1, 2])).sequences, 1);
  });

  test("tokens: of the first prompt, and of the others by length", async () => {
    assert.equal((await text("a b c d")).promptTokens, 4);
    assert.equal((await text([1, 2, 3, 4, 5, 6, 7, 8])).promptTokens, 8);
    assert.equal((await text([1, 2, 3, 4, 5, 6, 7, 8])).blocks.length, 2);
    assert.equal((await text(["a b c d", "e f g h", "i j k l"])).promptTokens, 12);
  });

  test("of a completion with several prompts, the tokens of each", async () => {
    const { tokensByPrompt } = await text(["a b c d", "e f", "g h i j k l m n"]);
    assert.deepEqual(tokensByPrompt, [4, 2, 9]);
    const ids = await text([[1, 2, 3], [4]], { n: 2 });
    assert.deepEqual([ids.tokensByPrompt, ids.promptTokens, ids.sequences], [[3, 1], 4, 4]);
    const cut = await text(["b ".repeat(99) + "b", "a a"], { truncate_prompt_tokens: 10 });
    assert.deepEqual(cut.tokensByPrompt, [10, 2]);
    assert.equal((await text(["a b c d"])).tokensByPrompt, undefined);
    const inputs = await routed({ model: "tiny", input: ["a b", "c d"] }, { path: "/v1/embeddings" });
    assert.equal(inputs.tokensByPrompt, undefined);
  });

  test("a prompt that the engine is to cut: what is left of it, and no longer exact", async () => {
    const tokens = [1, 2, 3, 4, 5, 6, 7, 8];
    const whole = await exactly(tokens, {});
    const cases: [more: object, promptTokens: number, blocks: number, exact: boolean][] = [
      [{}, 8, 2, true],
      [{ truncate_prompt_tokens: null }, 8, 2, true],
      [{ truncate_prompt_tokens: 8 }, 8, 2, true],
      [{ truncate_prompt_tokens: 5, truncation_side: "right" }, 5, 1, false],
      [{ truncate_prompt_tokens: 5, truncation_side: "left" }, 5, 0, false],
      [{ truncate_prompt_tokens: 5 }, 5, 0, false],
      [{ truncate_prompt_tokens: 0 }, 0, 0, false],
      [{ truncate_prompt_tokens: -1 }, 8, 2, false],
      // vLLM refuses these itself.
      [{ truncate_prompt_tokens: -2 }, 8, 2, true],
      [{ truncate_prompt_tokens: "5" }, 8, 2, true],
    ];
    for (const [more, promptTokens, blocks, exact] of cases) {
      const cut = await exactly(tokens, more);
      const said = JSON.stringify(more);
      assert.deepEqual(
        [cut.promptTokens, cut.blocks.length, cut.promptTokensExact],
        [promptTokens, blocks, exact],
        said,
      );
      assert.deepEqual(cut.blocks.hashes, whole.blocks.hashes.subarray(0, 2 * blocks), said);
    }
  });

  test("several prompts that the engine is to cut: each of them is", async () => {
    const long = "b ".repeat(99) + "b";
    const cut = (prompts: readonly string[], limit: number) =>
      text(prompts, { truncate_prompt_tokens: limit }).then(({ promptTokens }) => promptTokens);
    assert.equal(await cut([long, long], 10), 20);
    assert.equal(await cut(["a", long], 10), 11);
    assert.equal(await cut([long, long], 1000), 200);
    assert.equal(await cut([long, long], -1), 200);
  });

  test("an engine's count of a prompt that it cut teaches the tokenizer nothing", async () => {
    LEARNT.length = 0;
    await exactly("a b c d", { truncate_prompt_tokens: 2 });
    assert.deepEqual(LEARNT, []);
    await exactly("a b c d", { truncate_prompt_tokens: 100 });
    assert.equal(LEARNT.length, 1);
  });

  test("the ceiling on output, whatever its name", async () => {
    assert.equal((await text("a", { max_tokens: 7 })).outputTokensMax, 7);
    assert.equal((await routed({ ...CHAT, max_completion_tokens: 8, max_tokens: 9 })).outputTokensMax, 8);
    assert.equal((await text("a")).outputTokensMax, undefined);
  });

  test("priority, from the header before the body, where clients may state it", async () => {
    const allowed: RigOptions = { engineFields: ["priority", "x-vllm-priority"] };
    const headers = { "x-vllm-priority": "-2" };
    const prioritized = { ...CHAT, priority: 4 };
    assert.equal((await routed(prioritized, {}, allowed)).priority, 4);
    assert.equal((await routed(prioritized, { headers }, allowed)).priority, -2);
    assert.equal((await routed(prioritized, { headers }, { engineFields: ["priority"] })).priority, 4);
    assert.equal((await routed(prioritized, { headers })).priority, 0);
    const endless = JSON.stringify(prioritized).replace('"priority":4', '"priority":1e999');
    assert.equal((await routed(endless, {}, allowed)).priority, 0);
  });

  test("the session, from header or body, as a digest that is equal where what was sent is", async () => {
    const sessions = await Promise.all([
      routed(CHAT, { headers: { "X-Session-ID": "s1" } }),
      routed({ ...CHAT, session_id: "s1" }),
      routed({ ...CHAT, prompt_cache_key: "s1" }),
      routed({ ...CHAT, session_id: "s2" }),
      routed(CHAT, { headers: { "X-Session-ID": `s1${"x".repeat(200)}y` } }),
      routed(CHAT, { headers: { "X-Session-ID": `s1${"x".repeat(200)}z` } }),
    ]);
    const [first, ...others] = sessions.map(({ session }) => session);
    assert.match(first!, /^session-[0-9a-f]{16}$/);
    assert.deepEqual(
      others.map((session) => session === first),
      [true, true, false, false, false],
    );
    assert.notEqual(others[3], others[4], "long ones are not cut before they are compared");
    assert.match((await routed({ ...CHAT, user: "me@example.com" })).session, /^user-[0-9a-f]{16}$/);
    assert.equal((await routed(CHAT)).session, "");
    const identity = { ...IDENTITY, secret: "of another deployment" };
    assert.notEqual((await routed({ ...CHAT, session_id: "s1" }, {}, { identity })).session, first);
  });

  test("the tenant, and never a key or a name", async () => {
    const acme = await routed(CHAT, { headers: { "x-tenant-id": "acme" } });
    assert.match(acme.tenant, /^tenant-[0-9a-f]{16}$/);
    assert.equal((await routed(CHAT, { headers: { "x-tenant-id": "acme" } })).tenant, acme.tenant);
    const keyed = await routed(CHAT, { headers: { authorization: "Bearer sk-secret" } });
    assert.match(keyed.tenant, /^key-[0-9a-f]{16}$/);
    assert.equal((await routed(CHAT, { headers: { authorization: "Bearer sk-secret" } })).tenant, keyed.tenant);
    assert.notEqual((await routed(CHAT, { headers: { authorization: "Bearer sk-other" } })).tenant, keyed.tenant);
    assert.match((await routed({ ...CHAT, user: "me@example.com" })).tenant, /^user-[0-9a-f]{16}$/);
    assert.equal((await routed(CHAT)).tenant, "");
  });

  test("a profile only through the header that was named for it", async () => {
    const headers = { "x-profile": "default", "x-slo": "batch" };
    assert.equal((await routed(CHAT, { headers })).profile, "");
    const identity = {
      tenantHeaders: [],
      sessionHeaders: [],
      inForce: { profileHeader: "x-profile" },
      sloHeaders: ["x-slo"],
      secret: "s",
    };
    const request = await routed(CHAT, { headers }, { identity });
    assert.equal(request.profile, "default");
    assert.equal(request.sloClass, "batch");
  });

  test("other routes are routed on what text they have", async () => {
    const has = async (body: object, path: string): Promise<number> =>
      (await routed({ model: "tiny", ...body }, { path })).promptTokens;
    assert.equal(await has({ input: "a b c" }, "/v1/responses"), 3);
    assert.ok((await has({ input: [{ role: "user", content: "a b c" }], instructions: "x y" }, "/v1/responses")) > 3);
    assert.equal(await has({ messages: [{ role: "user", content: "a b" }] }, "/v1/messages"), 2);
    assert.equal(await has({ system: "x y", messages: [{ role: "user", content: "a b" }] }, "/v1/messages"), 3);
    assert.equal(await has({ input: ["a b", "c d"] }, "/v1/embeddings"), 4);
    assert.equal(await has({ query: "a", documents: ["b"] }, "/v1/rerank"), 0);
  });

  test("a form passes byte for byte, its model found", () =>
    withRig(
      ok,
      async (rig) => {
        const body = Buffer.from(
          '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n\u0000\u00ff\r\n--b--\r\n',
          "latin1",
        );
        const headers = { "content-type": "multipart/form-data; boundary=b" };
        const got = await ask(rig.url, body, { path: "/v1/audio/transcriptions/", headers });
        assert.equal(got.status, 200);
        assert.ok(rig.engines[0]!.requests[0]!.body.equals(body));
        assert.equal(rig.engines[0]!.requests[0]!.path, "/v1/audio/transcriptions");
        assert.equal(rig.summaries[0]!.model, "whisper");
        assert.equal(rig.summaries[0]!.route, "/v1/audio/*");
      },
      { models: ["tiny", "whisper"] },
    ));

  test("the same request id twice at once is two requests", () =>
    withRig(ok, async (rig) => {
      const headers = { "x-request-id": "twin" };
      const both = await Promise.all([ask(rig.url, CHAT, { headers }), ask(rig.url, CHAT, { headers })]);
      for (const got of both) {
        assert.equal(got.status, 200);
        assert.equal(got.headers["x-request-id"], "twin");
      }
      assert.equal(rig.summaries.length, 2);
    }));
});

describe("what the router learns of an answer", () => {
  test("its token counts are the engine's own, of which the tokenizer learns too", () =>
    withRig(ok, async (rig) => {
      LEARNT.length = 0;
      await ask(rig.url, CHAT);
      const end = rig.inputs.at(-1);
      assert.ok(end?.kind === "request-finished");
      assert.deepEqual([end.promptTokens, end.cachedTokens, end.outputTokens], [29, 16, 12]);
      assert.deepEqual(LEARNT, [29], "the tokenizer learns it too");
    }));

  test("a stream's tokens are counted where the engine does not, and progress is reported now and then", () =>
    withRig(
      (_r, socket) => socket.write(streamOf(100)),
      async (rig) => {
        await ask(rig.url, { ...CHAT, stream: true });
        const progress = rig.inputs.flatMap((input) => (input.kind === "progress" ? [input.outputTokens] : []));
        assert.deepEqual(progress, [31, 61, 91]);
        assert.equal(rig.summaries[0]!.outputTokens, 100);
        assert.equal(rig.kinds().filter((kind) => kind === "first-token").length, 1);
      },
      { limits: { progressTokens: 30 } },
    ));

  test("slow output is reported by time", () => {
    let engine: Socket | undefined;
    return withRig(
      (_r, socket) => {
        engine = socket;
        socket.write(STREAM_HEAD + tokenChunk("a") + tokenChunk("b"));
      },
      async (rig) => {
        const answered = ask(rig.url, { ...CHAT, stream: true });
        const progress = (): number[] =>
          rig.inputs.flatMap((input) => (input.kind === "progress" ? [input.outputTokens] : []));
        while (progress().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        engine!.write(event("[DONE]") + STREAM_END);
        await answered;
        assert.deepEqual(progress(), [2]);
      },
      { limits: { progressMillis: 20 } },
    );
  });

  test("choices interleave and count together", () =>
    withRig(
      (_r, socket) => {
        const part = (index: number, content: string, finish: string | null = null): string =>
          event({ choices: [{ index, delta: { content }, finish_reason: finish }] });
        const tokens = [0, 1, 0, 1].map((index) => part(index, "x")).join("");
        socket.write(STREAM_HEAD + part(0, "") + part(1, "") + tokens + part(0, "x", "stop") + part(1, "x", "stop"));
        socket.write(event("[DONE]") + STREAM_END);
      },
      async (rig) => {
        await ask(rig.url, { ...CHAT, n: 2, stream: true });
        assert.equal(rig.summaries[0]!.outputTokens, 6);
      },
    ));
});

describe("usage asked for by the gateway", () => {
  const answer: Reply = (request, socket) => {
    const options = (JSON.parse(request.body.toString()) as { stream_options?: Record<string, unknown> })
      .stream_options;
    const usage = event({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } });
    const asked = options?.["include_usage"] === true ? usage : "";
    socket.write(STREAM_HEAD + tokenChunk("a") + tokenChunk("b", "stop") + asked + event("[DONE]") + STREAM_END);
  };

  test("is added to the request, and its chunk is kept from the client", () =>
    withRig(
      answer,
      async (rig) => {
        const plain = await ask(rig.url, { ...CHAT, stream: true });
        assert.ok(!plain.body.includes("usage"));
        assert.ok(plain.body.endsWith("data: [DONE]\n\n"));
        assert.equal(rig.summaries[0]!.promptTokens, 5);
        const continuous = { ...CHAT, stream: true, stream_options: { continuous_usage_stats: true } };
        await ask(rig.url, continuous);
        const sent = JSON.parse(rig.engines[0]!.requests[1]!.body.toString()) as { stream_options: object };
        assert.deepEqual(sent.stream_options, { continuous_usage_stats: false, include_usage: true });
        const own = await ask(rig.url, { ...CHAT, stream: true, stream_options: { include_usage: true } });
        assert.ok(own.body.includes("usage"), "a client that asked gets it");
      },
      { requestUsage: true },
    ));

  test("is off by default: the client's bytes go as they are", () =>
    withRig(answer, async (rig) => {
      const body = JSON.stringify({ ...CHAT, stream: true });
      await ask(rig.url, body);
      assert.equal(rig.engines[0]!.requests[0]!.body.toString(), body);
    }));
});

describe("what the gateway asks engines for in a stream", () => {
  const answer: Reply = (_request, socket) =>
    socket.write(STREAM_HEAD + tokenChunk("a", "stop") + event("[DONE]") + STREAM_END);
  const added = { include_usage: true, continuous_usage_stats: false };
  const cases: readonly [
    asked: object,
    sent: { readonly stream_options?: unknown; readonly return_token_ids?: unknown },
  ][] = [
    [{}, { stream_options: added, return_token_ids: true }],
    [
      { return_token_ids: null, stream_options: null },
      { stream_options: added, return_token_ids: true },
    ],
    [
      { return_token_ids: "off", stream_options: { include_usage: 0 } },
      { stream_options: added, return_token_ids: true },
    ],
    ...[true, "true", "Yes", 1, "perhaps", 2].map((own): [object, object] => [
      { return_token_ids: own, stream_options: { include_usage: own } },
      { return_token_ids: own, stream_options: { include_usage: own } },
    ]),
    ...["x", [1], false, { continuous_usage_stats: "perhaps" }].map((own): [object, object] => [
      { stream_options: own },
      { stream_options: own, return_token_ids: true },
    ]),
  ];

  test("is what its client asked for in any form that vLLM takes, and never hides what vLLM refuses", () =>
    withRig(
      answer,
      async (rig) => {
        for (const path of ["/v1/chat/completions", "/v1/completions"])
          for (const [asked, sent] of cases) {
            await ask(rig.url, { ...CHAT, prompt: "a", max_tokens: 4, stream: true, ...asked }, { path });
            const got = JSON.parse(String(rig.engines[0]!.requests.at(-1)!.body)) as typeof sent;
            const { stream_options, return_token_ids } = got;
            assert.deepEqual({ stream_options, return_token_ids }, sent, `${path} ${JSON.stringify(asked)}`);
          }
      },
      { requestUsage: true, stages: { clients: { continueStreams: true } } },
    ));
});
