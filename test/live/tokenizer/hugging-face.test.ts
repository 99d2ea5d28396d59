import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import * as fc from "fast-check";
import { parsePrompt } from "#live/request/parse-request.ts";
import { createTokenizer, type TokenizerOptions } from "./create-tokenizer.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";
import type { ChatMessage, PromptSource, TokenizedPrompt, Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import { CHAT_TOKENS, folderOf, LLAMA_FILE, SMALL_VOCABULARY, smallLlama, VLLM_HTTP } from "./llama-files.ts";
import { RandomStream } from "./random-stream.ts";
import { randomText } from "./random-text.ts";

const SCOPE = { model: "m", salt: "" };
const HEADERS = join(CHAT_TOKENS, "headers.jinja");
const SPECIAL_TOKENS = { bos_token: "<|begin_of_text|>", eos_token: "<|end_of_text|>" };
const SEED = 77;
/** The first id that no token has. */
const ADDED = SMALL_VOCABULARY + 256;
type Body = Readonly<Record<string, unknown>>;

/** One token a block, so that a chain tells every token. */
function options(file: string, more: Partial<TokenizerOptions> = {}): TokenizerOptions {
  return { kind: "huggingface", tokenizerFile: file, blockTokens: 1, blockHash: "blake3", secret: "s", ...more };
}

let small: ReturnType<typeof smallLlama>;
let folder: string;
let headers: DescribedTokenizer;
before(async () => {
  small = smallLlama();
  folder = folderOf({ "tokenizer.json": small, "tokenizer_config.json": SPECIAL_TOKENS });
  headers = await createTokenizer(options(folder, { chatTemplateFile: HEADERS }));
});

function sourceOf(body: Body): PromptSource {
  const parsed = parsePrompt("prompt" in body ? "completions" : "chat", body);
  assert.ok("source" in parsed && parsed.source !== undefined);
  return parsed.source;
}

function encode(tokenizer: Tokenizer, source: PromptSource): Promise<TokenizedPrompt> {
  return Promise.resolve(tokenizer.encode(source, SCOPE));
}

function chat(messages: readonly ChatMessage[]): PromptSource {
  return { kind: "chat", messages, tools: undefined, template: {} };
}

async function assertTokens(tokenizer: Tokenizer, source: PromptSource, tokens: readonly number[], what: string) {
  const found = await encode(tokenizer, source);
  const expected = await encode(tokenizer, { kind: "tokens", tokens });
  assert.ok(found.exact && !found.fellBack, what);
  assert.deepEqual(found, expected, what);
}

function lines<T>(name: string): T[] {
  const text = readFileSync(join(CHAT_TOKENS, name), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

for (const name of ["headers", "chatml", "parts"]) {
  test(`the tokens that vLLM makes of chats, template ${name}`, async () => {
    const tokenizer = await createTokenizer(options(folder, { chatTemplateFile: join(CHAT_TOKENS, `${name}.jinja`) }));
    const bodies = lines<Body>("bodies.jsonl");
    const tokens = lines<number[]>(`${name}.tokens.jsonl`);
    for (const round of ["first", "remembered"]) {
      for (const [at, body] of bodies.entries()) {
        await assertTokens(tokenizer, sourceOf(body), tokens[at]!, `body ${at}, ${round}`);
      }
    }
    const { path, counters, memo } = tokenizer.describe();
    assert.match(path, /own scanner, plain chats put together/);
    assert.ok(counters["linear"]! > 0 && counters["rendered"]! > 0 && memo.hits > 0);
  });
}

test("a field of a message that the template writes is in its tokens, and one that it does not read is not", async () => {
  const template = readFileSync(HEADERS, "utf8");
  for (const field of ["name", "task", "reasoning"]) {
    const written = template.replace("message['content']", `(message['${field}'] or '') + message['content']`);
    const chatTemplateFile = join(folderOf({ "written.jinja": written }), "written.jinja");
    const writing = await createTokenizer(options(folder, { chatTemplateFile }));
    const asked: ChatMessage[] = [{ role: "user", content: "hello" }];
    const chats = (more: object): ChatMessage[] => [
      ...asked,
      { role: "assistant", content: "two words", ...more },
      ...asked,
    ];
    const [plain, joined] = [chats({}), chats({ content: "so two words" })].map(chat);
    assert.deepEqual(await encode(writing, plain!), await encode(headers, plain!));
    assert.deepEqual(await encode(writing, chat(chats({ [field]: "so " }))), await encode(headers, joined!), field);
    assert.deepEqual(await encode(headers, chat(chats({ [field]: "so " }))), await encode(headers, plain!), field);
  }
});

const words = fc.constantFrom("", " ", "hello", "two words", "a longer text, and\nits end ".repeat(9), "<|eot_id|>");
const plainMessage = fc.record({ role: fc.constantFrom("user", "assistant", "system"), content: words });

test("property: a chat that is known to begin as another has the tokens of one that is not", async () => {
  const memos = [0, 3, 1_000].map((memoEntriesMax) => options(folder, { chatTemplateFile: HEADERS, memoEntriesMax }));
  const [plain, ...others] = await Promise.all(memos.map(createTokenizer));
  const turn = fc.record({
    more: fc.array(plainMessage, { minLength: 1, maxLength: 3 }),
    isOther: fc.boolean(),
    salt: fc.constantFrom("", "", "a"),
    body: fc.constantFrom({}, {}, { tools: [{ type: "function", function: { name: "f" } }] }, { documents: [] }),
  });
  const conversations = fc.tuple(fc.array(plainMessage, { minLength: 1, maxLength: 6 }), fc.array(turn));
  await fc.assert(
    fc.asyncProperty(conversations, async ([first, turns]) => {
      const beginnings = [first, [...first, ...first]] as const;
      for (const { more, isOther, salt, body } of turns) {
        const beginning = beginnings[Number(isOther)]!;
        const source = sourceOf({ ...body, messages: [...beginning, ...more, { role: "user", content: "end" }] });
        const scope = { model: "m", salt };
        const expected = await plain!.encode(source, scope);
        for (const other of others) {
          assert.deepEqual(await other.encode({ ...source, beginning } as PromptSource, scope), expected);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("the messages of a beginning are looked at twice, and then only what follows it, until the memo drops them", async () => {
  const tokenizer = await createTokenizer(options(folder, { chatTemplateFile: HEADERS, memoEntriesMax: 20 }));
  let looks = 0;
  const beginning = Array.from({ length: 9 }, (_, at): ChatMessage => {
    const content = `message ${at}`;
    return {
      role: at % 2 === 0 ? "user" : "assistant",
      get content() {
        looks++;
        return content;
      },
    };
  });
  const looksOf = async (last: string, mine = beginning): Promise<boolean> => {
    const before = looks;
    const messages = [...mine, { role: "assistant", content: "so" }, { role: "user", content: last }];
    await encode(tokenizer, { kind: "chat", messages, beginning: mine, tools: undefined, template: {} });
    return looks > before;
  };
  assert.deepEqual([await looksOf("a"), await looksOf("b"), await looksOf("c")], [true, true, false]);
  assert.equal(tokenizer.describe().memo.hits, 2 * 9 + 2);
  assert.equal(await looksOf("d", beginning.slice()), true, "another array, though of the same messages");
  for (let i = 0; i < 40; i++)
    await encode(
      tokenizer,
      chat([{ role: "system", content: `other ${i}` }, ...beginning, { role: "user", content: "x" }]),
    );
  assert.deepEqual([await looksOf("e"), await looksOf("f"), await looksOf("g")], [true, true, false]);
});

test("what a real server answered on /tokenize and on render, and what it counted", async () => {
  const whole = { "tokenizer.json": readFileSync(LLAMA_FILE, "utf8"), "tokenizer_config.json": SPECIAL_TOKENS };
  const full = await createTokenizer(options(folderOf(whole), { chatTemplateFile: HEADERS }));
  const checked = { tokens: 0, counts: 0 };
  for (const name of readdirSync(VLLM_HTTP).filter((one) => one.endsWith(".req.http"))) {
    const request = readFileSync(join(VLLM_HTTP, name), "utf8");
    const response = readFileSync(join(VLLM_HTTP, name.replace(".req", "")), "utf8");
    const source = isJson(request) && isJson(response) ? firstSource(request) : undefined;
    if (source === undefined) continue;
    const answer = bodyOf(response) as Answered | Answered[];
    const first = Array.isArray(answer) ? answer[0]! : answer;
    const tokens = first.tokens ?? first.token_ids;
    if (tokens !== undefined && tokens !== null) {
      await assertTokens(full, source, tokens, name);
      checked.tokens++;
    }
    const counted = first.usage?.prompt_tokens;
    if (counted === undefined) continue;
    const found = await encode(full, source);
    assert.ok(found.exact, name);
    assert.equal(found.promptTokens, counted, name);
    checked.counts++;
  }
  assert.ok(checked.tokens >= 6 && checked.counts >= 30, JSON.stringify(checked));
});

function isJson(message: string): boolean {
  return /^(?:HTTP\/1.1 200|POST \/(?:v1\/(?:chat\/)?completions|tokenize))[^]*content-type: application\/json/i.test(
    message,
  );
}

/** The prompt of a request that has one. */
function firstSource(request: string): PromptSource | undefined {
  const body = bodyOf(request) as Body;
  const parsed = parsePrompt("prompt" in body ? "completions" : "chat", body);
  return "source" in parsed && parsed.count === 1 ? parsed.source : undefined;
}

interface Answered {
  readonly tokens?: number[];
  readonly token_ids?: number[] | null;
  readonly usage?: { readonly prompt_tokens: number };
}

function bodyOf(message: string): unknown {
  return JSON.parse(message.slice(message.indexOf("\r\n\r\n") + 4));
}

test("a conversation gets the same blocks with and without what is remembered of it", async () => {
  const without = await createTokenizer(options(folder, { chatTemplateFile: HEADERS, memoEntriesMax: 0 }));
  const little = await createTokenizer(
    options(folder, { chatTemplateFile: HEADERS, memoEntriesMax: 5, memoBytesMax: 20_000 }),
  );
  const random = new RandomStream(SEED);
  for (let i = 0; i < 40; i++) {
    const messages: ChatMessage[] = [];
    for (let turn = random.below(6); turn >= 0; turn--) {
      messages.push({ role: "user", content: randomText(random) });
      const prompt = chat(structuredClone(messages));
      const expected = await encode(without, prompt);
      assert.deepEqual(await encode(headers, prompt), expected, `seed ${SEED}, conversation ${i}`);
      assert.deepEqual(await encode(little, prompt), expected, `seed ${SEED}, conversation ${i}`);
      messages.push({ role: "assistant", content: randomText(random) });
    }
  }
});

test("answers at once for a short prompt and for a long one of which little is new", async () => {
  const messages: ChatMessage[] = [];
  for (let i = 0; i < 80; i++)
    messages.push({ role: i % 2 === 0 ? "user" : "assistant", content: `${i} words `.repeat(400) });
  messages.push({ role: "user", content: "a" });
  const first = headers.encode(chat(messages), SCOPE);
  assert.ok(first instanceof Promise);
  await first;
  const next = [...messages, { role: "assistant", content: "b" }, { role: "user", content: "c" }];
  assert.ok(!(headers.encode(chat(next), SCOPE) instanceof Promise));
});

test("the library's way gives the tokens of the own scanner", async () => {
  const flagged = { ...small, added_tokens: [...(small["added_tokens"] as object[]), strippingToken(ADDED)] };
  const library = folderOf({ "tokenizer.json": flagged, "tokenizer_config.json": SPECIAL_TOKENS });
  const native = await createTokenizer(options(library, { chatTemplateFile: HEADERS }));
  assert.match(native.describe().path, /tokenizers library/);
  assert.match(native.describe().reason, /lstrip/);
  const bodies = lines<Body>("bodies.jsonl");
  const tokens = lines<number[]>("headers.tokens.jsonl");
  const asked = bodies.map((body, at) => assertTokens(native, sourceOf(body), tokens[at]!, `body ${at}`));
  await Promise.all(asked);
});

function strippingToken(id: number): object {
  return { id, content: "<|odd|>", single_word: false, lstrip: true, rstrip: false, normalized: false, special: true };
}

test("special tokens around a text are those of the engine's loader", async () => {
  const bos = SMALL_VOCABULARY;
  const text: PromptSource = { kind: "text", text: "!" };
  await assertTokens(headers, text, [0], "none");
  const config = { ...SPECIAL_TOKENS, add_bos_token: true };
  const configured = folderOf({ "tokenizer.json": small, "tokenizer_config.json": config });
  const withBos = await createTokenizer(options(configured));
  await assertTokens(withBos, text, [bos, 0], "by tokenizer_config.json");
  await assertTokens(withBos, sourceOf({ prompt: "!", add_special_tokens: false }), [0], "unless the client says no");
  await assertTokens(withBos, sourceOf({ prompt: ["!"], add_special_tokens: true }), [bos, 0], "or says so");
  const processor = {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: "<|begin_of_text|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
    special_tokens: { "<|begin_of_text|>": { id: "<|begin_of_text|>", ids: [bos], tokens: ["<|begin_of_text|>"] } },
  };
  const processed = folderOf({ "tokenizer.json": { ...small, post_processor: processor } });
  await assertTokens(await createTokenizer(options(processed)), text, [bos, 0], "by the post-processor");
});

test("tokens that only tokenizer_config.json adds are tokens", async () => {
  const decoder = {
    [ADDED]: {
      content: "<|added|>",
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    },
  };
  const file = folderOf({
    "tokenizer.json": small,
    "tokenizer_config.json": { ...SPECIAL_TOKENS, added_tokens_decoder: decoder },
  });
  const tokenizer = await createTokenizer(options(file));
  assert.match(tokenizer.describe().path, /own scanner/);
  await assertTokens(tokenizer, { kind: "text", text: "!<|added|>!" }, [0, ADDED, 0], "added");
});

test("a chat with a template of its own, or with more special tokens, is not claimed exact", async () => {
  const messages = [{ role: "user", content: "hello there, how are you?" }];
  const plain = await encode(headers, sourceOf({ messages }));
  assert.ok(plain.exact);
  for (const same of [{ chat_template: null }, { add_special_tokens: false }]) {
    assert.deepEqual(await encode(headers, sourceOf({ messages, ...same })), plain);
  }
  const chains = new Set<string>();
  for (const other of [{ chat_template: "{{ 1 }}" }, { chat_template: "{{ 2 }}" }, { add_special_tokens: true }]) {
    const found = await encode(headers, sourceOf({ messages, ...other }));
    assert.ok(!found.exact && found.fellBack, JSON.stringify(other));
    assert.notEqual(found.blocks.length, 0);
    chains.add(String(found.blocks.hashes));
  }
  assert.equal(chains.size, 3, "other templates share no blocks");
});

test("the estimate stands in for images, refused chats and missing templates, and learns", async () => {
  const image = chat([{ role: "user", content: [{ type: "image_url", image_url: { url: "data:x" } }, "what is it?"] }]);
  const monster = chat([{ role: "user", content: "q".repeat(300_000) }]);
  const bad = chat([
    { role: "assistant", content: "x", tool_calls: [{ type: "custom" }] },
    { role: "user", content: "y" },
  ]);
  for (const prompt of [image, monster, bad]) {
    const found = await encode(headers, prompt);
    assert.ok(found.fellBack && !found.exact && found.blocks.length >= 0);
  }
  const bare = folderOf({ "tokenizer.json": small });
  const plain = await createTokenizer(options(bare));
  assert.match(plain.describe().reason, /no chat template/);
  const hello = chat([{ role: "user", content: "Hello ".repeat(100) }]);
  const before = await encode(plain, hello);
  assert.ok(before.fellBack);
  for (let i = 0; i < 100; i++) plain.learn("m", await encode(plain, hello), 100);
  assert.ok((await encode(plain, hello)).promptTokens < before.promptTokens);
});

test("counts that contradict the engine's are counted", async () => {
  const found = await encode(headers, chat([{ role: "user", content: "Hello" }]));
  const { confirmed, contradicted } = headers.describe().counters;
  headers.learn("m", found, found.promptTokens);
  headers.learn("m", found, found.promptTokens + 1);
  const { counters } = headers.describe();
  assert.deepEqual([counters["confirmed"], counters["contradicted"]], [confirmed! + 1, contradicted! + 1]);
});

test("a missing or broken file is named, with what is accepted", async () => {
  const missing = join(folder, "nowhere.json");
  await assert.rejects(createTokenizer(options(missing)), {
    message: new RegExp(`nowhere\\.json.*ENOENT.*tokenizer\\.json`),
  });
  await assert.rejects(createTokenizer(options(folder, { chatTemplateFile: missing })), /nowhere\.json.*Jinja/);
  const broken = folderOf({ "tokenizer.json": "{", "config.json": "{}", "empty.jinja": "{% for" });
  await assert.rejects(createTokenizer(options(broken)), /tokenizer\.json: .*JSON/);
  await assert.rejects(createTokenizer(options(join(broken, "config.json"))), /config\.json: model/);
  await assert.rejects(
    createTokenizer(options(folder, { chatTemplateFile: join(broken, "empty.jinja") })),
    /empty\.jinja: /,
  );
  await assert.rejects(
    createTokenizer(options(folder, { chatTemplateFile: join(broken, "config.json") })),
    /chat_template/,
  );
  const { tokenizerFile: _none, ...rest } = options(folder);
  await assert.rejects(createTokenizer(rest), /kind huggingface needs tokenizerFile/);
});
