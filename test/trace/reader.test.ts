import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import fc from "fast-check";
import type { Input } from "#core/input/input.ts";
import { LineEncoder } from "./line-encoder.ts";
import { TraceReader, type TraceReport } from "#trace/reader.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { segmentName } from "#trace/segment-name.ts";
import { LINE_BYTES_MAX } from "#trace/segment-lines.ts";
import { HEADER, chainOf, inputs } from "./trace-samples.ts";

function folder(t: TestContext, files: Readonly<Record<string, string | Buffer>>): string {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-reader-"));
  t.after(() => rmSync(directory, { recursive: true }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  return directory;
}

async function read(path: string, strict = false): Promise<{ items: TraceItem[]; report: TraceReport }> {
  const reader = new TraceReader(path, { strict });
  const items: TraceItem[] = [];
  for await (const item of reader.items()) items.push(item);
  return { items, report: reader.report };
}

const inputsOf = (items: readonly TraceItem[]) => items.flatMap((item) => (item.kind === "record" ? [item.input] : []));
const runsOf = (items: readonly TraceItem[]) => items.filter((item) => item.kind === "run").length;

function arrival(id: string, at: number, symbols: readonly number[] = []): Input {
  const blocks = chainOf(symbols);
  const common = {
    model: "m",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: 9,
    promptTokensExact: true,
  };
  return {
    kind: "request-arrived",
    at,
    request: { id, ...common, outputTokensMax: undefined, sequences: 1, blocks, profile: "" },
  };
}

function finish(requestId: string, at: number): Input {
  const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
  return { kind: "request-finished", at, requestId, outcome: "ok", ...counts };
}

/** A segment's lines, each with its newline. */
function segment(records: readonly Input[], header: Partial<TraceHeader> = {}): string {
  const encoder = new LineEncoder({ blockTokens: 16 });
  const lines = [encoder.header({ ...HEADER, ...header }), ...records.map((input) => encoder.record(input, undefined))];
  return lines.map((line) => `${line}\n`).join("");
}

test("segments of one run are one stream; a missing one begins anew and is counted", async (t) => {
  const parts = [0, 1, 2, 3].map((i) => [arrival(`r${i}`, 10 * i, [1, 2, i]), finish(`r${i}`, 10 * i + 5)]);
  const name = (i: number) => segmentName(HEADER.startWallMicros, HEADER.run, i);
  const files = Object.fromEntries(parts.map((part, i) => [name(i), zstdCompressSync(segment(part, { segment: i }))]));
  const whole = await read(folder(t, { ...files, "notes.txt": "not a segment" }), true);
  assert.deepEqual(inputsOf(whole.items), parts.flat());
  assert.deepEqual([runsOf(whole.items), whole.report.segments, whole.report.segmentsMissing], [1, 4, 0]);
  const { [name(1)]: _, ...gapped } = files;
  const holed = await read(folder(t, gapped));
  assert.deepEqual(inputsOf(holed.items), [parts[0], parts[2], parts[3]].flat());
  assert.deepEqual([runsOf(holed.items), holed.report.segmentsMissing], [2, 1]);
});

test("runs that share a folder are kept apart, in order of their start", async (t) => {
  const first = segmentName(HEADER.startWallMicros, "ffffffff", 0);
  const second = segmentName(HEADER.startWallMicros + 1_000_000, "00000000", 0);
  const { items, report } = await read(
    folder(t, {
      [second]: segment([arrival("a", 1)], { run: "00000000" }),
      [first]: segment([arrival("a", 7)], { run: "ffffffff" }),
    }),
    true,
  );
  assert.deepEqual(
    items.map((item) => (item.kind === "run" ? item.header.run : item.kind === "record" ? item.input.at : 0)),
    ["ffffffff", 7, "00000000", 1],
  );
  assert.deepEqual([report.unordered, report.skipped], [0, {}]);
});

test("lines that cannot be used are left out, counted by reason and named by file and line", async (t) => {
  const [header = "", ...lines] = segment([
    arrival("a", 5, [1]),
    arrival("b", 6, [1, 2]),
    finish("a", 7),
    finish("b", 3),
  ]).split("\n");
  const mixed = [
    header,
    lines[0]!,
    "{not json",
    lines[0]!,
    `{"kind":"warp","at":1}`,
    lines[1]!,
    lines[2]!,
    `{"kind":"first-token","at":1}`,
    lines[3]!,
    "",
  ];
  const directory = folder(t, { "x.ndjson": mixed.join("\n") });
  const { items, report } = await read(directory);
  assert.deepEqual(
    inputsOf(items).map((input) => input.kind),
    ["request-arrived", "request-arrived", "request-finished", "request-finished"],
  );
  assert.deepEqual(report.skipped, { "not-json": 1, "duplicate-id": 1, "unknown-kind": 1, invalid: 1 });
  assert.equal(report.unordered, 1);
  assert.match(report.examples[0]!, /x\.ndjson:3: expected a line of JSON, got "\{not json"$/);
  assert.match(report.examples[1]!, /x\.ndjson:4: request\.id: expected one that is not in flight, got "a" again$/);
  await assert.rejects(read(directory, true), /x\.ndjson:3: expected a line of JSON/);
});

test("an id may come again once its request is over", async (t) => {
  const again = [arrival("a", 1), finish("a", 2), arrival("a", 3), finish("a", 4)];
  assert.deepEqual(inputsOf((await read(folder(t, { "x.ndjson": segment(again) }), true)).items), again);
});

test("a cut at any byte loses no line that was complete, plain or compressed", async (t) => {
  const records = Array.from({ length: 40 }, (_, i) => arrival(`r${i}`, i, [i % 3, i % 5, i]));
  const plain = Buffer.from(segment(records));
  const directory = folder(t, {});
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: plain.length - 1 }), async (cut) => {
      const path = join(directory, "cut.ndjson");
      writeFileSync(path, plain.subarray(0, cut));
      const complete = plain.subarray(0, cut).toString("latin1").split("\n").length - 1;
      const torn = plain[cut - 1] === 10 ? undefined : 1;
      if (complete === 0) {
        await assert.rejects(read(path), /expected a trace, got nothing/);
        return;
      }
      const { items, report } = await read(path);
      assert.deepEqual(inputsOf(items), records.slice(0, complete - 1));
      assert.equal(report.skipped.torn, torn);
    }),
    { numRuns: 60 },
  );
  const packed = zstdCompressSync(plain);
  const path = join(directory, "cut.ndjson.zst");
  for (const share of [0.2, 0.5, 0.9]) {
    writeFileSync(path, packed.subarray(0, Math.floor(packed.length * share)));
    const outcome = await read(path).catch((error: unknown) => String(error));
    if (typeof outcome === "string") assert.match(outcome, /expected a trace, got nothing/);
    else assert.equal(outcome.report.skipped.torn, 1);
  }
});

test("damage in compressed data is reported as such, and what was read before it counts", async (t) => {
  const records = Array.from({ length: 10_000 }, (_, i) => arrival(`request-${(i * 2_654_435_761) >>> 0}-${i}`, i));
  const packed = zstdCompressSync(segment(records), { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  packed.fill(0x55, Math.floor(packed.length * 0.8), Math.floor(packed.length * 0.8) + 64);
  assert.throws(() => zstdDecompressSync(packed));
  const { items, report } = await read(folder(t, { "x.ndjson.zst": packed }));
  assert.equal(report.skipped.corrupt, 1);
  const whole = inputsOf(items);
  assert.ok(whole.length > 1_000, `${whole.length} records`);
  assert.deepEqual(whole, records.slice(0, whole.length));
});

test("a line longer than any record is left out, and the next one is read", async (t) => {
  const good = arrival("a", 1);
  const [header, line] = segment([good]).split("\n");
  const long = Buffer.alloc(LINE_BYTES_MAX + 1_000_000, 120);
  const { items, report } = await read(
    folder(t, { "x.ndjson": Buffer.concat([Buffer.from(`${header}\n`), long, Buffer.from(`\n${line}\n`)]) }),
  );
  assert.deepEqual(inputsOf(items), [good]);
  assert.deepEqual(report.skipped, { "too-long": 1 });
});

test("a small compressed file that becomes large takes bounded memory: blank lines, one line, lines that are no record", async (t) => {
  const good = arrival("a", 1);
  const plain = Buffer.from(segment([good]));
  const grown: readonly (readonly [string, Buffer, Partial<TraceReport["skipped"]>])[] = [
    ["blank lines", Buffer.alloc(40_000_000, "\n"), { "not-json": 10_001, corrupt: 1 }],
    ["one line", Buffer.alloc(80_000_000, "x"), { "too-long": 1, "too-large": 1 }],
    ["short lines", Buffer.alloc(20_000_000, "[]\n"), { invalid: 1 }],
  ];
  for (const [name, rest, skipped] of grown) {
    for (const checked of [false, true]) {
      const head = checked ? Buffer.from(segment([], { checked: true })) : plain;
      const directory = folder(t, { "x.ndjson.zst": zstdCompressSync(Buffer.concat([head, rest])) });
      let least = 0;
      let most = 0;
      const reader = new TraceReader(directory);
      for await (const item of reader.items()) {
        if (item.kind === "run") least = process.memoryUsage.rss();
        most = Math.max(most, process.memoryUsage.rss());
        if ((reader.report.skipped.invalid ?? 0) > 1) break;
      }
      assert.ok(most - least < 250_000_000, `${name}: ${(most - least) / 1e6} MB`);
      for (const reason of Object.keys(skipped) as (keyof typeof skipped)[])
        assert.ok((reader.report.skipped[reason] ?? 0) >= (checked ? 1 : skipped[reason]!), `${name}: ${reason}`);
    }
  }
});

test("what is no trace is refused with the file, the line and what was expected", async (t) => {
  const directory = folder(t, {
    "foreign.ndjson": `{"timestamp":0,"input_length":3,"hash_ids":[1]}\n`,
    "azure.csv": "TIMESTAMP,ContextTokens\n",
    "future.ndjson": segment([]).replace('"version":1', '"version":2'),
    "empty.ndjson": "",
  });
  await assert.rejects(
    read(join(directory, "foreign.ndjson")),
    /foreign\.ndjson:1: expected a gnomon trace, which begins with a header/,
  );
  await assert.rejects(read(join(directory, "azure.csv")), /azure\.csv:1: expected a line of JSON/);
  await assert.rejects(read(join(directory, "future.ndjson")), /future\.ndjson:1: version: expected 1, got 2/);
  await assert.rejects(read(join(directory, "empty.ndjson")), /empty\.ndjson: expected a trace, got nothing/);
  await assert.rejects(
    read(join(directory, "nowhere")),
    /nowhere: expected a trace file or a folder of segments, got no such file/,
  );
  await assert.rejects(
    read(folder(t, { "a.txt": "" })),
    /expected trace segments \(\*\.ndjson\.zst\), got a folder without any/,
  );
});

test("memory does not grow with the trace: 60,000 records stream through", async (t) => {
  const some = fc
    .sample(inputs, { numRuns: 500, seed: 3 })
    .filter(({ kind }) => kind !== "request-arrived" && kind !== "request-escalated");
  const encoder = new LineEncoder({ blockTokens: 16 });
  const body = some.map((input) => `${encoder.record(input, undefined)}\n`).join("");
  const path = join(
    folder(t, {
      "x.ndjson.zst": zstdCompressSync(`${encoder.header(HEADER)}\n${body.repeat(Math.ceil(60_000 / some.length))}`),
    }),
    "x.ndjson.zst",
  );
  assert.ok(readFileSync(path).length > 1_000);
  const reader = new TraceReader(path);
  let most = 0;
  let count = 0;
  for await (const item of reader.items()) {
    if (item.kind === "record" && ++count % 5_000 === 0) most = Math.max(most, process.memoryUsage().heapUsed);
  }
  assert.equal(count, some.length * Math.ceil(60_000 / some.length));
  assert.ok(most < 300_000_000, `${most} bytes of heap`);
});
