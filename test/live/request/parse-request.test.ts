import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { type ParsedRequest, parseRequest } from "#live/request/parse-request.ts";
import { Routes } from "#live/http/route.ts";

function parsed(path: string, body: unknown): ParsedRequest {
  const route = new Routes().of(path);
  assert.ok(route !== undefined);
  const request = parseRequest(route, "application/json", Buffer.from(JSON.stringify(body)), DEFAULT_LIMITS);
  assert.ok(!(request instanceof Promise) && "prompt" in request);
  return request;
}

test("sequences are prompts times answers; a number of answers that vLLM refuses charges for one each", () => {
  const chat = { model: "m", messages: [{ role: "user", content: "hi" }] };
  for (const [n, sequences] of [
    [undefined, 1],
    [4, 4],
    [16_384, 16_384],
    [16_385, 1],
    [1e9, 1],
    [-3, 1],
    [2.5, 1],
    ["7", 7],
    [" +1_0.0 ", 10],
    ["7e2", 1],
    ["0x7", 1],
    [true, 1],
  ] as const)
    assert.equal(parsed("/v1/chat/completions", { ...chat, n }).sequences, sequences, `n ${n}`);
  assert.equal(parsed("/v1/completions", { model: "m", prompt: ["a", "b", "c"], n: 2 }).sequences, 6);
  assert.equal(parsed("/v1/completions", { model: "m", prompt: ["a", "b", "c"], n: 1e9 }).sequences, 3);
});

test("the ceiling of an answer is that of the field which vLLM reads on the route, a text as well", () => {
  const all = { max_tokens: 5, max_completion_tokens: 6, max_output_tokens: 7 };
  const chat = { model: "m", messages: [{ role: "user", content: "hi" }] };
  const prompt = { model: "m", prompt: "hi" };
  for (const [path, body, ceiling] of [
    ["/v1/chat/completions", { ...chat, ...all }, 6],
    ["/v1/chat/completions", { ...chat, max_tokens: "4_000", max_output_tokens: 1 }, 4_000],
    ["/v1/chat/completions", { ...chat, max_output_tokens: 1 }, undefined],
    ["/v1/completions", { ...prompt, ...all }, 5],
    ["/v1/completions", { ...prompt, max_tokens: "100000", max_completion_tokens: 1 }, 100_000],
    ["/v1/completions", { ...prompt, max_completion_tokens: 1 }, undefined],
    ["/v1/messages", { ...chat, ...all }, 5],
    ["/v1/messages", { ...chat, max_completion_tokens: 1, max_output_tokens: 1 }, undefined],
    ["/v1/responses", { model: "m", input: "hi", ...all }, 7],
    ["/v1/responses", { model: "m", input: "hi", max_tokens: 1, max_completion_tokens: 1 }, undefined],
  ] as const)
    assert.equal(parsed(path, body).outputTokensMax, ceiling, `${path} ${JSON.stringify(body)}`);
});
