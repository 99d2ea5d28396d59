import assert from "node:assert/strict";
import { test } from "node:test";
import { Tokenizer as NativeTokenizer } from "tokenizers";
import { createTokenizer } from "./create-tokenizer.ts";
import { folderOf } from "./llama-files.ts";
import { RandomStream } from "./random-stream.ts";

const SEED = 909;
const SCOPE = { model: "m", salt: "" };
const TEMPLATE =
  "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

/** A BPE over letters, with the space mark of SentencePiece. */
function tokenizerJson(parts: object): object {
  const pieces = ["<unk>", "▁", ...Array.from("abcdefghijklmnopqrstuvwxyz"), "▁a", "ab", "▁ab", "er", "us"];
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const base = pieces.length;
  return {
    version: "1.0",
    truncation: { max_length: 5, strategy: "LongestFirst", stride: 0, direction: "Right" },
    padding: null,
    added_tokens: [
      { id: 0, content: "<unk>", ...flags },
      { id: base, content: "<s>", ...flags },
      { id: base + 1, content: "</s>", ...flags },
      { id: base + 2, content: "<lean>", ...flags, lstrip: true },
    ],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: "<unk>",
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: false,
      vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
      merges: ["▁ a", "a b", "▁ ab", "e r", "u s"],
    },
    ...parts,
  };
}

const metaspace = (scheme: string): object => ({
  pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: scheme, split: false },
});
const prepended = {
  normalizer: {
    type: "Sequence",
    normalizers: [
      { type: "Prepend", prepend: "▁" },
      { type: "Replace", pattern: { String: " " }, content: "▁" },
    ],
  },
};
const FAMILIES: Readonly<Record<string, object>> = {
  "a mark before the first word": metaspace("first"),
  "a mark before every part": metaspace("always"),
  "no mark before a part": metaspace("never"),
  "a mark by the normalizer": prepended,
};

for (const [family, parts] of Object.entries(FAMILIES)) {
  test(`a prompt in steps has the tokens of the whole, ${family}`, async () => {
    const json = tokenizerJson(parts);
    const folder = folderOf({
      "tokenizer.json": json,
      "tokenizer_config.json": { bos_token: "<s>", chat_template: TEMPLATE },
    });
    const options = {
      kind: "huggingface",
      tokenizerFile: folder,
      blockTokens: 1,
      blockHash: "blake3",
      secret: "s",
    } as const;
    const tokenizer = await createTokenizer(options);
    assert.match(tokenizer.describe().path, /tokenizers library/);
    const native = NativeTokenizer.fromString(JSON.stringify(json));
    native.disableTruncation();
    const random = new RandomStream(SEED);
    for (let i = 0; i < 30; i++) {
      const contents = Array.from({ length: 1 + 2 * random.below(3) }, () => randomContent(random));
      const messages = contents.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content }));
      const rendered = `<s>${messages.map(({ role, content }) => `[${role}]${content}</s>`).join("")}[assistant]`;
      const tokens = (await native.encode(rendered, null, { addSpecialTokens: false })).getIds();
      const expected = await tokenizer.encode({ kind: "tokens", tokens }, SCOPE);
      const prompts = [
        { kind: "chat", messages, tools: undefined, template: {} },
        { kind: "text", text: rendered },
      ] as const;
      for (const prompt of prompts)
        assert.deepEqual(await tokenizer.encode(prompt, SCOPE), expected, `seed ${SEED}, ${i}`);
    }
  });
}

/** Long enough to be cut, at tokens that stand alone and at one that takes the space before it. */
function randomContent(random: RandomStream): string {
  let text = "";
  for (let part = random.below(120); part >= 0; part--) {
    text += random.of(["ab", "user", " ", "  ", " abab", "x", "</s>", " <lean>", "<lean>", "<s> ", "Ω"]);
  }
  return text;
}

test("prompts that arrive together wait for each other and all are answered", async () => {
  const folder = folderOf({ "tokenizer.json": tokenizerJson(prepended) });
  const options = {
    kind: "huggingface",
    tokenizerFile: folder,
    blockTokens: 1,
    blockHash: "blake3",
    secret: "s",
  } as const;
  const tokenizer = await createTokenizer(options);
  const texts = Array.from({ length: 1000 }, (_, i) => `${"ab user ".repeat(20)}${"abcdefghij"[i % 10]!.repeat(i)}`);
  const found = await Promise.all(
    texts.map((text) => Promise.resolve(tokenizer.encode({ kind: "text", text }, SCOPE))),
  );
  const { counters } = tokenizer.describe();
  assert.equal(found.filter(({ exact }) => exact).length, 1000 - counters["refused"]!);
  assert.equal(found.filter(({ fellBack }) => fellBack).length, counters["refused"]);
  assert.ok(counters["refused"]! > 0 && counters["refused"]! < 1000);
});
