import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { imbalanceOf } from "#drive/imbalance.ts";
import { SampleLog } from "#drive/sample-log.ts";

interface Span {
  /** -1 where the gateway did not tell. */
  readonly endpoint: number;
  readonly sent: number;
  readonly length: number;
}

function logOf(spans: readonly Span[]): SampleLog {
  const log = new SampleLog();
  for (const { endpoint, sent, length } of spans)
    log.add({
      outcome: "ok",
      status: 200,
      endpoint: endpoint < 0 ? "" : `e${endpoint}`,
      url: "http://gateway",
      dueMicros: sent,
      sentMicros: sent,
      headersMicros: sent,
      firstTokenMicros: sent,
      lastTokenMicros: sent,
      endMicros: sent + length,
      promptTokens: 1,
      cachedTokens: 0,
      completionTokens: 1,
      gatewayHitTokens: 0,
      finishReason: "length",
      errorMessage: "",
      sequences: 1,
      wantedOutputTokens: 1,
    });
  return log;
}

/** The definition, moment by moment: largest number in flight over the mean, where there are enough to be even. */
function byMoments(spans: readonly Span[]): { mean: number | null; max: number | null } {
  const endpoints = [...new Set(spans.map(({ endpoint }) => endpoint))].filter((endpoint) => endpoint >= 0);
  if (endpoints.length < 2) return { mean: null, max: null };
  const ratios: number[] = [];
  for (let t = 0; t < 60; t++) {
    const counts = endpoints.map(
      (e) => spans.filter((s) => s.endpoint === e && s.sent <= t && t < s.sent + s.length).length,
    );
    const total = counts.reduce((a, b) => a + b, 0);
    if (total >= endpoints.length) ratios.push((Math.max(...counts) * endpoints.length) / total);
  }
  if (ratios.length === 0) return { mean: null, max: null };
  return { mean: ratios.reduce((a, b) => a + b, 0) / ratios.length, max: Math.max(...ratios) };
}

describe("imbalance in flight", () => {
  it("is what counting at every moment gives", () => {
    const span = fc.record({
      endpoint: fc.integer({ min: -1, max: 3 }),
      sent: fc.nat(30),
      length: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(fc.array(span, { minLength: 1, maxLength: 40 }), (spans) => {
        const found = imbalanceOf(logOf(spans).spans);
        const expected = byMoments(spans);
        assert.equal(found.mean === null, expected.mean === null);
        assert.ok(Math.abs((found.mean ?? 0) - (expected.mean ?? 0)) < 1e-9);
        assert.ok(Math.abs((found.max ?? 0) - (expected.max ?? 0)) < 1e-9);
      }),
    );
  });
});
