import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { type Rig, ask, errorOf, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  chunk,
  event,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

const BODIES: Readonly<Record<string, object>> = {
  "/v1/chat/completions": { model: "tiny", messages: [{ role: "user", content: "x" }], stream: true },
  "/v1/completions": { model: "tiny", prompt: "x", stream: true },
  "/v1/messages": { model: "tiny", messages: [{ role: "user", content: "x" }], max_tokens: 5, stream: true },
  "/v1/responses": { model: "tiny", input: "x", stream: true },
};

async function streamed(path: string, reply: Reply): Promise<{ body: string; cut: boolean; status: number; rig: Rig }> {
  const rig = await startRig([reply]);
  try {
    const { body, cut, status } = await ask(rig.url, BODIES[path], { path });
    return { body, cut, status, rig };
  } finally {
    await rig.close();
  }
}

function typed(type: string, more: object = {}): string {
  return chunk(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
}

const completionToken = (text: string, finish: string | null = null): string =>
  event({ id: "cmpl", choices: [{ index: 0, text, finish_reason: finish }] });

/** The first part of a good stream of each dialect, up to a token, and the mark of its end. */
const DIALECTS: Readonly<Record<string, { start: string; end: string }>> = {
  "/v1/chat/completions": { start: roleChunk() + tokenChunk("one"), end: event("[DONE]") },
  "/v1/completions": { start: completionToken("one"), end: event("[DONE]") },
  "/v1/messages": {
    start: typed("message_start", { message: {} }) + typed("content_block_delta", { delta: { text: "one" } }),
    end: typed("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null } }) + typed("message_stop"),
  },
  "/v1/responses": {
    start: typed("response.created") + typed("response.output_text.delta", { delta: "one" }),
    end: typed("response.completed", { response: { usage: { input_tokens: 3, output_tokens: 1 } } }),
  },
};

function textOf(chunks: string): string {
  return [...chunks.matchAll(/^(?:event|data): .*$/gm)].map(([line]) => line).join("\n");
}

describe("a stream that is cut never looks complete", () => {
  for (const [path, { start, end }] of Object.entries(DIALECTS)) {
    const kinds: [name: string, reply: Reply][] = [
      ["reset", (_r, s) => void s.write(STREAM_HEAD + start, () => setTimeout(() => s.resetAndDestroy(), 5))],
      ["close", (_r, s) => void s.write(STREAM_HEAD + start, () => s.end())],
      ["end without the mark", (_r, s) => void s.write(STREAM_HEAD + start + STREAM_END)],
      ["half an event", (_r, s) => void s.end(STREAM_HEAD + start + chunk('data: {"choices":[{"ind'))],
    ];
    for (const [name, reply] of kinds) {
      test(`${path}: ${name}`, async () => {
        const { body, cut, rig } = await streamed(path, reply);
        assert.equal(cut, false, "the connection ends cleanly after the error");
        assert.ok(textOf(body).startsWith(textOf(start)), "what came before the cut is there");
        assert.ok(!textOf(body).includes(textOf(end)));
        assert.match(body, /"error"/);
        assert.match(body, /incomplete/);
        assert.equal(rig.summaries[0]!.outcome, "failed");
        assert.equal(rig.gateway.counters.cuts, 1);
      });
    }

    test(`${path}: a whole one passes byte for byte`, async () => {
      const { body, rig } = await streamed(path, (_r, s) => void s.write(STREAM_HEAD + start + end + STREAM_END));
      assert.ok(!body.includes("incomplete"));
      assert.ok(textOf(body).endsWith(textOf(end)));
      assert.equal(rig.summaries[0]!.outcome, "ok");
    });

    test(`${path}: a connection that breaks after the mark is a whole stream`, async () => {
      const { body, cut, rig } = await streamed(path, (_r, s) => {
        s.write(STREAM_HEAD + start + end, () => setTimeout(() => s.resetAndDestroy(), 5));
      });
      assert.equal(cut, false);
      assert.ok(textOf(body).endsWith(textOf(end)));
      assert.ok(!body.includes("incomplete"));
      assert.equal(rig.summaries[0]!.outcome, "ok");
    });
  }

  test("finish_reason abort after tokens is withheld, with the [DONE] behind it", async () => {
    const { body, rig } = await streamed("/v1/chat/completions", (_r, s) => {
      s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
      setTimeout(() => s.write(tokenChunk("two", "abort") + event("[DONE]") + STREAM_END), 5);
    });
    assert.ok(body.includes("one"));
    assert.ok(!body.includes("[DONE]"));
    assert.ok(!body.includes('"abort"'));
    assert.match(body, /shutting down/);
    assert.equal(rig.summaries[0]!.outcome, "failed");
  });

  test("an answer of messages that vLLM aborted, which it calls stop_reason null, ends in an error", async () => {
    const { start } = DIALECTS["/v1/messages"]!;
    const aborted = typed("message_delta", { delta: { stop_reason: null, stop_sequence: null }, usage: {} });
    const stop = typed("message_stop");
    for (const end of [aborted + stop, stop]) {
      const { body, rig } = await streamed("/v1/messages", (_r, s) => {
        s.write(STREAM_HEAD + start);
        setTimeout(() => s.write(end + STREAM_END), 5);
      });
      assert.ok(textOf(body).startsWith(textOf(start)));
      assert.ok(!body.includes("message_stop") && !body.includes("message_delta"), body);
      const last = body.split("\n\n").at(-2)!;
      assert.match(last, /^event: error\ndata: \{"type":"error","error":\{"type":"api_error"/);
      assert.equal(rig.summaries[0]!.outcome, "failed");
      assert.deepEqual(rig.gateway.counters.faults, {});
      assert.equal(rig.gateway.counters.cuts, 1);
    }
  });

  test("so does a response that was cancelled by its engine", async () => {
    const { start } = DIALECTS["/v1/responses"]!;
    const { body, rig } = await streamed("/v1/responses", (_r, s) => {
      s.write(STREAM_HEAD + start);
      const response = { status: "cancelled", usage: { input_tokens: 3, output_tokens: 1 } };
      setTimeout(() => s.write(typed("response.completed", { response }) + STREAM_END), 5);
    });
    assert.ok(!body.includes("response.completed"));
    assert.match(body, /event: error\n.*shutting down/);
    assert.equal(rig.summaries[0]!.outcome, "failed");
  });

  describe("a response that vLLM calls completed, which it calls an aborted one too", () => {
    const { start } = DIALECTS["/v1/responses"]!;
    const usage = { input_tokens: 3, output_tokens: 1 };
    const done = typed("response.output_text.done", { text: "one" }) + typed("response.output_item.done", { item: {} });
    const completed = typed("response.completed", { response: { status: "completed", usage } });
    const whole = { id: "r", object: "response", status: "completed", output: [], usage };
    const error = jsonReply(500, { error: { message: "cannot schedule new futures after shutdown" } });
    const served: readonly (readonly [name: string, tokenize: Reply])[] = [
      ["serves on", (_r, s) => void s.write(jsonReply(200, { count: 1 }))],
      ["knows no such question", (_r, s) => void s.write(jsonReply(404, {}))],
      [
        "closed a kept connection as it was asked, and serves on",
        (r, s) => {
          const { index } = r;
          if (index === 1) s.resetAndDestroy();
          else s.write(jsonReply(200, { count: 1 }));
        },
      ],
    ];
    const ending: readonly (readonly [name: string, tokenize: Reply])[] = [
      ["has given up its tokenizer", (_r, s) => void s.write(error)],
      ["does not answer any more", (_r, s) => void s.resetAndDestroy()],
    ];
    const asked = (answer: string, tokenize: Reply): Reply => {
      return (r, s) => (r.path === "/tokenize" ? tokenize(r, s) : void s.write(answer));
    };

    for (const [name, tokenize] of served) {
      test(`is whole where its engine ${name}`, async () => {
        const stream = await streamed(
          "/v1/responses",
          asked(STREAM_HEAD + start + done + completed + STREAM_END, tokenize),
        );
        assert.equal(textOf(stream.body), textOf(start + done + completed));
        assert.equal(stream.rig.summaries[0]!.outcome, "ok");
        assert.equal(stream.rig.summaries[0]!.outputTokens, 1);
        assert.deepEqual(stream.rig.gateway.counters.servingChecks, { serves: 1 });
        const plain = await streamed("/v1/responses", asked(jsonReply(200, whole), tokenize));
        assert.deepEqual([plain.status, JSON.parse(plain.body)], [200, whole]);
      });
    }

    for (const [name, tokenize] of ending) {
      test(`is an error, without the end of its text, where its engine ${name}`, async () => {
        const stream = await streamed(
          "/v1/responses",
          asked(STREAM_HEAD + start + done + completed + STREAM_END, tokenize),
        );
        assert.ok(textOf(stream.body).startsWith(textOf(start)), stream.body);
        assert.ok(!stream.body.includes(".done") && !stream.body.includes("completed"), stream.body);
        assert.match(stream.body, /event: error\n.*shutting down/);
        assert.equal(stream.rig.summaries[0]!.outcome, "failed");
        assert.deepEqual(stream.rig.gateway.counters.servingChecks, { ends: 1 });
        const plain = await streamed("/v1/responses", asked(jsonReply(200, whole), tokenize));
        assert.equal(plain.status, 503, plain.body);
      });
    }

    test("passes unasked where it states another end, as one whose tokens ran out does", async () => {
      const reply: Reply = (_r, s) => {
        const response = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, usage };
        s.write(STREAM_HEAD + start + done + typed("response.completed", { response }) + STREAM_END);
      };
      const { rig } = await streamed("/v1/responses", reply);
      assert.equal(rig.summaries[0]!.outcome, "ok");
      assert.deepEqual(rig.gateway.counters.servingChecks, {});
    });

    test("that its client leaves meanwhile, or that breaks, ends once", async () => {
      const silent: Reply = (r, s) =>
        r.path === "/tokenize" ? undefined : void s.end(STREAM_HEAD + start + completed);
      const { rig, body } = await streamed("/v1/responses", silent);
      assert.match(body, /incomplete/);
      assert.equal(rig.summaries.length, 1);
    });
  });

  test("the engine's own error event goes out, without the [DONE] behind it", async () => {
    const error = '{"error": {"message": "EngineCore", "type": "InternalServerError", "param": null, "code": 500}}';
    const { body } = await streamed("/v1/chat/completions", (_r, s) => {
      s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));
      setTimeout(() => s.write(event(error) + event("[DONE]") + STREAM_END), 5);
    });
    assert.ok(body.endsWith(`data: ${error}\n\n`));
  });

  test("so it does where the stream could have gone on elsewhere, and there is no other endpoint", async () => {
    const error = '{"error": {"message": "EngineCore", "type": "InternalServerError", "param": null, "code": 500}}';
    const ids = { id: "c", object: "chat.completion.chunk", created: 1, model: "tiny", prompt_token_ids: [1, 2] };
    const role = event({ ...ids, choices: [{ index: 0, delta: { role: "assistant", content: "" } }] });
    const token = event({ ...ids, choices: [{ index: 0, delta: { content: "one" }, token_ids: [3] }] });
    const ends: readonly (readonly [reply: Reply, last: RegExp])[] = [
      [(_r, s) => void s.write(STREAM_HEAD + role + token + event(error) + event("[DONE]")), /EngineCore/],
      [(_r, s) => void s.end(STREAM_HEAD + role + token), /connection to the engine broke/],
    ];
    for (const [reply, last] of ends) {
      const rig = await startRig([reply], { stages: { clients: { continueStreams: true } } });
      const body = { ...BODIES["/v1/chat/completions"], temperature: 0, max_tokens: 9 };
      const { body: got } = await ask(rig.url, body);
      await rig.close();
      assert.equal(rig.gateway.counters.continuationsDenied["no-endpoint"], 1, JSON.stringify(rig.gateway.counters));
      const events = got.split("\n\n").filter((one) => one !== "");
      assert.match(events[1]!, /"one"/);
      assert.match(events.at(-1)!, last);
      assert.equal(events.length, 3, got);
    }
  });

  test("a media type may be written in letters of either case", async () => {
    const { body } = await streamed("/v1/chat/completions", (_r, s) => {
      s.write(STREAM_HEAD.replace(/text\/event-stream/, "Text/Event-Stream") + roleChunk() + tokenChunk("one"));
      s.write(event("[DONE]") + STREAM_END);
    });
    assert.match(body, /"one".*\[DONE\]/s);
    const rig = await startRig([
      (_r, s) => void s.write(jsonReply(200, chatAnswer("good")).replace("application/json", "Application/JSON")),
    ]);
    const got = await ask(rig.url, { ...BODIES["/v1/chat/completions"], stream: false });
    await rig.close();
    assert.equal(got.status, 200);
    assert.match(got.body, /good/);
  });

  test("an engine that dies before it answers in one piece was not out of reach for its client", async () => {
    const rig = await startRig([(_r, s) => void s.resetAndDestroy()]);
    const got = await ask(rig.url, { ...BODIES["/v1/chat/completions"], stream: false });
    await rig.close();
    assert.equal(got.status, 502);
    assert.match(errorOf(got).message, /could not be reached, or it closed the connection/);
    assert.deepEqual(rig.gateway.counters.refused, { "upstream-broke": 1 });
  });

  test("an answer that cannot be held breaks the connection when it is cut", async () => {
    const rig = await startRig(
      [
        (_r, s) =>
          void s.write(
            `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{${"x".repeat(2000)}`,
            () => setTimeout(() => s.resetAndDestroy(), 5),
          ),
      ],
      { limits: { answerBytesInspected: 1000 } },
    );
    const got = await ask(rig.url, { ...BODIES["/v1/chat/completions"], stream: false });
    assert.equal(got.cut, true);
    assert.equal(rig.gateway.counters.uninspected, 1);
    await rig.close();
  });
});
