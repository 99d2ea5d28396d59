import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { SSE_LINE_BYTES_MAX, SseReader } from "#drive/sse-reader.ts";

function payloads(chunks: readonly Buffer[]): { found: string[]; pendingBytes: number } {
  const found: string[] = [];
  const reader = new SseReader((bytes, start, end) => found.push(bytes.toString("utf8", start, end)));
  for (const chunk of chunks) assert.ok(reader.push(chunk));
  return { found, pendingBytes: reader.pendingBytes };
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end));
}

describe("a server-sent event stream", () => {
  it("has the same payloads however it is cut", () => {
    const texts = fc.array(
      fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[\r\n]/g, "")),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(texts, fc.constantFrom("\n", "\r\n", "\r"), fc.array(fc.nat()), (sent, end, places) => {
        const lines = sent.flatMap((text) => [": a comment", "event: x", `data: ${text}`, ""]);
        const bytes = Buffer.from(lines.map((line) => line + end).join(""));
        const expected = sent.map((text) => Buffer.from(text).toString());
        assert.deepEqual(payloads(cut(bytes, places)), { found: expected, pendingBytes: 0 });
      }),
    );
  });

  it("may have no space after the colon, and keeps a line that did not end", () => {
    assert.deepEqual(payloads([Buffer.from("data:{}\n\ndata: [DO")]), { found: ["{}"], pendingBytes: 9 });
  });

  it("is given up at a line that is too long", () => {
    const reader = new SseReader(() => assert.fail("no line ended"));
    const chunk = Buffer.alloc(SSE_LINE_BYTES_MAX / 2, "x");
    assert.ok(reader.push(chunk));
    assert.ok(reader.push(chunk));
    assert.ok(!reader.push(chunk));
  });
});
