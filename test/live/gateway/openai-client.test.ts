import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import OpenAI from "openai";

import type { Emulator } from "#emulator/server.ts";

import { startAs } from "../../emulator/captures.ts";
import { NEVER_OPEN, type Rig, startRig } from "./rig.ts";

const HI = [{ role: "user", content: "hi there" }] as const;

describe("the openai client through the gateway", () => {
  let emulators: Emulator[];
  let rig: Rig;
  let client: OpenAI;
  before(async () => {
    const options = { enableAutoToolChoice: true, naturalTokensMean: 40, faults: true };
    emulators = [await startAs("18101", options), await startAs("18101", options)];
    rig = await startRig([], { urls: emulators.map(({ url }) => url), breaker: NEVER_OPEN });
    client = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  });
  after(async () => {
    await rig.close();
    for (const emulator of emulators) await emulator.close();
  });

  test("lists models", async () => {
    const models = await client.models.list();
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ["tiny"],
    );
    assert.equal((await client.models.retrieve("tiny")).id, "tiny");
    await assert.rejects(client.models.retrieve("nope"), OpenAI.NotFoundError);
  });

  test("chats, streaming and not", async () => {
    const whole = await client.chat.completions.create({ model: "tiny", messages: [...HI] });
    const stream = await client.chat.completions.create({
      model: "tiny",
      messages: [...HI],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole.choices[0]?.message.content);
    assert.equal(usage?.completion_tokens, whole.usage?.completion_tokens);
    assert.equal(rig.summaries.at(-1)!.outputTokens, usage?.completion_tokens);
    assert.equal(rig.summaries.at(-1)!.promptTokens, usage?.prompt_tokens);
    assert.ok(rig.summaries.at(-1)!.ttftMicros! > 0);
  });

  test("completes text, arrays and token ids, with log probabilities and n", async () => {
    const prompts: [prompt: string | string[] | number[] | number[][], sequences: number][] = [
      ["once upon", 2],
      [["once upon", "a time"], 4],
      [[1, 2, 3], 2],
      [
        [
          [1, 2, 3],
          [4, 5],
        ],
        4,
      ],
    ];
    for (const [prompt, sequences] of prompts) {
      const { choices } = await client.completions.create({ model: "tiny", prompt, n: 2, max_tokens: 4, logprobs: 2 });
      assert.equal(choices.length, sequences);
      const arrival = rig.inputs.findLast((input) => input.kind === "request-arrived");
      assert.ok(arrival?.kind === "request-arrived" && arrival.request.sequences === sequences);
    }
    const chat = { model: "tiny", messages: [...HI], n: 3, logprobs: true, top_logprobs: 2, max_tokens: 3 };
    assert.equal((await client.chat.completions.create(chat)).choices.length, 3);
  });

  test("calls tools", async () => {
    const answer = await client.chat.completions.create({
      model: "tiny",
      messages: [...HI],
      tool_choice: "required",
      tools: [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }],
    });
    const call = answer.choices[0]?.message.tool_calls?.[0];
    assert.ok(call?.type === "function" && call.function.name === "weather");
  });

  test("gets its errors as it knows them", async () => {
    await assert.rejects(client.chat.completions.create({ model: "nope", messages: [...HI] }), OpenAI.NotFoundError);
    await assert.rejects(client.chat.completions.create({ model: "tiny", messages: [] }), OpenAI.BadRequestError);
    await assert.rejects(
      client.chat.completions.create({ model: "tiny", messages: [...HI], temperature: -1 }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature",
    );
  });

  test("fails openly on a stream that is cut", async () => {
    const headers = { "x-emulator-fault": "cut=3" };
    const stream = await client.chat.completions.create(
      { model: "tiny", messages: [...HI], stream: true },
      { headers },
    );
    let chunks = 0;
    await assert.rejects(async () => {
      for await (const chunk of stream) chunks += chunk.choices.length;
    }, OpenAI.APIError);
    assert.ok(chunks > 0);
  });

  test("leaves a stream, and the engine stops", async () => {
    const more = { ignore_eos: true };
    const endless = { model: "tiny", messages: [...HI], stream: true as const, max_completion_tokens: 4_000, ...more };
    const stream = await client.chat.completions.create(endless);
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    const start = Date.now();
    while (rig.summaries.at(-1)!.outcome !== "aborted" && Date.now() - start < 60_000) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(rig.summaries.at(-1)!.outcome, "aborted");
  });
});
