import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenRatio } from "#live/tokenizer/text-tokenizer.ts";

/** An engine with 4 bytes a token and a template of 11 tokens. */
const counted = (bytes: number): number => 11 + Math.round(bytes / 4);

function estimate(ratio: TokenRatio, bytes: number): number {
  const { tokensAround, unitsPerToken } = ratio.of("m");
  return tokensAround + bytes / unitsPerToken;
}

test("a greeting, which is template for the most part, does not change how long prompts are measured", () => {
  const ratio = new TokenRatio(4, 8);
  assert.ok(ratio.learn("m", 12, counted(12)));
  assert.ok(Math.abs(ratio.of("m").unitsPerToken - 4) < 0.02);
  assert.ok(Math.abs(estimate(ratio, 2_732) / counted(2_732) - 1) < 0.02);
});

test("after few prompts of any length each is estimated within a few tokens, and never above by a tenth", () => {
  const ratio = new TokenRatio(4, 8);
  for (const bytes of [12, 12, 204, 12, 2_732, 60]) ratio.learn("m", bytes, counted(bytes));
  for (const bytes of [12, 60, 204, 1_200, 2_732, 40_000]) {
    const error = estimate(ratio, bytes) - counted(bytes);
    assert.ok(Math.abs(error) <= 4 + 0.02 * counted(bytes), `${bytes} bytes: ${error}`);
  }
});

test("a model with another ratio is followed within some prompts, and a flood of greetings does not undo it", () => {
  const ratio = new TokenRatio(4, 8);
  for (let i = 0; i < 10; i++) ratio.learn("m", 5_000, 2_000);
  assert.ok(Math.abs(ratio.of("m").unitsPerToken - 2.5) < 0.05);
  for (let i = 0; i < 1_000; i++) ratio.learn("m", 12, 16);
  assert.ok(Math.abs(ratio.of("m").unitsPerToken - 2.5) < 0.2, String(ratio.of("m").unitsPerToken));
});

test("a count that cannot be of this text is not taken", () => {
  const ratio = new TokenRatio(4, 8);
  for (const [bytes, tokens] of [
    [4_000, 20_000],
    [4_000, 10],
    [0, 5],
    [5, 0],
  ] as const) {
    assert.equal(ratio.learn("m", bytes, tokens), false);
  }
  assert.ok(ratio.learn("m", 12, 40), "a long template around a greeting is possible");
});
