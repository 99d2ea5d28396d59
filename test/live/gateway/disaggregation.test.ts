import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import type { PrefillOrder, ProfileSpec } from "#core/plugin/spec.ts";
import { until } from "../discovery/fleet-under-test.ts";
import { LOWEST_ID_FIRST, NEVER_OPEN, type Rig, type RigOptions, ask, startRig } from "./rig.ts";
import {
  type RawRequest,
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  headerOf,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

const CHAT = {
  model: "tiny",
  messages: [{ role: "user", content: "a prompt of more than a few words" }],
  max_tokens: 9,
};
const STREAM = { ...CHAT, stream: true, stream_options: { include_usage: true }, min_tokens: 4 };
const ROLES = ["prefill", "prefill", "decode", "decode"];
/** As vLLM's NIXL connector returns it. */
const TRANSFER = {
  do_remote_prefill: true,
  do_remote_decode: false,
  remote_block_ids: [[1, 2, 3]],
  remote_engine_id: "e-1",
  remote_request_id: "r-1",
  remote_host: "127.0.0.1",
  remote_port: 5600,
};

const profile = (handoff: PrefillOrder, colocateBelowTokens = 1): ProfileSpec => ({
  ...LOWEST_ID_FIRST,
  disaggregation: {
    prefill: LOWEST_ID_FIRST,
    colocateBelowTokens,
    promptTokensMin: 0,
    handoff,
    roles: ROLES_DEFAULT,
  },
});

const bodyOf = ({ body }: RawRequest) => JSON.parse(body.toString()) as Record<string, unknown>;

/** What a prefill engine answers: one token, and where its blocks are. */
const prefills: Reply = (_request, socket) => {
  const answer = { ...(chatAnswer("x", "length") as object), kv_transfer_params: TRANSFER };
  socket.write(jsonReply(200, answer));
};
const usage = (completion: number) => ({
  prompt_tokens: 29,
  total_tokens: 29 + completion,
  completion_tokens: completion,
  prompt_tokens_details: { cached_tokens: 28 },
});
const STREAMED = [
  STREAM_HEAD,
  roleChunk(),
  tokenChunk(" one"),
  tokenChunk(" two", "length"),
  event({ id: "c", choices: [], usage: usage(2) }),
  event("[DONE]"),
  STREAM_END,
].join("");
const answers: Reply = (request, socket) => {
  const { stream, max_tokens: max } = bodyOf(request);
  if (max === 0) socket.write(jsonReply(400, { error: { message: "max_tokens must be at least 1", code: 400 } }));
  else
    socket.write(stream === true ? STREAMED : jsonReply(200, { ...(chatAnswer("good") as object), usage: usage(12) }));
};

async function withRig(
  replies: readonly Reply[],
  body: (rig: Rig) => Promise<void>,
  options: RigOptions & { readonly handoff?: PrefillOrder; readonly colocateBelowTokens?: number } = {},
): Promise<void> {
  const { handoff = "prefill-first", colocateBelowTokens, ...rest } = options;
  const labels = ROLES.map((role) => ({ [ROLES_DEFAULT.label]: role }));
  const rig = await startRig(replies, {
    breaker: NEVER_OPEN,
    profile: profile(handoff, colocateBelowTokens),
    labels,
    ...rest,
  });
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}

const WELL = [prefills, prefills, answers, answers];

/** The requests that an engine got to compute or answer, those left out that free blocks. */
const asked = (rig: Rig, engine: number) =>
  rig.engines[engine]!.requests.filter((one) => bodyOf(one)["max_tokens"] !== 0);
const freed = (rig: Rig) =>
  rig.engines.flatMap(({ requests }) => requests.filter((one) => bodyOf(one)["max_tokens"] === 0));

describe("a prompt is computed at one endpoint and answered at another", () => {
  for (const body of [STREAM, CHAT]) {
    const how = "stream" in body ? "streamed" : "in one piece";
    test(`one after the other, ${how}`, async () => {
      await withRig(WELL, async (rig) => {
        const got = await ask(rig.url, body);
        assert.equal(got.status, 200);
        assert.equal(got.headers["x-gnomon-endpoint"], "c");
        assert.equal(got.headers["x-gnomon-prefill-endpoint"], "a");
        assert.match(got.body, /"prompt_tokens_details":\{"cached_tokens":16\}/, "not what was fetched");
        assert.match(String(got.headers["x-gnomon-reason"]), /^tie; .*; its prompt computed at a \(tie\)$/);
        const [first] = asked(rig, 0);
        const [second] = asked(rig, 2);
        const sent = bodyOf(first!);
        assert.deepEqual([sent["max_tokens"], sent["stream"], sent["stream_options"] ?? null], [1, false, null]);
        if ("min_tokens" in body) assert.equal(sent["min_tokens"], 1);
        assert.deepEqual(sent["messages"], body.messages);
        assert.equal((sent["kv_transfer_params"] as typeof TRANSFER).do_remote_decode, true);
        const { kv_transfer_params: transfer, ...rest } = bodyOf(second!);
        assert.deepEqual(transfer, TRANSFER);
        assert.deepEqual(rest, body);
        assert.equal(headerOf(first!, "x-request-id"), headerOf(second!, "x-request-id"));
        const kinds = rig.kinds();
        const token = "stream" in body ? ["first-token"] : [];
        assert.deepEqual(kinds, ["request-arrived", "prefill-finished", ...token, "request-finished"]);
        const finished = rig.inputs.find((input) => input.kind === "request-finished")!;
        assert.deepEqual(
          [finished.promptTokens, finished.cachedTokens, finished.outputTokens],
          [29, 16, "stream" in body ? 2 : 12],
          "the prefill engine's hits, and the answer's own tokens",
        );
        assert.equal(rig.summaries[0]!.prefillEndpoint, "a");
        assert.equal(freed(rig).length, 0);
      });
    });

    test(`both at once, ${how}`, async () => {
      await withRig(
        WELL,
        async (rig) => {
          const got = await ask(rig.url, body);
          assert.equal(got.status, 200);
          const [first, second] = [bodyOf(asked(rig, 0)[0]!), bodyOf(asked(rig, 2)[0]!)];
          assert.deepEqual([first["max_tokens"], first["stream"]], [1, false]);
          assert.equal(second["max_tokens"], 9);
          for (const one of [first, second]) {
            assert.deepEqual([one["bootstrap_host"], one["bootstrap_port"]], ["127.0.0.1", 8998]);
            assert.equal(one["bootstrap_room"], first["bootstrap_room"]);
          }
          assert.ok(Number.isSafeInteger(first["bootstrap_room"]));
          assert.equal(rig.decisions.length, 1);
        },
        { handoff: "together" },
      );
    });
  }

  test("a prompt below the threshold, and a request that somebody else shares already, stay at one endpoint", async () => {
    await withRig(
      WELL,
      async (rig) => {
        const got = await ask(rig.url, CHAT);
        assert.deepEqual(
          [got.headers["x-gnomon-endpoint"], got.headers["x-gnomon-prefill-endpoint"]],
          ["c", undefined],
        );
        assert.deepEqual([asked(rig, 0).length, bodyOf(asked(rig, 2)[0]!)], [0, CHAT]);
        assert.match(String(got.headers["x-gnomon-reason"]), /; one endpoint does both \(short\)$/);
      },
      { colocateBelowTokens: 1_000 },
    );
    await withRig(
      WELL,
      async (rig) => {
        await ask(rig.url, { ...CHAT, kv_transfer_params: { do_remote_prefill: true } });
        assert.equal(asked(rig, 0).length, 0);
        const [decision] = rig.decisions;
        assert.ok(decision?.kind === "routed" && decision.colocated === "undivided");
      },
      { engineFields: ["kv_transfer_params"] },
    );
  });

  test("a request that the prefill engine turns down gets its answer", async () => {
    const refuses: Reply = (_request, socket) =>
      socket.write(jsonReply(400, { error: { message: "too long", type: "BadRequestError", param: null, code: 400 } }));
    await withRig([refuses, prefills, answers, answers], async (rig) => {
      const got = await ask(rig.url, CHAT);
      assert.equal(got.status, 400);
      assert.match(got.body, /too long/);
      assert.deepEqual(rig.kinds(), ["request-arrived", "request-finished"]);
      assert.equal(asked(rig, 2).length, 0);
    });
  });
});

const says =
  (bytes: string): Reply =>
  (_request, socket) =>
    socket.write(bytes);
const error = (message: string, code: number) =>
  jsonReply(code, { error: { message, type: "InternalServerError", param: null, code } });
const breaks: Reply = (_request, socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{");
const resets: Reply = (_request, socket) => void socket.resetAndDestroy();

/** Every way in which an engine fails before its client has a byte. */
const FAULTS: Readonly<Record<string, Reply>> = {
  "an error": says(error("EngineCore encountered an issue.", 500)),
  "too much to do": says(error("The engine is currently busy and cannot accept new requests.", 503)),
  "its shutdown": says(error("cannot schedule new futures after shutdown", 500)),
  "an answer that breaks": breaks,
  "a connection that is reset": resets,
  "an answer that is none": says("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\noops"),
  "an answer that it gave up": says(jsonReply(200, chatAnswer("x", "abort"))),
};

describe("nothing is lost by a single fault", () => {
  for (const [fault, reply] of Object.entries(FAULTS)) {
    for (const handoff of ["prefill-first", "together"] as const) {
      for (const body of [STREAM, CHAT]) {
        const how = `${handoff}, ${"stream" in body ? "streamed" : "in one piece"}`;
        test(`of the prefill engine: ${fault}; ${how}`, async () => {
          const failed = Promise.withResolvers<void>();
          const answersThen: Reply = (request, socket) => void failed.promise.then(() => answers(request, socket));
          await withRig(
            [reply, prefills, handoff === "together" ? answersThen : answers, answers],
            async (rig) => {
              const asking = ask(rig.url, body);
              await until("its fault is known", () => rig.kinds().includes("prefill-failed"));
              failed.resolve();
              const got = await asking;
              assert.equal(got.status, 200, got.body);
              assertWhole(got.body, "stream" in body);
              assert.equal(rig.kinds().filter((kind) => kind === "prefill-failed").length, 1);
              assert.equal(got.headers["x-gnomon-prefill-endpoint"], "b");
              assert.equal(rig.summaries[0]!.outcome, "ok");
            },
            { handoff },
          );
        });

        test(`of the engine that answers: ${fault}; ${how}`, async () => {
          await withRig(
            [prefills, prefills, reply, answers],
            async (rig) => {
              const got = await ask(rig.url, body);
              assert.equal(got.status, 200, got.body);
              assertWhole(got.body, "stream" in body);
              assert.equal(got.headers["x-gnomon-endpoint"], "d");
              if (handoff === "together") return;
              const failed = rig.kinds().filter((kind) => kind === "attempt-failed" || kind === "transfer-failed");
              assert.deepEqual(failed, ["attempt-failed"]);
              await until("what nobody fetched is freed", () => freed(rig).length === 1);
              assert.deepEqual(bodyOf(freed(rig)[0]!)["kv_transfer_params"], TRANSFER);
              await until("it is counted", () => rig.gateway.counters.transfersReleased === 1);
            },
            { handoff },
          );
        });
      }
    }
  }

  test("of all prefill engines: who answers computes the prompt", async () => {
    const [down] = [FAULTS["an error"]!];
    await withRig([down, down, answers, answers], async (rig) => {
      const got = await ask(rig.url, STREAM);
      assert.equal(got.status, 200);
      assertWhole(got.body, true);
      const last = rig.decisions.at(-1)!;
      assert.ok(last.kind === "routed" && last.colocated === "no-prefill-endpoint");
    });
  });

  test("where blocks got lost between two engines, one does both", async () => {
    let first = true;
    const loses: Reply = (request, socket) => {
      if (!first) return answers(request, socket);
      first = false;
      return socket.write(error("Internal server error", 500));
    };
    await withRig([prefills, prefills, loses, answers], async (rig) => {
      const got = await ask(rig.url, STREAM);
      assertWhole(got.body, true);
      const last = rig.decisions.at(-1)!;
      assert.ok(last.kind === "routed" && last.colocated === "transfer-failed");
      assert.equal(got.headers["x-gnomon-endpoint"], "c", "it speaks against neither");
    });
  });

  test("of a prefill engine that is lost or falls silent while it computes: another one does", async () => {
    const never: Reply = () => {};
    for (const handoff of ["prefill-first", "together"] as const) {
      // Both at once: who answers waits for the blocks.
      const waits: Reply = (request, socket) => {
        if (handoff === "prefill-first" || request.index > 0) answers(request, socket);
      };
      await withRig(
        [never, prefills, waits, waits],
        async (rig) => {
          const asking = ask(rig.url, STREAM);
          await rig.engines[0]!.asked(1);
          rig.directory.get("a")!.state = "lost";
          const got = await asking;
          assertWhole(got.body, true);
          assert.equal(got.headers["x-gnomon-prefill-endpoint"], "b");
          assert.equal(rig.kinds().filter((kind) => kind === "prefill-failed").length, 1);
          assert.equal(rig.kinds().filter((kind) => kind === "attempt-failed").length, 0);
          assert.equal(rig.engines[0]!.sockets.size, 0, "its connection is closed");
        },
        { handoff },
      );
    }
  });

  test("a client that leaves stops whichever stage is under way, and what nobody fetches is freed", async () => {
    const never: Reply = () => {};
    for (const handoff of ["prefill-first", "together"] as const) {
      await withRig(
        [never, never, never, never],
        async (rig) => {
          const left = abandoned(rig.url);
          await rig.engines[0]!.asked(1);
          if (handoff === "together") await rig.engines[2]!.asked(1);
          left();
          await until("its engines' connections are closed", () =>
            rig.engines.every(({ sockets }) => sockets.size === 0),
          );
          await until("it is over", () => rig.summaries.length === 1);
          assert.equal(rig.summaries[0]!.outcome, "aborted");
          assert.equal(freed(rig).length, 0);
        },
        { handoff },
      );
    }
    await withRig([prefills, prefills, onlyFrees, onlyFrees], async (rig) => {
      const left = abandoned(rig.url);
      await rig.engines[2]!.asked(1);
      left();
      await until("it is over", () => rig.summaries.length === 1);
      await until("what waits is freed", () => freed(rig).length === 1);
      await until("the release is over", () => rig.gateway.counters.transfersReleased === 1);
    });
  });
});

/** Answers nothing but what frees blocks. */
const onlyFrees: Reply = (request, socket) => {
  if (bodyOf(request)["max_tokens"] === 0) answers(request, socket);
};

function abandoned(url: string): () => void {
  const stop = new AbortController();
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(STREAM),
    signal: stop.signal,
  }).catch(() => {});
  return () => stop.abort();
}

function assertWhole(body: string, streams: boolean): void {
  if (!streams) return assert.match(body, /"good"/);
  assert.equal(body.match(/\[DONE\]/g)?.length, 1, body);
  assert.equal(body.match(/"role"/g)?.length, 1);
  assert.match(body, / one.* two/s);
  assert.match(body, /"completion_tokens":2/);
}
