import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { BREAKER_DEFAULTS } from "#core/endpoint/breaker.ts";
import { nowMicros } from "#live/base/clock.ts";
import { capture } from "./captures.ts";
import { CHAT, NEVER_OPEN, type Rig, type RigOptions, ask, errorOf, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  chunk,
  event,
  jsonReply,
  roleChunk,
  streamOf,
  tokenChunk,
} from "./stub-engine.ts";

const STREAM = { ...CHAT, stream: true };
const good: Reply = (request, socket) => {
  const stream = (JSON.parse(request.body.toString()) as { stream?: boolean }).stream === true;
  socket.write(stream ? streamOf(4) : jsonReply(200, chatAnswer("good")));
};
const says =
  (bytes: string | Buffer): Reply =>
  (_request, socket) =>
    socket.write(bytes);

async function withRig(
  replies: readonly Reply[],
  body: (rig: Rig) => Promise<void>,
  options: RigOptions = {},
): Promise<void> {
  const rig = await startRig(replies, { breaker: NEVER_OPEN, ...options });
  try {
    await body(rig);
  } finally {
    await rig.close();
  }
}

/** The request meets the bad engine first, and the client sees nothing of it. */
async function assertSaved(bad: Reply, fault: string, ask_: object): Promise<void> {
  await withRig([bad, good], async (rig) => {
    const got = await ask(rig.url, ask_);
    assert.equal(got.status, 200);
    assert.equal(got.cut, false);
    assert.equal(got.headers["x-gnomon-endpoint"], "b");
    assert.ok(got.body.includes("stream" in ask_ ? "[DONE]" : "good"));
    assert.deepEqual(rig.retried, [fault]);
    const start = ["request-arrived", "attempt-failed", "request-retried"];
    const end = "stream" in ask_ ? ["first-token", "request-finished"] : ["request-finished"];
    assert.deepEqual(rig.kinds(), [...start, ...end]);
    assert.equal(rig.summaries[0]!.attempts, 2);
    assert.equal(rig.summaries[0]!.endpoint, "b");
    assert.equal(rig.summaries[0]!.outcome, "ok");
  });
}

const NO_TOKENS = { id: "c", choices: [], usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 } };
const abortStream = STREAM_HEAD + roleChunk() + tokenChunk("", "abort") + event("[DONE]") + STREAM_END;
const errorEvent = event({ error: { message: "EngineCore", type: "InternalServerError", param: null, code: 500 } });

describe("a failure before the first token is retried on another endpoint", () => {
  const cases: [name: string, bad: Reply, fault: string][] = [
    ["admission 503", says(capture("err_503_queue_full").response), "saturated"],
    ["token backlog 503", says(capture("err_503_queued_tokens").response), "saturated"],
    ["a 503 of something else", says(jsonReply(503, { error: "warming up" })), "status"],
    [
      "a draining engine's 500",
      says(capture("sigterm_shutdown_timeout_20_new_request_while_draining").response),
      "draining",
    ],
    ["a dead engine's 500", says(capture("request_engine_dead").response), "status"],
    ["an error page", says("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nbad"), "status"],
    ["an endless error", (_r, s) => void s.write(`HTTP/1.1 500 E\r\n\r\n${"x".repeat(100_000)}`), "status"],
    ["a reset", (_r, s) => void s.resetAndDestroy(), "connect"],
    ["a close", (_r, s) => void s.end(), "connect"],
    ["bytes that are not HTTP", (_r, s) => void s.end("\u0001\u0002garbage\r\n\r\n"), "garbage"],
    ["HTML", says("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>"), "garbage"],
    ["JSON that is cut", says(jsonReply(200, '{"id":"c","choices":[')), "garbage"],
  ];
  for (const [name, bad, fault] of cases) {
    test(`${name}, for an answer`, () => assertSaved(bad, fault, CHAT));
    test(`${name}, for a stream`, () => assertSaved(bad, fault, STREAM));
  }

  test("an answer that the engine's end cut short", () =>
    assertSaved(says(jsonReply(200, chatAnswer("half a sen", "abort"))), "draining", CHAT));
  test("an empty 200 of a draining engine", () =>
    assertSaved(
      says(capture("sigterm_shutdown_timeout_20_new_request_ids_while_draining").response),
      "draining",
      CHAT,
    ));
  test("a stream that begins with an abort", () => assertSaved(says(abortStream), "draining", STREAM));
  test("a stream that begins with an error", () =>
    assertSaved(says(STREAM_HEAD + errorEvent + event("[DONE]") + STREAM_END), "status", STREAM));
  for (const [name, events] of [
    ["only [DONE]", ""],
    ["a count of no tokens and [DONE]", event(NO_TOKENS)],
    ["a role chunk and [DONE]", roleChunk()],
  ] as const)
    for (const body of [STREAM, { ...STREAM, stream_options: { include_usage: true } }])
      test(`a draining engine's ${name}, ${"stream_options" in body ? "usage asked for" : "usage not asked for"}`, () =>
        assertSaved(says(STREAM_HEAD + events + event("[DONE]") + STREAM_END), "draining", body));
  test("a draining engine's answer without a token or an end", () =>
    assertSaved(says(jsonReply(200, { choices: [], usage: NO_TOKENS.usage })), "draining", CHAT));
  test("a draining engine's choice without a token or an end", () =>
    assertSaved(
      says(jsonReply(200, { choices: [{ index: 0, text: "", finish_reason: null }], usage: NO_TOKENS.usage })),
      "draining",
      CHAT,
    ));
  for (const [name, code, message, fault] of [
    ["of a queue that is full", 503, "The engine is currently busy and cannot accept new requests.", "saturated"],
    ["of load, in other words", 503, "overloaded", "saturated"],
    ["of an engine that shuts down", 500, "cannot schedule new futures after shutdown", "draining"],
    ["of an engine that broke", 500, "EngineCore", "status"],
  ] as const)
    test(`a refusal in the stream's first event, ${name}`, () =>
      assertSaved(says(STREAM_HEAD + event({ error: { message, code } }) + event("[DONE]")), fault, STREAM));
  test("a stream that broke after its head", () =>
    assertSaved((_r, s) => void s.write(STREAM_HEAD, () => s.resetAndDestroy()), "cut", STREAM));
  test("a stream that broke after its role chunk", () =>
    assertSaved((_r, s) => void s.write(STREAM_HEAD + roleChunk(), () => s.resetAndDestroy()), "cut", STREAM));
  test("a stream that ends before any token", () =>
    assertSaved(says(STREAM_HEAD + roleChunk() + STREAM_END), "cut", STREAM));
  test("a stream of something else", () =>
    assertSaved(says(STREAM_HEAD + chunk("data: hello\n\n") + STREAM_END), "garbage", STREAM));
  for (const [what, head] of [
    ["no content", "204 No Content\r\n"],
    ["not modified", "304 Not Modified\r\netag: x\r\n"],
    ["a status that nobody knows", "999 Odd\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"],
    ["two lengths", "200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\ncontent-length: 5\r\n"],
  ] as const) {
    for (const body of [CHAT, STREAM]) {
      test(`${what} in place of an answer, ${body === STREAM ? "streamed" : "whole"}`, () =>
        assertSaved((_r, s) => void s.write(`HTTP/1.1 ${head}\r\n{}`, () => s.end()), "garbage", body));
    }
  }
  test("an answer that broke half-way", () =>
    assertSaved(
      (_r, s) =>
        void s.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{", () => s.end()),
      "cut",
      CHAT,
    ));
});

describe("what is not retried", () => {
  for (const name of ["err_too_long", "err_unknown_model", "err_image_part", "auth_wrong"]) {
    test(`${name} passes as it was`, () =>
      withRig([says(capture(name).response), good], async (rig) => {
        const got = await ask(rig.url, CHAT);
        assert.equal(got.status, capture(name).status);
        assert.equal(got.body, capture(name).body.toString());
        assert.equal(got.headers["x-gnomon-endpoint"], "a");
        assert.equal(rig.summaries[0]!.outcome, "refused");
        assert.deepEqual(rig.retried, []);
      }));
  }

  test("a client's own error in the stream's first event passes whole", () =>
    withRig(
      [says(STREAM_HEAD + event({ error: { message: "too long", code: 400 } }) + event("[DONE]") + STREAM_END), good],
      async (rig) => {
        const got = await ask(rig.url, STREAM);
        assert.equal(got.body, 'data: {"error":{"message":"too long","code":400}}\n\ndata: [DONE]\n\n');
        assert.equal(rig.summaries[0]!.outcome, "refused");
      },
    ));

  for (const [name, path, events] of [
    [
      "a chat that ends at once",
      "/v1/chat/completions",
      [{ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"],
    ],
    [
      "a message that ends at once",
      "/v1/messages",
      [
        { type: "message_start", message: { id: "m" } },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
        { type: "message_stop" },
      ],
    ],
    [
      "a response that comes whole",
      "/v1/responses",
      [{ type: "response.completed", response: { id: "r", output: [{ type: "message" }] } }],
    ],
  ] as const)
    test(`${name} is an answer`, () =>
      withRig([says(STREAM_HEAD + events.map(event).join("") + STREAM_END), good], async (rig) => {
        const got = await ask(rig.url, STREAM, { path });
        assert.equal(got.headers["x-gnomon-endpoint"], "a");
        assert.deepEqual([rig.retried, rig.summaries[0]!.outcome], [[], "ok"]);
      }));

  test("anything after the first token", () =>
    withRig(
      [(_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("x"), () => s.resetAndDestroy()), good],
      async (rig) => {
        const got = await ask(rig.url, STREAM);
        assert.deepEqual(rig.retried, []);
        assert.equal(rig.engines[1]!.requests.length, 0);
        assert.equal(got.cut, false);
        assert.ok(!got.body.includes("[DONE]"));
      },
    ));
});

describe("when every endpoint fails", () => {
  const busy = capture("err_503_queue_full");

  test("the last one's own error passes as it was, with a hint when to try again", () =>
    withRig([says(busy.response), says(busy.response)], async (rig) => {
      const got = await ask(rig.url, CHAT);
      assert.equal(got.status, 503);
      assert.equal(got.body, busy.body.toString());
      assert.equal(got.headers["retry-after"], "1");
      assert.equal(got.headers["x-gnomon-reason"], "saturated");
      assert.deepEqual(rig.retried, ["saturated"]);
      assert.equal(rig.summaries[0]!.outcome, "failed");
      assert.equal(rig.summaries[0]!.status, 503);
    }));

  test("a stream's error event becomes an error answer", () =>
    withRig([says(STREAM_HEAD + errorEvent + event("[DONE]") + STREAM_END)], async (rig) => {
      const got = await ask(rig.url, STREAM);
      assert.equal(got.status, 500);
      assert.equal(errorOf(got).message, "EngineCore");
      assert.equal(got.headers["content-type"], "application/json");
    }));

  test("a connection error is 502", () =>
    withRig([(_r, s) => void s.resetAndDestroy(), (_r, s) => void s.resetAndDestroy()], async (rig) => {
      const got = await ask(rig.url, CHAT);
      assert.equal(got.status, 502);
      assert.equal(errorOf(got).code, 502);
      assert.equal(got.headers["x-gnomon-reason"], "upstream-broke");
      assert.equal(rig.summaries[0]!.attempts, 2);
    }));

  test("an aborted answer never reaches the client", () =>
    withRig([says(jsonReply(200, chatAnswer("half", "abort")))], async (rig) => {
      const got = await ask(rig.url, CHAT);
      assert.equal(got.status, 503);
      assert.ok(!got.body.includes("half"));
    }));

  test("no more attempts than the limit", () =>
    withRig(
      Array.from({ length: 5 }, () => says(busy.response)),
      async (rig) => {
        await ask(rig.url, CHAT);
        assert.equal(
          rig.engines.reduce((sum, engine) => sum + engine.requests.length, 0),
          2,
        );
      },
      { limits: { attemptsMax: 2 } },
    ));

  test("no more retries than the budget", () =>
    withRig(
      [says(busy.response), says(busy.response)],
      async (rig) => {
        for (let i = 0; i < 10; i++) await ask(rig.url, CHAT);
        assert.equal(rig.retried.length, 4);
        assert.deepEqual(rig.gateway.counters.retriesDenied, { budget: 6, attempts: 4, time: 0, "no-endpoint": 0 });
      },
      { limits: { retryBurst: 2, retryRatio: 0.25, attemptsMax: 2 } },
    ));
});

describe("a kept connection that closes as it is used again", () => {
  test("is replaced without troubling the router", () =>
    withRig(
      [(request, socket) => (request.onConnection === 0 ? good(request, socket) : socket.resetAndDestroy())],
      async (rig) => {
        for (let i = 0; i < 5; i++) assert.equal((await ask(rig.url, CHAT)).status, 200);
        assert.deepEqual(rig.retried, []);
        assert.equal(rig.gateway.counters.reconnects, 4);
        assert.ok(!rig.kinds().includes("attempt-failed"));
      },
    ));

  test("and an endpoint that is really gone is a connection fault", () =>
    withRig([good, good], async (rig) => {
      assert.equal((await ask(rig.url, CHAT)).headers["x-gnomon-endpoint"], "a");
      await rig.engines[0]!.kill();
      for (let i = 0; i < 4; i++) {
        const got = await ask(rig.url, CHAT);
        assert.equal(got.status, 200);
        assert.equal(got.headers["x-gnomon-endpoint"], "b");
      }
    }));
});

describe("an engine that dies under load", () => {
  test("costs no answer that had not begun, and no stream looks complete that was cut", async () => {
    const isStream = (body: Buffer) => (JSON.parse(body.toString()) as { stream?: boolean }).stream === true;
    const busy = Promise.withResolvers<void>();
    /** Begins what streams and ends nothing: whatever it has when it dies was under way. */
    const doomed: Reply = (request, socket) => {
      if (request.index === 11) busy.resolve();
      if (isStream(request.body)) socket.write(STREAM_HEAD + roleChunk() + tokenChunk("x"));
    };
    const slow: Reply = (request, socket) => {
      const stream = isStream(request.body);
      if (stream) socket.write(STREAM_HEAD + roleChunk() + tokenChunk("x"));
      const finish = (): void => {
        if (!socket.writable) return;
        socket.write(
          stream ? tokenChunk("y", "stop") + event("[DONE]") + STREAM_END : jsonReply(200, chatAnswer("good")),
        );
      };
      // However slow the machine is: while nobody ends anything, half of all goes to the other one.
      void busy.promise.then(() => setTimeout(finish, 40));
    };
    const rig = await startRig([doomed, slow]);
    const answers = Array.from({ length: 60 }, () => ask(rig.url, CHAT));
    const streams = Array.from({ length: 30 }, () => ask(rig.url, STREAM));
    await busy.promise;
    await rig.engines[0]!.kill();
    const late = Array.from({ length: 20 }, () => ask(rig.url, CHAT));
    for (const got of await Promise.all([...answers, ...late])) assert.equal(got.status, 200);
    for (const got of await Promise.all(streams)) {
      assert.equal(got.cut, false);
      assert.notEqual(got.body.includes("[DONE]"), got.body.includes("incomplete"));
    }
    assert.ok(rig.gateway.counters.retries >= 5);
    await rig.close();
  });
});

describe("an endpoint that drains stays out", () => {
  test("its empty answers and what it ends of before do not close its breaker", async () => {
    let endFirst = (): void => {};
    const draining: Reply = (request, socket) => {
      if (request.index > 0) return void socket.write(STREAM_HEAD + event("[DONE]") + STREAM_END);
      endFirst = () => void socket.write(STREAM_HEAD + tokenChunk("late", "stop") + event("[DONE]") + STREAM_END);
    };
    await withRig(
      [draining, good],
      async (rig) => {
        const first = ask(rig.url, STREAM);
        while (rig.engines[0]!.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        rig.router.accept({ kind: "endpoint-cordoned", at: nowMicros(), endpoint: "b" });
        const second = ask(rig.url, STREAM);
        while (rig.engines[0]!.requests.length === 1) await new Promise((resolve) => setTimeout(resolve, 1));
        rig.router.accept({ kind: "endpoint-uncordoned", at: nowMicros(), endpoint: "b" });
        assert.ok([200, 503].includes((await second).status));
        const breaker = () => rig.router.endpointRows(nowMicros())[0]!.breaker;
        assert.equal(breaker(), "open");
        endFirst();
        assert.match((await first).body, /late/);
        assert.equal(breaker(), "open");
        assert.equal((await ask(rig.url, STREAM)).headers["x-gnomon-endpoint"], "b");
      },
      { breaker: { ...BREAKER_DEFAULTS, pauseMicros: 3_600_000_000, pauseMicrosMax: 3_600_000_000 } },
    );
  });
});

test("where no engine can be reached the error states when to try again", () =>
  withRig([(_r, s) => void s.resetAndDestroy()], async (rig) => {
    const got = await ask(rig.url, CHAT);
    assert.equal(got.status, 502);
    assert.equal(got.headers["retry-after"], "1");
  }));
