import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Dialect } from "#live/http/route.ts";
import { type SseKind, SseScanner } from "#live/answer/sse-scanner.ts";
import { capture, captureNames } from "../gateway/captures.ts";

interface Scan {
  readonly kinds: readonly SseKind[];
  readonly events: readonly string[];
  readonly rest: string;
}

function scan(pieces: readonly Buffer[], dialect: Dialect, eventBytesMax = 1 << 20): Scan {
  const scanner = new SseScanner(dialect, eventBytesMax);
  const kinds: SseKind[] = [];
  const events: string[] = [];
  for (const piece of pieces) {
    scanner.push(piece);
    while (scanner.next()) {
      kinds.push(scanner.kind);
      events.push(scanner.bytes.toString("latin1", scanner.start, scanner.end));
    }
  }
  return { kinds, events, rest: scanner.rest.toString("latin1") };
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length));
}

/** The same lines as the specification reads them, each ended by a line feed. */
function inFeeds(text: string): string {
  return text.replaceAll(/\r\n|\r/g, "\n");
}

/** Empty lines between events may end one that has no data. */
function withoutComments(kinds: readonly SseKind[]): readonly SseKind[] {
  return kinds.filter((kind) => kind !== "comment");
}

const streams = captureNames()
  .map(capture)
  .filter(({ contentType }) => contentType === "text/event-stream");

function dialectOf(path: string): Dialect {
  if (path.startsWith("/v1/messages")) return "messages";
  return path.startsWith("/v1/chat") ? "chat" : "completions";
}

describe("the scanner of events", () => {
  test("gives the same for every split of what vLLM sent", () => {
    assert.ok(streams.length >= 15);
    for (const { name, body, path } of streams) {
      const dialect = dialectOf(path);
      const whole = scan([body], dialect);
      assert.equal(whole.events.join("") + whole.rest, body.toString("latin1"), `${name}: no byte is lost`);
      assert.deepEqual(
        scan(
          [...body].map((byte) => Buffer.from([byte])),
          dialect,
        ),
        whole,
        `${name} byte by byte`,
      );
      fc.assert(
        fc.property(fc.array(fc.nat(), { maxLength: 40 }), (cuts) => {
          assert.deepEqual(scan(split(body, cuts), dialect), whole);
        }),
        { numRuns: 20 },
      );
    }
  });

  test("gives the same for every split of anything, with any line ends", () => {
    const line = fc.constantFrom(
      'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}',
      'data:{"choices":[{"text":"é✓","finish_reason" : "abort"}]}',
      'data: {"error": {"message": "m"}}',
      'data: {"choices":[],"usage":{"prompt_tokens":1}}',
      "data: [DONE]",
      "data: no json",
      "event: x",
      ": ping",
      "",
    );
    const text = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\n\n", "\r\n\r\n")), { maxLength: 12 });
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 12 }), fc.constantFrom(20, 1000), (lines, cuts, limit) => {
        const bytes = Buffer.from(lines.flat().join(""));
        const parts = scan(split(bytes, cuts), "chat", limit);
        assert.equal(parts.events.join("") + parts.rest, bytes.toString("latin1"));
        if (limit === 1000) assert.deepEqual(parts, scan([bytes], "chat", limit));
      }),
      { numRuns: 500 },
    );
  });

  const LINE = fc.constantFrom(
    'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}',
    'data: {"error": {"message": "m"}}',
    "data: [DONE]",
    "data: no json",
    "event: x",
    ": ping",
  );

  test("lines may end with a carriage return alone, with both, or with either in turn, whatever the split", () => {
    const mixed = fc.array(fc.tuple(LINE, fc.constantFrom("\r", "\n", "\r\n"), fc.boolean()), { maxLength: 12 });
    fc.assert(
      fc.property(
        mixed,
        fc.constantFrom("", "\r", "\n", "\r\n"),
        fc.array(fc.nat(), { maxLength: 12 }),
        (lines, last, cuts) => {
          const text = lines.map(([line, end, blank]) => line + end + (blank ? end : "")).join("") + last;
          const parts = scan(split(Buffer.from(text), cuts), "chat");
          assert.equal(parts.events.join("") + parts.rest, text, "no byte is lost");
          const { kinds } = scan([Buffer.from(`${inFeeds(text)}\n\n`)], "chat");
          const ended = scan([...split(Buffer.from(text), cuts), Buffer.from("\n\n")], "chat");
          assert.deepEqual(withoutComments(ended.kinds), withoutComments(kinds));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("an event is whole with the carriage return of its empty line, before the next one comes", () => {
    const event = 'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}';
    for (const [pieces, kinds] of [
      [[`${event}\r\r`], ["token"]],
      [[`event: x\r${event}\rid: 1\r\r`], ["token"]],
      [[`${event}\r`, "\r"], ["token"]],
      [[`${event}\r`, "\n"], []],
      [[`${event}\r`, "\n\r", "\n"], ["token"]],
      [[`${event}\r\n\r`], []],
      [
        [`${event}\r\r`, "\n", "data: [DONE]\r\r"],
        ["token", "done"],
      ],
      [[`${event}\n\r`, "\n"], ["token"]],
    ] as const) {
      const found = scan(
        pieces.map((piece) => Buffer.from(piece)),
        "chat",
      );
      assert.deepEqual(found.kinds, kinds, JSON.stringify(pieces));
    }
  });

  const cases: [kind: SseKind, event: string, dialect?: Dialect][] = [
    ["meta", '{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{"reasoning":"a"},"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{"reasoning_content":"a"},"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]},"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{"content":""},"token_ids":[5],"finish_reason":null}]}'],
    ["token", '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'],
    ["token", '{"choices":[{"index":0,"text":"a","finish_reason":null}]}'],
    ["meta", '{"choices":[{"index":0,"text":"","finish_reason":null}]}'],
    ["abort", '{"choices":[{"index":0,"text":"","finish_reason":"abort"}]}'],
    ["abort", '{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason" : "abort"}]}'],
    ["token", '{"choices":[{"index":0,"text":"\\"finish_reason\\":\\"abort\\"","finish_reason":null}]}'],
    ["usage", '{"choices":[],"usage":{"prompt_tokens":1}}'],
    ["error", '{"error":{"message":"m"}}'],
    ["error", '{"error": {"message": "m"}}'],
    ["error", '{"object":"error","message":"m","code":500}'],
    ["done", "[DONE]"],
    ["garbage", "hello"],
    ["token", '{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}', "messages"],
    ["done", '{"type":"message_stop"}', "messages"],
    ["error", '{"type":"error","error":{"type":"api_error"}}', "messages"],
    ["end", '{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}', "messages"],
    ["abort", '{"type":"message_delta","delta":{"stop_reason":"abort"}}', "messages"],
    ["token", '{"type":"response.output_text.delta","delta":"x"}', "responses"],
    ["done", '{"type":"response.completed","response":{}}', "responses"],
    ["done", '{"type":"response.incomplete","response":{}}', "responses"],
    ["error", '{"type":"response.failed","response":{}}', "responses"],
  ];
  for (const [kind, data, dialect = "chat"] of cases) {
    test(`${dialect} ${data} is ${kind}`, () => {
      assert.deepEqual(scan([Buffer.from(`data: ${data}\n\n`)], dialect).kinds, [kind]);
    });
  }

  test("reads the same by a few bytes, once there was a token", () => {
    const first = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';
    for (const [kind, data, dialect] of cases) {
      if (dialect !== undefined) continue;
      const later = scan([Buffer.from(`${first}data: ${data}\n\n`)], "chat").kinds[1];
      // A chunk with a choice counts as a token then, which is what an engine's own count does.
      assert.equal(later, kind === "meta" ? "token" : kind, data);
    }
  });

  test("comments and other fields are no data", () => {
    const kinds = scan([Buffer.from(": ping\n\nid: 1\nevent: x\ndata: [DONE]\n\n\n")], "chat").kinds;
    assert.deepEqual(kinds, ["comment", "done"]);
  });

  test("an event above the limit passes unread, and what follows it is read", () => {
    const long = `data: {"choices":[{"text":"${"x".repeat(5_000)}"}]}\n\n`;
    const bytes = Buffer.from(`${long}data: [DONE]\n\n`);
    for (const size of [1, 7, 100, 1_000]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      const { kinds, events } = scan(pieces, "chat", 500);
      assert.equal(events.join(""), bytes.toString("latin1"));
      assert.equal(kinds.filter((kind) => kind === "token").length, 1);
      assert.equal(kinds.at(-1), "done");
    }
  });
});

test("a long event in small chunks is not copied with each of them, and what was handed out never changes", (t) => {
  const allocated = t.mock.method(Buffer, "allocUnsafeSlow");
  const scanner = new SseScanner("chat", 1 << 20);
  const event = Buffer.from(`data: {"choices":[],"long":"${"x".repeat(400_000)}"}\n\n`);
  const handedOut: [Buffer, string][] = [];
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < event.length; at += 100) {
      scanner.push(event.subarray(at, at + 100));
      while (scanner.next()) {
        const piece = scanner.bytes.subarray(scanner.start, scanner.end);
        handedOut.push([piece, piece.toString()]);
      }
    }
  }
  const bytes = allocated.mock.calls.reduce((sum, { arguments: [size] }) => sum + size, 0);
  assert.ok(bytes < 10 * 3 * event.length, `${bytes} bytes`);
  assert.equal(handedOut.length, 3);
  for (const [piece, text] of handedOut) {
    assert.equal(piece.toString(), text);
    assert.equal(text, event.toString());
  }
});

test("of many events in one chunk none is searched beyond its end", (t) => {
  const event = Buffer.from('data: {"choices":[],"k":1}\n\n');
  const scanner = new SseScanner("chat", 1 << 20);
  scanner.push(Buffer.from('data: {"choices":[{"delta":{"content":"x"},"finish_reason":null}]}\n\n'));
  assert.ok(scanner.next());
  const searched = t.mock.method(Buffer.prototype as Buffer, "indexOf");
  scanner.push(Buffer.concat(Array.from({ length: 2_000 }, () => event)));
  while (scanner.next()) assert.equal(scanner.kind, "meta");
  const calls = searched.mock.calls as readonly unknown[] as { this: Buffer; arguments: [Buffer | number, number] }[];
  const looked = calls
    .filter(({ arguments: [value] }) => typeof value !== "number")
    .map(({ this: bytes, arguments: [, from] }) => bytes.length - from);
  assert.ok(looked.length >= 2_000);
  assert.ok(Math.max(...looked) < 8_192, `${Math.max(...looked)} bytes`);
});

test("lines that are no object are garbage without an exception for each", (t) => {
  const parse = t.mock.method(JSON, "parse");
  for (const line of ["{", '{"choices":[{"index":0', "x", '"}', "}{"]) {
    const scanner = new SseScanner("chat", 1_048_576);
    scanner.push(Buffer.from(`data: ${line}\n\n`.repeat(1_000)));
    let events = 0;
    for (; scanner.next(); events++) assert.equal(scanner.kind, "garbage");
    assert.equal(events, 1_000);
  }
  assert.equal(parse.mock.callCount(), 0);
});

test("an object is read whatever blanks are behind it", () => {
  for (const blanks of ["", " ", " \t ", "\r"]) {
    const scanner = new SseScanner("chat", 1_048_576);
    scanner.push(Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"w"}}]}${blanks}\n\n`));
    assert.ok(scanner.next());
    assert.equal(scanner.kind, "token");
  }
});
