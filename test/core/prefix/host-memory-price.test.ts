import assert from "node:assert/strict";
import { test } from "node:test";
import { HOST_MEMORY_PRICE, sparedTokens } from "#core/prefix/host-memory-price.ts";

test("tokens in a host's memory are worth the time that copying them spares", () => {
  const price = { baseMicros: 400, tokenMicros: 20, prefillTokenMicros: 80 };
  // 100 tokens take 8,000 us to compute and 2,400 to copy: 70 tokens' time is spared.
  assert.equal(sparedTokens(100, price), 70);
  assert.equal(sparedTokens(0, price), 0);
  assert.equal(sparedTokens(5, price), 0, "copying so few takes longer than computing them");
  assert.equal(sparedTokens(1_000, { ...price, tokenMicros: 80 }), 0);
  assert.equal(sparedTokens(16, HOST_MEMORY_PRICE), 8);
  assert.equal(sparedTokens(16_000, HOST_MEMORY_PRICE), 14_593);
});
