import assert from "node:assert/strict";
import { test } from "node:test";
import { isRenderable } from "#live/tokenizer/template/renderable.ts";
import type { ChatMessage, PromptSource } from "#live/tokenizer/text/tokenizer.ts";

type Chat = Extract<PromptSource, { kind: "chat" }>;

const USER: ChatMessage = { role: "user", content: "x" };

function chat(rest: Partial<Chat>): Chat {
  return { kind: "chat", messages: [USER], tools: undefined, template: {}, ...rest };
}

function called(args: string): ChatMessage {
  return {
    role: "assistant",
    content: null,
    tool_calls: [{ type: "function", function: { name: "f", arguments: args } }],
  };
}

test("what agents send is rendered", () => {
  const parameters = {
    type: "object",
    properties: { a: { type: "string" }, b: { enum: ["x", "y"] } },
    required: ["a"],
  };
  const tools = Array.from({ length: 500 }, () => ({ type: "function", function: { name: "f", parameters } }));
  const messages = Array.from({ length: 600 }, (_, at) =>
    at % 2 === 0 ? USER : called('{"file":"' + "x".repeat(500) + '"}'),
  );
  assert.ok(isRenderable(chat({ messages, tools })));
  assert.ok(isRenderable(chat({ messages: [called(`{"text":"${"[".repeat(500_000)}"}`)] })));
});

test("what would hold others up is not", () => {
  const many = Array.from({ length: 30_000 }, (_, at) => at);
  const wide = Object.fromEntries(many.map((at) => [`k${at}`, "v"]));
  for (const hostile of [
    { messages: many.map(() => USER) },
    { messages: [{ ...USER, content: many.map(() => ({ type: "text", text: "x" })) }] },
    { tools: [wide] },
    { tools: [{ deep: [[many]] }] },
    { template: { documents: many } },
    { template: { chat_template_kwargs: wide } },
    { messages: [called("[".repeat(300))] },
    { messages: [called(JSON.stringify(many))] },
    { messages: [called(JSON.stringify("x".repeat(2_000_000)))] },
    { messages: many.slice(0, 100).map(() => called(JSON.stringify("x".repeat(200_000)))) },
  ]) {
    assert.ok(!isRenderable(chat(hostile)), Object.keys(hostile).join());
  }
});
