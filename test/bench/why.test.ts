import assert from "node:assert/strict";
import { test } from "node:test";
import { namedCauses } from "#shadow/why/named-causes.ts";
import { explained } from "../../bench/why/explained.ts";
import { INJECTED, injectedTrace, partOf } from "../../bench/why/injected-cause.ts";

/** Where lost tokens show what was injected, and how. */
const TOKENS_SHOW = { index: "index", cache: "evicted", policy: "policy" } as const;

for (const cause of INJECTED) {
  test(`what was injected is named first: ${cause}`, async () => {
    const { tokens, slow } = await explained(injectedTrace({ cause, seed: 1, conversations: 150 }), "llm-d");
    assert.equal(namedCauses(slow)[0]?.part, partOf(cause));
    const sum = slow.parts.reduce((all, { micros }) => all + micros, 0);
    assert.ok(Math.abs(sum - slow.micros) < 1e-6 * slow.micros);
    assert.equal(tokens.hit + tokens.losses.reduce((all, one) => all + one.tokens, 0), tokens.possible);
    if (cause in TOKENS_SHOW) assert.equal(tokens.losses[0]!.loss, TOKENS_SHOW[cause as keyof typeof TOKENS_SHOW]);
  });
}

test("where nothing was injected no cause has a tenth of the mean", async () => {
  const { slow } = await explained(injectedTrace({ cause: "none", seed: 1, conversations: 150 }), "llm-d");
  assert.ok(
    slow.parts.every(({ part, micros }) => ["load", "own"].includes(part) || Math.abs(micros) < 0.1 * slow.micros),
  );
});
