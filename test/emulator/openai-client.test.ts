import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import OpenAI from "openai";
import type { Emulator } from "#emulator/server.ts";
import { startAs } from "./captures.ts";

const TOOL = {
  type: "function",
  function: {
    name: "weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 1 }, unit: { enum: ["C", "F"] } },
      required: ["city"],
    },
  },
} as const;
const HI = [{ role: "user", content: "hi there" }] as const;

describe("the openai client", () => {
  let emulator: Emulator;
  let client: OpenAI;
  before(async () => {
    emulator = await startAs("18109", { apiKey: "sk-test", enableAutoToolChoice: true, naturalTokensMean: 40 });
    client = new OpenAI({ baseURL: `${emulator.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  });
  after(() => emulator.close());

  test("lists models, completes, and is refused with a wrong key", async () => {
    const models = await client.models.list();
    assert.deepEqual(
      models.data.map((model) => model.id),
      ["tiny"],
    );
    const completion = await client.completions.create({ model: "tiny", prompt: "once", max_tokens: 5, logprobs: 2 });
    assert.equal(completion.choices[0]?.logprobs?.tokens?.length, 5);
    const stranger = new OpenAI({ baseURL: `${emulator.url}/v1`, apiKey: "nope", maxRetries: 0 });
    await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
    await assert.rejects(client.completions.create({ model: "nope", prompt: "x" }), OpenAI.NotFoundError);
  });

  test("streams the same text as the whole answer, to a natural end", async () => {
    const whole = await client.chat.completions.create({ model: "tiny", messages: [...HI] });
    const stream = await client.chat.completions.create({ model: "tiny", messages: [...HI], stream: true });
    let text = "";
    let finish: string | null = null;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert.equal(text, whole.choices[0]?.message.content);
    assert.equal(finish, "stop");
    assert.ok((whole.usage?.completion_tokens ?? 0) > text.length / 4);
  });

  test("gets n choices with log probabilities", async () => {
    const request = { model: "tiny", messages: [...HI], n: 3, logprobs: true, top_logprobs: 4, max_tokens: 6 };
    const { choices, usage } = await client.chat.completions.create(request);
    assert.equal(new Set(choices.map((choice) => choice.message.content)).size, 3);
    for (const { logprobs, message } of choices) {
      assert.equal(logprobs?.content?.map((one) => one.token).join(""), message.content);
      for (const { top_logprobs: top, token } of logprobs?.content ?? []) {
        assert.equal(top.length, 4);
        assert.equal(top[0]?.token, token);
        assert.deepEqual(
          top.map((one) => one.logprob),
          top.map((one) => one.logprob).sort((a, b) => b - a),
        );
      }
    }
    assert.equal(usage?.completion_tokens, 18);
  });

  test("forces a tool call whose arguments fit the schema, whole and streamed alike", async () => {
    for (const [choice, finish] of [
      [{ type: "function", function: { name: "weather" } }, "stop"],
      ["required", "tool_calls"],
    ] as const) {
      const request = { model: "tiny", messages: [...HI], tools: [TOOL], tool_choice: choice };
      const whole = await client.chat.completions.create(request);
      const [call] = whole.choices[0]?.message.tool_calls ?? [];
      assert.ok(call?.type === "function");
      assert.equal(call.function.name, "weather");
      const given = JSON.parse(call.function.arguments) as { city: unknown; days: number; unit: string };
      assert.equal(typeof given.city, "string");
      assert.ok(Number.isInteger(given.days) && given.days >= 1);
      assert.ok(["C", "F"].includes(given.unit));
      assert.equal(whole.choices[0]?.finish_reason, finish);
      const runner = client.chat.completions.stream({ ...request, stream: true });
      const [streamed] = (await runner.finalChatCompletion()).choices[0]?.message.tool_calls ?? [];
      assert.ok(streamed?.type === "function");
      assert.equal(streamed.function.arguments, call.function.arguments);
    }
    const auto = await client.chat.completions.create({ model: "tiny", messages: [...HI], tools: [TOOL] });
    assert.equal(auto.choices[0]?.message.tool_calls, undefined);
    await assert.rejects(
      client.chat.completions.create({ model: "tiny", messages: [...HI], tool_choice: "required" }),
      OpenAI.BadRequestError,
    );
  });

  test("gets JSON that fits a schema", async () => {
    const schema = { type: "object", properties: { list: { type: "array", minItems: 2, items: { type: "boolean" } } } };
    const { choices } = await client.chat.completions.create({
      model: "tiny",
      messages: [...HI],
      response_format: { type: "json_schema", json_schema: { name: "s", schema } },
    });
    const value = JSON.parse(choices[0]?.message.content ?? "") as { list: unknown[] };
    assert.equal(value.list.length, 2);
    assert.ok(value.list.every((one) => typeof one === "boolean"));
  });

  test("takes prompts as text, list, token ids and lists of them, echoed", async () => {
    for (const prompt of ["abcd", ["abcd", "efgh"], [97, 98], [[97], [98, 99]]]) {
      const { choices } = await client.completions.create({ model: "tiny", prompt, echo: true, max_tokens: 2 });
      const list = Array.isArray(prompt) && typeof prompt[0] !== "number" ? prompt : [prompt];
      assert.equal(choices.length, list.length);
      for (const [index, given] of list.entries()) {
        const text = Array.isArray(given) ? String.fromCharCode(...(given as number[])) : String(given);
        assert.ok(choices[index]?.text.startsWith(text), JSON.stringify(prompt));
      }
    }
  });

  test("takes messages made of parts as their texts", async () => {
    const parts = [
      { type: "text", text: "hi" },
      { type: "text", text: "there" },
    ] as const;
    const split = await client.chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content: [...parts] }],
      max_completion_tokens: 4,
    });
    const joined = await client.chat.completions.create({
      model: "tiny",
      messages: [{ role: "user", content: "hi\nthere" }],
      max_completion_tokens: 4,
    });
    assert.equal(split.choices[0]?.message.content, joined.choices[0]?.message.content);
  });
});
