import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { randomFor } from "#core/base/random.ts";
import { type Usage, findUsage } from "#live/answer/answer-json.ts";

import { capture, captureNames } from "../gateway/captures.ts";

type Json = { readonly [name: string]: Json } | readonly Json[] | string | number | boolean | null;

/** The same by reading the whole answer. */
function byParsing(value: Json): Usage | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const object = value as { readonly [name: string]: Json };
  const inner = (object["response"] ?? object["message"]) as typeof object | undefined;
  const usage = (object["usage"] ?? inner?.["usage"]) as typeof object;
  if (typeof usage !== "object" || usage === null) return undefined;
  const details = (usage["prompt_tokens_details"] ?? usage["input_tokens_details"]) as typeof object | null | undefined;
  const number = (one: Json | undefined): number | undefined => (typeof one === "number" ? one : undefined);
  const beside = [usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]].map(
    (one) => number(one) ?? 0,
  );
  const input = number(usage["input_tokens"]);
  return {
    promptTokens: number(usage["prompt_tokens"]) ?? (input === undefined ? undefined : input + beside[0]! + beside[1]!),
    cachedTokens: number(details?.["cached_tokens"] ?? usage["cache_read_input_tokens"]),
    outputTokens: number(usage["completion_tokens"] ?? usage["output_tokens"]),
  };
}

describe("usage", () => {
  test("every captured answer and event gives what reading all of it gives", () => {
    let found = 0;
    for (const name of captureNames()) {
      const { body, contentType } = capture(name);
      const texts =
        contentType === "application/json"
          ? [body.toString()].filter((text) => text !== "")
          : [...body.toString().matchAll(/^data: (\{.*)$/gm)].map(([, data]) => data!);
      for (const text of texts) {
        const expected = byParsing(JSON.parse(text) as Json);
        assert.deepEqual(findUsage(Buffer.from(text)), expected, `${name}: ${text}`);
        if (expected?.promptTokens !== undefined) found++;
      }
    }
    assert.ok(found > 80, `${found} answers have usage`);
  });

  test("is not fooled by what the model wrote", () => {
    const written = '{"usage":{"prompt_tokens":1,"completion_tokens":2}}';
    const answer = {
      choices: [{ text: written, finish_reason: "usage" }],
      usage: { prompt_tokens: 7, completion_tokens: 8 },
    };
    const expected = { promptTokens: 7, cachedTokens: undefined, outputTokens: 8 };
    for (const indent of [undefined, 2]) {
      assert.deepEqual(findUsage(Buffer.from(JSON.stringify(answer, undefined, indent))), expected);
      const reversed = { usage: answer.usage, choices: answer.choices };
      assert.deepEqual(findUsage(Buffer.from(JSON.stringify(reversed, undefined, indent))), expected);
    }
    assert.equal(findUsage(Buffer.from(JSON.stringify({ text: written, usage: null }))), undefined);
    assert.equal(findUsage(Buffer.from("")), undefined);
    assert.equal(findUsage(Buffer.from('"usage"')), undefined);
  });

  test("is of the whole prompt, whatever API counts it: Anthropic's input tokens leave out what the cache had or gets", () => {
    const random = randomFor(1, 0);
    const draw = (max: number): number => random.below(max + 1);
    for (let i = 0; i < 200; i++) {
      const [promptTokens, outputTokens] = [1 + draw(5_000), draw(500)];
      const cachedTokens = draw(promptTokens);
      const created = draw(promptTokens - cachedTokens);
      const openai = {
        prompt_tokens: promptTokens,
        total_tokens: promptTokens + outputTokens,
        completion_tokens: outputTokens,
        prompt_tokens_details: { cached_tokens: cachedTokens, created_cache_tokens: created },
      };
      const messages = {
        input_tokens: promptTokens - cachedTokens - created,
        output_tokens: outputTokens,
        cache_creation_input_tokens: created,
        cache_read_input_tokens: cachedTokens,
      };
      const responses = {
        input_tokens: promptTokens,
        input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: created },
        output_tokens: outputTokens,
      };
      for (const usage of [openai, messages, responses])
        assert.deepEqual(findUsage(Buffer.from(JSON.stringify({ usage }))), {
          promptTokens,
          cachedTokens,
          outputTokens,
        });
    }
  });

  test("a count that is no number of tokens is none", () => {
    const counted = (digits: string) =>
      findUsage(Buffer.from(`{"usage":{"prompt_tokens":5,"completion_tokens":${digits}}}`))?.outputTokens;
    assert.equal(counted("100000000"), 1e8);
    for (const digits of ["100000001", "9007199254740992", "9".repeat(400), "-3", "null"])
      assert.equal(counted(digits), undefined);
  });
});
