import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { FIT_DEFAULTS, WorkloadFit } from "#trace/import/fit-workload.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

function request(promptTokens: number, blockTokens: number, more: Partial<WorkloadRequest> = {}): WorkloadRequest {
  const blockIds = Float64Array.from({ length: Math.ceil(promptTokens / blockTokens) }, (_, i) => i);
  return {
    ...LENGTHS_ONLY,
    index: 0,
    arrivalMicros: 0,
    promptTokens,
    outputTokens: 10,
    blockIds,
    blockTokens,
    ...more,
  };
}

const lengths = fc.integer({ min: 1, max: 20_000 });

describe("fitting a workload", () => {
  it("changes nothing without being asked", () => {
    const one = request(1_000, 64);
    assert.deepEqual(new WorkloadFit(FIT_DEFAULTS).fit(one), one);
  });

  it("scales and cuts each of several prompts and answers by itself", () => {
    const one = request(1_000, 10, { outputTokens: 90, sequences: 3, tokensByPrompt: [600, 300, 100] });
    assert.deepEqual(new WorkloadFit(FIT_DEFAULTS).fit(one), one);
    const fit = new WorkloadFit({ ...FIT_DEFAULTS, tokenScale: 0.5, inputTokensMax: 200, outputTokensMax: 25 });
    const { promptTokens, tokensByPrompt, outputTokens } = fit.fit(one)!;
    assert.deepEqual([promptTokens, tokensByPrompt, outputTokens], [400, [200, 150, 50], 75]);
    assert.deepEqual([fit.promptsTruncated, fit.outputsCut], [1, 1]);
  });

  it("keeps every block a block: full ones stay full, and the count of ids fits the length", () => {
    fc.assert(
      fc.property(
        lengths,
        fc.constantFrom(16, 64, 512),
        fc.constantFrom(0.05, 0.125, 0.25, 0.5, 2),
        (tokens, block, tokenScale) => {
          const fitted = new WorkloadFit({ ...FIT_DEFAULTS, tokenScale }).fit(request(tokens, block));
          assert.ok(fitted);
          assert.equal(fitted.blockTokens, Math.max(1, Math.round(block * tokenScale)));
          assert.ok(fitted.promptTokens >= Math.floor(tokens / block) * fitted.blockTokens);
          assert.ok(fitted.promptTokens <= Math.ceil(tokens / block) * fitted.blockTokens);
        },
      ),
    );
  });

  it("truncates to the beginning, in tokens, ids, text and exact tokens alike", () => {
    fc.assert(
      fc.property(lengths, lengths, (tokens, inputTokensMax) => {
        const text = "x".repeat(tokens * 4);
        const tokenIds = Int32Array.from({ length: tokens }, (_, i) => i);
        const fit = new WorkloadFit({ ...FIT_DEFAULTS, inputTokensMax });
        const fitted = fit.fit(request(tokens, 16, { text, tokenIds }));
        assert.ok(fitted);
        const kept = Math.min(tokens, inputTokensMax);
        assert.equal(fitted.promptTokens, kept);
        assert.equal(fitted.blockIds?.length, Math.ceil(kept / 16));
        assert.equal(fitted.tokenIds?.length, kept);
        assert.equal(fitted.text?.length, kept * 4);
        assert.equal(fit.promptsTruncated, tokens > inputTokensMax ? 1 : 0);
      }),
    );
  });

  it("leaves out, cuts and caps as asked, and counts it", () => {
    const fit = new WorkloadFit({
      ...FIT_DEFAULTS,
      inputTokensMax: 100,
      oversize: "skip",
      outputTokensMax: 5,
      outputScale: 2,
      thinkMicrosMax: 1_000,
    });
    assert.equal(fit.fit(request(101, 16)), undefined);
    const fitted = fit.fit(request(100, 16, { thinkMicros: 2_000 }));
    assert.equal(fitted?.outputTokens, 5);
    assert.equal(fitted?.thinkMicros, 1_000);
    assert.deepEqual([fit.promptsSkipped, fit.outputsCut, fit.thinkTimesCut, fit.promptsTruncated], [1, 1, 1, 0]);
  });
});
