import assert from "node:assert/strict";
import { test } from "node:test";
import { colocateReason } from "#core/prefill/prefill-choice.ts";
import { chain, request } from "../state.ts";

const NEW = { continued: false, transferFailed: false };
const asked = (promptTokens: number, more: object = {}) =>
  request({ id: "r", blocks: chain(1, 0), promptTokens, ...more });

test("llm-d's decider by prefixes: a prompt is shared where as many of its tokens as the bound are not cached", () => {
  // [bound, shortest prompt, cached tokens of a prompt of 10, shared], the cases of llm-d's own test without bound 0,
  // which never shares there.
  const cases = [
    [5, 20, 0, false],
    [20, 0, 0, false],
    [5, 10, 5, true],
    [5, 0, 8, false],
    [5, 0, 5, true],
    [3, 0, 2, true],
    [1, 0, 10, false],
    [5, 0, 0, true],
  ] as const;
  for (const [colocateBelowTokens, promptTokensMin, cached, shared] of cases) {
    const reason = colocateReason({ colocateBelowTokens, promptTokensMin }, asked(10), cached, NEW);
    assert.equal(reason === undefined, shared, JSON.stringify([colocateBelowTokens, promptTokensMin, cached, reason]));
  }
});

test("Cognitora's plan: a prompt at the bound is shared, one below it is not; a bound of 0 shares all", () => {
  const reason = (colocateBelowTokens: number, promptTokens: number, hitTokens = 0) =>
    colocateReason({ colocateBelowTokens, promptTokensMin: 0 }, asked(promptTokens), hitTokens, NEW);
  assert.equal(reason(256, 100), "short");
  assert.equal(reason(256, 255), "short");
  assert.equal(reason(256, 256), undefined);
  assert.equal(reason(256, 1024), undefined);
  assert.equal(reason(256, 1024, 769), "cached");
  assert.equal(reason(256, 1024, 768), undefined);
  assert.equal(reason(0, 1, 0), undefined);
});

test("what cannot be shared is not, whatever its length", () => {
  const rules = { colocateBelowTokens: 0, promptTokensMin: 0 };
  const reason = (more: object, past: object = {}) => colocateReason(rules, asked(9_999, more), 0, { ...NEW, ...past });
  assert.equal(reason({ undivided: true }), "undivided");
  assert.equal(reason({ cacheRead: false }), "undivided");
  assert.equal(reason({ sequences: 2 }), "several-sequences");
  assert.equal(reason({}, { continued: true }), "continued");
  assert.equal(reason({}, { transferFailed: true }), "transfer-failed");
});
