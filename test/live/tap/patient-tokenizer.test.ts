import assert from "node:assert/strict";
import { test } from "node:test";
import { AskerLeft } from "#live/base/loop-turn.ts";
import { patientTokenizer } from "#live/tap/patient-tokenizer.ts";
import type { TokenizedPrompt, Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import { encodeWords, LEARNT, WORD_TOKENIZER } from "../gateway/rig.ts";

const TEXT = { kind: "text", text: "one two three" } as const;
const SCOPE = { model: "m", salt: "" };

function patient(encode: Tokenizer["encode"], millisMax = 60_000) {
  const counts = { late: 0, failed: 0 };
  return { counts, tokenizer: patientTokenizer({ ...WORD_TOKENIZER, encode }, millisMax, counts) };
}

test("what is answered at once, or in time, is passed on", async () => {
  const prompt = encodeWords(TEXT);
  assert.equal(patient(() => prompt).tokenizer.encode(TEXT, SCOPE), prompt);
  assert.equal(await patient(() => Promise.resolve(prompt)).tokenizer.encode(TEXT, SCOPE), prompt);
});

test("a tokenizer that fails or never answers leaves a prompt without tokens, counted, and nothing is learned of it", async () => {
  const cases: readonly (readonly [Tokenizer["encode"], { late: number; failed: number }])[] = [
    [
      () => {
        throw new Error("no");
      },
      { late: 0, failed: 1 },
    ],
    [() => Promise.reject(new Error("no")), { late: 0, failed: 1 }],
    [() => new Promise<TokenizedPrompt>(() => {}), { late: 1, failed: 0 }],
  ];
  for (const [encode, expected] of cases) {
    const { tokenizer, counts } = patient(encode, 1);
    const prompt = await tokenizer.encode(TEXT, SCOPE);
    assert.deepEqual([prompt.promptTokens, prompt.blocks.length, prompt.fellBack], [0, 0, true]);
    assert.deepEqual(counts, expected);
    const before = LEARNT.length;
    tokenizer.learn("m", prompt, 12);
    assert.equal(LEARNT.length, before);
  }
});

test("a client that left ends the wait as before", async () => {
  const { tokenizer, counts } = patient(() => Promise.reject(new AskerLeft()));
  await assert.rejects(async () => tokenizer.encode(TEXT, SCOPE), AskerLeft);
  assert.deepEqual(counts, { late: 0, failed: 0 });
});
