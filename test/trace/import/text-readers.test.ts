import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { golden, ids, readAll } from "./read-all.ts";

describe("LMCache", () => {
  it("puts lines in their place by time, and thinks the whole distance between them", async () => {
    const { requests, report } = await readAll(golden("lmcache"));
    const session = requests.filter(({ session }) => session === "s-1");
    assert.deepEqual(
      session.map(({ thinkMicros }) => thinkMicros),
      [undefined, 3_000_000, 2_000_000],
    );
    for (const [i, request] of session.entries())
      if (i > 0) assert.ok(request.text?.startsWith(session[i - 1]?.text ?? "-"), "a turn extends the one before");
    assert.equal(report.refused.get("empty input"), 1);
    assert.equal(report.adjusted.get("empty output, a length of 1 token assumed"), 1);
  });

  it("computes block identity from the text: as many leading ids as the texts share blocks", async () => {
    const { requests } = await readAll(golden("lmcache"), { charsPerToken: 0.5 });
    const [first, second] = requests.filter(({ session }) => session === "s-1");
    const blockChars = 8;
    const shared = Math.floor((first?.text?.length ?? 0) / blockChars);
    assert.ok(shared > 2);
    assert.deepEqual(ids(first).slice(0, shared), ids(second).slice(0, shared));
    assert.notEqual(ids(first)[shared], ids(second)[shared]);
  });

  it("scales lengths by the characters a token", async () => {
    const four = await readAll(golden("lmcache"));
    const two = await readAll(golden("lmcache"), { charsPerToken: 2 });
    for (const [i, request] of four.requests.entries()) {
      const chars = request.text?.length ?? 0;
      assert.equal(request.promptTokens, Math.ceil(chars / 4));
      assert.equal(two.requests[i]?.promptTokens, Math.ceil(chars / 2));
    }
  });
});

describe("Azure", () => {
  it("reads times across midnight and keeps no content", async () => {
    const { requests } = await readAll(golden("azure.csv"));
    assert.deepEqual(
      requests.map(({ arrivalMicros }) => arrivalMicros),
      [0, 52_000, 1_020_040],
    );
    assert.deepEqual(
      requests.map(({ promptTokens, outputTokens }) => [promptTokens, outputTokens]),
      [
        [4808, 10],
        [3180, 8],
        [110, 1],
      ],
    );
    assert.ok(requests.every(({ blockIds }) => blockIds === undefined));
  });
});

describe("token ids", () => {
  it("keeps the exact tokens, and ids per 16 of them", async () => {
    const { requests } = await readAll(golden("token-ids.jsonl"));
    const [first, second] = requests;
    assert.equal(requests.length, 2);
    assert.equal(first?.arrivalMicros, 46_927);
    assert.deepEqual(
      [...(first?.tokenIds ?? [])],
      Array.from({ length: 40 }, (_, i) => 1_000 + i),
    );
    assert.deepEqual(ids(first).slice(0, 2), ids(second).slice(0, 2));
    assert.notEqual(ids(first)[2], ids(second)[2]);
  });
});
