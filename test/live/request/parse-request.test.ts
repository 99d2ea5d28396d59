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
    ["7", 1],
  ] as const)
    assert.equal(parsed("/v1/chat/completions", { ...chat, n }).sequences, sequences, `n ${n}`);
  assert.equal(parsed("/v1/completions", { model: "m", prompt: ["a", "b", "c"], n: 2 }).sequences, 6);
  assert.equal(parsed("/v1/completions", { model: "m", prompt: ["a", "b", "c"], n: 1e9 }).sequences, 3);
});
