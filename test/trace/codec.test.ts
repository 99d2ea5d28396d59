import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import type { Breakdown, Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "./line-encoder.ts";
import { TraceFormatError } from "#trace/codec/format-error.ts";
import { breakdownDigest, type TraceRecord } from "#trace/codec/record.ts";
import { HEADER, chainOf, decisions, inputs, peerNews } from "./trace-samples.ts";

/** Candidates that a decision is written with. */
const CANDIDATES_MAX = 6;

function roundTrip(records: readonly (readonly [Input, Decision | undefined])[], blocksMax?: number): TraceRecord[] {
  const encoder = new LineEncoder({
    blockTokens: 16,
    candidatesMax: CANDIDATES_MAX,
    ...(blocksMax === undefined ? {} : { blocksMax }),
  });
  const decoder = new TraceDecoder(encoder.header(HEADER));
  return records.map(([input, decision]) => decoder.decode(encoder.record(input, decision)) as TraceRecord);
}

/** The decision as it must come back: complete where all candidates fit, and named after its input. */
function asWritten(input: Input, decision: Decision): unknown {
  const requestId = input.kind === "request-arrived" ? input.request.id : (input as { requestId: string }).requestId;
  const prefill = decision.kind === "routed" ? decision.prefill : undefined;
  const stage = prefill && { prefill: { ...prefill, breakdown: whole(prefill.breakdown) } };
  return { ...decision, at: input.at, requestId, breakdown: whole(decision.breakdown), ...stage };
}

function whole(breakdown: Breakdown): object {
  return { ...breakdown, endpointCount: breakdown.candidates.length, digest: breakdownDigest(breakdown) };
}

test("every input and decision reads back as it was, to the last bit", () => {
  const record = fc.tuple(inputs, decisions(fc.nat(CANDIDATES_MAX)));
  fc.assert(
    fc.property(fc.array(record, { maxLength: 30 }), fc.constantFrom(undefined, 20, 60), (records, blocksMax) => {
      const pairs = records.map(([input, decision]): [Input, Decision | undefined] => {
        const decides = input.kind === "request-arrived" || input.kind === "request-retried";
        return [input, decides ? decision : undefined];
      });
      const read = roundTrip(pairs, blocksMax);
      pairs.forEach(([input, decision], i) => {
        assert.deepEqual(read[i]!.input, input);
        assert.deepEqual(read[i]!.decision, decision === undefined ? undefined : asWritten(input, decision));
      });
    }),
    { numRuns: 300 },
  );
});

test("traces of every format that landed read back, and lose no field when they are written again", () => {
  const folder = join(import.meta.dirname, "../golden/gnomon-traces");
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".jsonl"))) {
    const [head, ...lines] = readFileSync(join(folder, file), "utf8").trimEnd().split("\n");
    const decoder = new TraceDecoder(head!);
    const encoder = new LineEncoder({ blockTokens: decoder.header.hash.blockTokens, candidatesMax: CANDIDATES_MAX });
    assert.deepEqual(JSON.parse(encoder.header(decoder.header)), JSON.parse(head!));
    const kinds = new Set<string>();
    for (const line of lines) {
      const read = decoder.decode(line);
      kinds.add(read.kind === "gap" ? "gap" : read.input.kind);
      const again =
        read.kind === "gap" ? encoder.gap(read.at, read.dropped) : encoder.record(read.input, read.decision);
      assert.deepEqual(JSON.parse(again), JSON.parse(line));
    }
    assert.ok(kinds.size > 40, file);
  }
});

test("all that a gateway may report to others reads back as it was", () => {
  fc.assert(
    fc.property(fc.array(peerNews, { minLength: 20, maxLength: 40 }), (news) => {
      const input = { kind: "peer-reported", at: 5, peer: "other", epoch: 1, sequence: 2, news } as const;
      assert.deepEqual(roundTrip([[input, undefined]])[0]!.input, input);
    }),
  );
});

test("the header reads back as it was", () => {
  assert.deepEqual(new TraceDecoder(new LineEncoder({ blockTokens: 16 }).header(HEADER)).header, HEADER);
});

test("a header has the engines' settings where they are known, and what they cannot be is refused by path", () => {
  const engine = { blockTokens: 32, kvBlocks: 640, longPrefillTokens: 0, asyncScheduling: false };
  const line = new LineEncoder({ blockTokens: 16 }).header({ ...HEADER, engine });
  assert.deepEqual(new TraceDecoder(line).header.engine, engine);
  const refuse = (from: string, to: string, message: RegExp) =>
    assert.throws(() => new TraceDecoder(line.replace(from, to)), message);
  refuse('"kvBlocks":640', '"kvBlocks":1', /engine\.kvBlocks: expected an integer of at least 2, got 1/);
  refuse('"asyncScheduling":false', '"asyncScheduling":0', /engine\.asyncScheduling: expected true or false, got 0/);
  refuse(
    '"blockTokens":16,"stale',
    '"blockTokens":0.5,"stale',
    /router\.blockTokens: expected an integer of at least 1/,
  );
  refuse(
    '"blockTokens":16,"stale',
    '"blockTokens":65537,"stale',
    /router\.blockTokens: expected an integer of at most/,
  );
  const later = line.replace('"kvBlocks":640', '"kvBlocks":640,"somethingNew":1');
  assert.deepEqual(new TraceDecoder(later).header.engine, engine, "settings of later writers are passed over");
});

test("a large fleet is written with the chosen candidate and the best others, and a digest of all", () => {
  fc.assert(
    fc.property(inputs, decisions(fc.integer({ min: CANDIDATES_MAX + 1, max: 40 })), (input, decision) => {
      if (input.kind !== "request-arrived") return;
      const [read] = roundTrip([[input, decision]]);
      const breakdown = read!.decision!.breakdown;
      assert.equal(breakdown.candidates.length, CANDIDATES_MAX);
      assert.equal(breakdown.endpointCount, decision.breakdown.candidates.length);
      assert.equal(breakdown.digest, breakdownDigest(decision.breakdown));
      const kept = new Set(breakdown.candidates.map((row) => row.endpoint));
      if (decision.kind === "routed") assert.ok(kept.has(decision.endpoint));
      const keptTotals = [...breakdown.totals].filter((total) => !Number.isNaN(total));
      const all = decision.breakdown;
      all.candidates.forEach((row, i) => {
        const total = all.totals[i]!;
        if (kept.has(row.endpoint) || Number.isNaN(total)) return;
        assert.ok(keptTotals.filter((one) => one >= total).length >= CANDIDATES_MAX - 1);
      });
    }),
  );
});

test("a single changed bit in any value changes the digest", () => {
  fc.assert(
    fc.property(decisions(fc.integer({ min: 1, max: 12 })), fc.nat(), fc.nat(63), ({ breakdown }, index, bit) => {
      const totals = breakdown.totals.slice();
      const words = new Int32Array(totals.buffer);
      words[2 * (index % totals.length) + (bit >> 5)]! ^= 1 << (bit & 31);
      assert.notEqual(breakdownDigest({ totals, values: breakdown.values }), breakdownDigest(breakdown));
    }),
  );
});

test("a conversation costs its new blocks only", () => {
  const encoder = new LineEncoder({ blockTokens: 16 });
  encoder.header(HEADER);
  const symbols: number[] = [];
  let hashesChars = 0;
  for (let turn = 0; turn < 50; turn++) {
    for (let i = 0; i < 20; i++) symbols.push(turn * 20 + i);
    const line = encoder.record(arrival(`r${turn}`, symbols), undefined);
    hashesChars += /"lanes":"([^"]*)"/.exec(line)![1]!.length;
  }
  assert.ok(
    hashesChars <= Math.ceil((symbols.length * 8 * 4) / 3) + 50 * 4,
    `${hashesChars} characters for ${symbols.length} blocks`,
  );
  assert.equal(encoder.blocksRepeated, 0);
});

test("a chain longer than the table, and tables that start afresh, read back whole", () => {
  const long = Array.from({ length: 100 }, (_, i) => i);
  const records = [long, long.slice(0, 30), long.slice(0, 40), long, [9, 9], long.slice(0, 41)].map((symbols, i) =>
    arrival(`r${i}`, symbols),
  );
  const read = roundTrip(
    records.map((input) => [input, undefined]),
    50,
  );
  read.forEach((record, i) => assert.deepEqual(record.input, records[i]));
});

test("a version that is not known, a foreign file and each broken field are refused with path and reason", () => {
  const header = new LineEncoder({ blockTokens: 16 }).header(HEADER);
  const refuse = (line: string, message: RegExp) => assert.throws(() => new TraceDecoder(line), message);
  refuse(header.replace('"version":1', '"version":2'), /version: expected 1, got 2/);
  refuse(`{"timestamp":0,"hash_ids":[1]}`, /expected a gnomon trace/);
  refuse("timestamp,prompt", /expected a line of JSON/);
  refuse(header.replace('"seed":7', '"seed":"7"'), /router\.seed: expected a number, got "7"/);
  const broken: readonly [string, string, RegExp][] = [
    [`{"kind":"first-token","at":-1,"requestId":"a"}`, "invalid", /at: expected an integer of at least 0, got -1/],
    [`{"kind":"first-token","at":1}`, "invalid", /requestId: expected a string, got nothing/],
    [
      `{"kind":"request-finished","at":1,"requestId":"a","outcome":"fine"}`,
      "invalid",
      /outcome: expected one of ok, failed/,
    ],
    [`{"kind":"warp","at":1}`, "unknown-kind", /kind: expected a kind of version 1, got "warp"/],
    [
      `{"kind":"load-observed","at":1,"endpoint":"e","load":{"running":"3"}}`,
      "invalid",
      /load\.running: expected a number, got "3"/,
    ],
    [
      `{"kind":"request-arrived","at":1,"request":{"id":"a","model":"m","promptTokens":1},"chain":{"parent":3,"first":4,"lanes":""}}`,
      "unknown-block",
      /block 3/,
    ],
    [
      `{"kind":"request-arrived","at":1,"request":{"id":"a","model":"m","promptTokens":1},"chain":{"first":0,"lanes":"AAA"}}`,
      "invalid",
      /chain\.lanes: expected base64/,
    ],
    [
      `{"kind":"blocks-stored","at":1,"endpoint":"e","lanes":"AAAA"}`,
      "invalid",
      /lanes: expected base64 of 8 bytes a block/,
    ],
    [`{"kind":"first-to`, "not-json", /expected a line of JSON/],
    [`[1]`, "invalid", /expected an object/],
  ];
  for (const [line, reason, message] of broken) {
    const decoder = new TraceDecoder(header);
    assert.throws(
      () => decoder.decode(line),
      (error) => error instanceof TraceFormatError && error.reason === reason && message.test(error.message),
      line,
    );
  }
});

test("a reference to a line that was lost is distinguished from one that was read", () => {
  const encoder = new LineEncoder({ blockTokens: 16 });
  const decoder = new TraceDecoder(encoder.header(HEADER));
  const lost = encoder.record(arrival("lost", [1, 2, 3]), undefined);
  const orphan = encoder.record(arrival("orphan", [1, 2, 3, 4]), undefined);
  const free = arrival("free", [7, 8]);
  const freeLine = encoder.record(free, undefined);
  assert.notEqual(lost, "");
  assert.throws(() => decoder.decode(orphan), /expected blocks that were read before/);
  assert.deepEqual((decoder.decode(freeLine) as TraceRecord).input, free);
});

function arrival(id: string, symbols: readonly number[]): Input {
  const request = {
    id,
    model: "m",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: symbols.length * 16 + 3,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: chainOf(symbols),
    profile: "",
  };
  return { kind: "request-arrived", at: 5, request };
}
