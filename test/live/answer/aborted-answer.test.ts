import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { isAborted } from "#live/answer/aborted-answer.ts";
import { findUsage } from "#live/answer/answer-json.ts";
import { type Dialect, Routes } from "#live/http/route.ts";

import { capture, captureNames } from "../gateway/captures.ts";

const aborted = (dialect: Dialect, answer: object, indent?: number): boolean => {
  const body = Buffer.from(JSON.stringify(answer, undefined, indent));
  return isAborted(dialect, body, findUsage(body));
};

const usage = { input_tokens: 3, output_tokens: 2 };
const message = (more: object, content: readonly object[] = [{ type: "text", text: "x" }]) => ({
  id: "m",
  type: "message",
  role: "assistant",
  content,
  model: "tiny",
  ...more,
  usage,
});

describe("an answer that its engine aborted", () => {
  test("is none of those that a real vLLM gave in its working hours", () => {
    const routes = new Routes();
    const seen = new Set<Dialect>();
    for (const name of captureNames()) {
      const { body, path, status, contentType } = capture(name);
      const dialect = routes.of(path)?.dialect;
      if (status !== 200 || contentType !== "application/json" || dialect === undefined) continue;
      const isWhileDraining = name.endsWith("_ids_while_draining");
      assert.equal(isAborted(dialect, body, findUsage(body)), isWhileDraining, name);
      seen.add(dialect);
    }
    assert.deepEqual([...seen].sort(), ["chat", "completions", "messages", "other", "responses"]);
  });

  test("of messages states no stop_reason, or null, whatever names stand in what a tool is called with", () => {
    const call = { type: "tool_use", id: "t", name: "f", input: { stop_reason: "end_turn", type: "x", "}": ['"{'] } };
    for (const content of [[{ type: "text", text: 'a "stop_reason":"end_turn" \\' }], [call], []]) {
      for (const indent of [undefined, 2]) {
        assert.equal(aborted("messages", message({}, content), indent), true);
        assert.equal(aborted("messages", message({ stop_reason: null }, content), indent), true);
        assert.equal(aborted("messages", message({ stop_reason: "tool_use" }, content), indent), false);
        assert.equal(aborted("messages", message({ stop_reason: "end_turn" }, content), indent), false);
      }
    }
    assert.equal(aborted("messages", { input_tokens: 7 }), false, "a count of tokens is no message");
  });

  test("of responses is cancelled, or called complete without a token", () => {
    const response = (status: string, output_tokens: number) => ({ status, usage: { input_tokens: 3, output_tokens } });
    assert.equal(aborted("responses", response("cancelled", 4)), true);
    assert.equal(aborted("responses", response("completed", 0)), true);
    assert.equal(aborted("responses", response("completed", 1)), false);
    assert.equal(aborted("responses", response("incomplete", 4)), false);
    assert.equal(aborted("responses", { status: "queued", usage: null }), false);
  });
});
