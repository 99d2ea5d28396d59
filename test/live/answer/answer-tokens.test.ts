import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerTokens } from "#live/answer/answer-tokens.ts";
import { newCounters } from "#live/base/gateway-counters.ts";
import type { ChainEnd } from "#live/tokenizer/text/chain-state.ts";

/** The reader, and the tokens that it had hashed. */
function reader(tokensMax = 1_000) {
  const hashed: number[] = [];
  const end = {
    hashesBehind: (tokens: Int32Array) => {
      hashed.push(...tokens);
      return new Int32Array(2);
    },
  } as unknown as ChainEnd;
  const counters = newCounters();
  return { made: new AnswerTokens(end, tokensMax, counters), hashed, counters };
}

const feed = (made: AnswerTokens, text: string): void => made.event(Buffer.from(text), 0, text.length);

test("ids of all events in their order, but for the last one, which was sampled and never computed", () => {
  const { made, hashed, counters } = reader();
  feed(made, '{"choices":[{"text":"a","token_ids":[0, 17,128009]}]}');
  feed(made, '{"choices":[{"text":"b","token_ids":null}]}');
  feed(made, '{"choices":[{"text":"c","token_ids":[ 5 ]}]}');
  assert.ok(made.ended("r", { promptTokens: 1, cachedTokens: 0, outputTokens: 4 }).answerHashes !== undefined);
  assert.deepEqual(hashed, [0, 17, 128009]);
  assert.deepEqual(counters.answersKnown, { ids: 1 });
});

test("where the engine counts other tokens than it sent, nothing is known of the answer", () => {
  const { made, hashed, counters } = reader();
  feed(made, '{"token_ids":[1,2,3]}');
  assert.deepEqual(made.ended("r", { promptTokens: 1, cachedTokens: 0, outputTokens: 4 }), {});
  assert.deepEqual([hashed, counters.answersUnknown], [[], { count: 1 }]);
});

test("law: ids are kept up to the bound, whatever their number, the rest is counted, and an attempt begins anew", () => {
  for (const [count, tokensMax] of [
    [1, 10],
    [2, 10],
    [300, 1_000],
    [1_100, 1_000],
  ] as const) {
    const { made, hashed, counters } = reader(tokensMax);
    feed(made, '{"token_ids":[9,9]}');
    made.reset();
    const ids = Array.from({ length: count }, (_, i) => 7 * i);
    for (const id of ids) feed(made, `{"token_ids":[${id}]}`);
    made.ended("r", undefined);
    assert.deepEqual(hashed, ids.slice(0, Math.min(tokensMax, count - 1)));
    assert.equal(counters.answerTokensDropped, Math.max(0, count - tokensMax));
  }
});
