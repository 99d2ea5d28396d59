import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { NATURAL_TOKENS_MIN, naturalLength } from "#emulator/generation/natural-length.ts";
import { planOutput, type OutputPlan } from "#emulator/generation/output-plan.ts";
import { FieldReader } from "#emulator/http/field-reader.ts";
import { readSampling } from "#emulator/generation/sampling.ts";
import { QuadTokenizer } from "#emulator/tokenizer/quad-tokenizer.ts";

const tokenizer = new QuadTokenizer();

interface Given {
  readonly seed: number;
  readonly maxTokens: number;
  readonly naturalTokens: number;
}

const given = fc.record({
  seed: fc.nat(),
  maxTokens: fc.integer({ min: 1, max: 80 }),
  naturalTokens: fc.integer({ min: 1, max: 80 }),
});

function plan({ seed, maxTokens, naturalTokens }: Given, body: Record<string, unknown> = {}): OutputPlan {
  const sampling = readSampling(new FieldReader(body), maxTokens);
  return planOutput(tokenizer, randomFor(seed, 0), sampling, {
    maxTokens,
    naturalTokens,
    generated: 0,
    forced: undefined,
  });
}

test("an answer ends at its natural end or at the ceiling, whichever comes first", () => {
  fc.assert(
    fc.property(given, (one) => {
      const { tokens, finish, stopReason, texts } = plan(one);
      assert.equal(tokens.length, Math.min(one.maxTokens, one.naturalTokens));
      assert.equal(texts.length, tokens.length);
      const natural = one.naturalTokens <= one.maxTokens;
      assert.equal(finish, natural ? "stop" : "length");
      assert.equal(stopReason, null);
      assert.equal(tokens.at(-1) === tokenizer.endToken, natural);
    }),
  );
});

test("ignore_eos gives exactly the ceiling, min_tokens at least itself", () => {
  fc.assert(
    fc.property(given, fc.nat({ max: 80 }), (one, least) => {
      assert.equal(plan(one, { ignore_eos: true }).tokens.length, one.maxTokens);
      const minTokens = Math.min(least, one.maxTokens);
      const { tokens, finish } = plan(one, { min_tokens: minTokens });
      assert.ok(tokens.length >= minTokens);
      // The ending token is not among the tokens that were asked for at least.
      if (finish === "stop") assert.ok(tokens.length > minTokens);
    }),
  );
});

test("a stop string ends the answer, and no more than what is before it is shown", () => {
  fc.assert(
    fc.property(given, fc.nat(), fc.integer({ min: 1, max: 9 }), fc.boolean(), (one, from, length, include) => {
      const whole = plan(one, { ignore_eos: true }).texts.join("");
      const stop = whole.slice(from % whole.length, (from % whole.length) + length);
      const options = { ignore_eos: true, stop: [stop, "nowhere"], include_stop_str_in_output: include };
      const { texts, finish, stopReason, tokens } = plan(one, options);
      const at = whole.indexOf(stop);
      assert.equal(texts.join(""), whole.slice(0, include ? at + stop.length : at));
      assert.deepEqual([finish, stopReason], ["stop", stop]);
      assert.equal(tokens.length, Math.ceil((at + stop.length) / 4));
    }),
  );
});

test("text held back for a stop string that does not come is shown in the end", () => {
  fc.assert(
    fc.property(given, (one) => {
      const whole = plan(one, { ignore_eos: true });
      const held = plan(one, { ignore_eos: true, stop: ["#########"] });
      assert.equal(held.texts.join(""), whole.texts.join(""));
      assert.deepEqual(held.tokens, whole.tokens);
    }),
  );
});

test("a stop token ends the answer without showing itself", () => {
  fc.assert(
    fc.property(given, fc.nat(), (one, pick) => {
      const whole = plan(one, { ignore_eos: true });
      const index = pick % whole.tokens.length;
      const token = whole.tokens[index] ?? 0;
      const { tokens, texts, stopReason } = plan(one, { ignore_eos: true, stop_token_ids: [token] });
      const first = whole.tokens.indexOf(token);
      assert.equal(tokens.length, first + 1);
      assert.equal(texts.join(""), whole.texts.slice(0, first).join(""));
      assert.equal(stopReason, token);
    }),
  );
});

test("natural lengths have the asked mean and are never below the shortest", () => {
  const random = randomFor(7, 7);
  const lengths = Array.from({ length: 20_000 }, () => naturalLength(random, 160));
  const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
  assert.ok(Math.abs(mean - 160) < 5, `mean ${mean}`);
  assert.ok(lengths.every((length) => length >= NATURAL_TOKENS_MIN && length <= 16 + 4 * 144));
});
