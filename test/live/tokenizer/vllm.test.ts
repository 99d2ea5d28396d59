import assert from "node:assert/strict";
import { test } from "node:test";
import { createTokenizer } from "./create-tokenizer.ts";
import type { PromptSource } from "#live/tokenizer/text/tokenizer.ts";
import type { Ask } from "#live/tokenizer/vllm.ts";

const SCOPE = { model: "m", salt: "" };
const TEXT: PromptSource = { kind: "text", text: "a text of some length ".repeat(10) };

function chat(template: Record<string, unknown>): PromptSource {
  return { kind: "chat", messages: [{ role: "user", content: "hi" }], tools: [{ type: "function" }], template };
}

function tokenizerOf(ask: Ask, timeoutMillis = 60_000) {
  return createTokenizer({ kind: "vllm", ask, timeoutMillis, blockTokens: 2, blockHash: "blake3", secret: "s" });
}

test("asks for the prompt as the engine's /tokenize takes it and answers its tokens", async () => {
  const bodies: unknown[] = [];
  const tokenizer = await tokenizerOf((body) => {
    bodies.push(body);
    return Promise.resolve([5, 6, 7, 8, 9]);
  });
  const found = await tokenizer.encode(TEXT, SCOPE);
  assert.deepEqual(found, await tokenizer.encode({ kind: "tokens", tokens: [5, 6, 7, 8, 9] }, SCOPE));
  assert.deepEqual([found.promptTokens, found.blocks.length, found.exact, found.fellBack], [5, 2, true, false]);
  const kwargs = { enable_thinking: false };
  assert.ok(
    (await tokenizer.encode(chat({ chat_template_kwargs: kwargs, add_generation_prompt: false }), SCOPE)).exact,
  );
  assert.ok(!(await tokenizer.encode(chat({ documents: [] }), SCOPE)).exact);
  const own = { chat_template: "{{ 1 }}", add_special_tokens: true };
  await tokenizer.encode(chat(own), SCOPE);
  await tokenizer.encode({ kind: "text", text: "hi", specialTokens: false }, SCOPE);
  const asked = { model: "m", messages: [{ role: "user", content: "hi" }], tools: [{ type: "function" }] };
  assert.deepEqual(bodies, [
    { model: "m", prompt: TEXT.kind === "text" ? TEXT.text : "" },
    { ...asked, add_generation_prompt: false, chat_template_kwargs: kwargs },
    asked,
    { ...asked, ...own },
    { model: "m", prompt: "hi", add_special_tokens: false },
  ]);
});

test("a failure, a silent engine and a closed tokenizer leave the estimate, which learns", async () => {
  const answers: (() => Promise<number[]>)[] = [
    () => Promise.reject(new Error("refused")),
    () => new Promise(() => {}),
    () => new Promise(() => {}),
  ];
  let aborted = 0;
  const tokenizer = await tokenizerOf((_, signal) => {
    signal.addEventListener("abort", () => aborted++);
    return answers.shift()!();
  }, 20);
  const estimate = await createTokenizer({ kind: "estimate", blockTokens: 2, blockHash: "blake3", secret: "s" });
  const expected = { ...(await estimate.encode(TEXT, SCOPE)), fellBack: true };
  const refused = await tokenizer.encode(TEXT, SCOPE);
  assert.deepEqual(refused, expected);
  assert.deepEqual(await tokenizer.encode(TEXT, SCOPE), expected);
  assert.equal(aborted, 1);
  const open = tokenizer.encode(TEXT, SCOPE);
  tokenizer.close();
  assert.deepEqual(await open, expected);
  assert.equal(aborted, 2);
  assert.equal(tokenizer.describe().counters["failed"], 3);
  tokenizer.learn("m", refused, Math.round(refused.promptTokens / 2));
  assert.ok((await tokenizer.encode(TEXT, SCOPE)).promptTokens < refused.promptTokens);
});

test("many questions at once, and an engine that keeps failing, are not waited for", async () => {
  let asked = 0;
  const answer: { give?: (tokens: number[]) => void } = {};
  const given = new Promise<number[]>((resolve) => (answer.give = resolve));
  const busy = await tokenizerOf(() => {
    asked++;
    return given;
  });
  const open = Array.from({ length: 100 }, () => busy.encode(TEXT, SCOPE));
  assert.ok(asked < 100);
  assert.equal(open.filter((one) => one instanceof Promise).length, asked);
  answer.give!([1, 2]);
  const all = await Promise.all(open.map((one) => Promise.resolve(one)));
  assert.equal(all.filter(({ exact }) => exact).length, asked);
  assert.equal(all.filter(({ fellBack }) => fellBack).length, 100 - asked);

  let failures = 0;
  const failing = await tokenizerOf(() => {
    failures++;
    return Promise.reject(new Error("refused"));
  });
  for (let i = 0; i < 20; i++) assert.ok((await failing.encode(TEXT, SCOPE)).fellBack);
  assert.equal(failures, 5);
  assert.equal(failing.describe().counters["paused"], 15);
});

test("kind vllm is refused where no engine can be asked", async () => {
  const options = { kind: "vllm", blockTokens: 16, blockHash: "blake3", secret: "s" } as const;
  await assert.rejects(createTokenizer(options), /kind vllm needs ask/);
});
