import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { loadProfile } from "#config/profile-file.ts";
import { routerOf } from "#shadow/recorded/replay.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { replayCommand } from "#cli/replay.ts";
import { traceCommand } from "#cli/trace/trace.ts";
import { drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-trace-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
let names = 0;
const fresh = (name = "") => join(FOLDER, `${names++}${name}`);

/** The lines of a recorded trace. */
function recordedLines(seed: number): string[] {
  const profiles = { gnomon: loadProfile("gnomon").spec };
  const header: TraceHeader = { ...HEADER, router: { ...HEADER.router, profiles, defaultProfile: "gnomon" } };
  const encoder = new LineEncoder({ blockTokens: 16 });
  const records = drawTraffic(routerOf(header), seed, 250);
  return [encoder.header(header), ...records.map(({ input, decision }) => encoder.record(input, decision))];
}

function segment(bytes: string | Uint8Array): string {
  const path = fresh(".ndjson.zst");
  writeFileSync(path, bytes);
  return path;
}

const compressed = (lines: readonly string[]) => zstdCompressSync(`${lines.join("\n")}\n`);

const gnomon = (t: TestContext, ...argv: string[]) => inProcess(t, [traceCommand(), replayCommand()], argv);

test("info, slice and replay: a trace's beginning is a trace that replays", async (t) => {
  const trace = segment(compressed(recordedLines(1)));
  const all = JSON.parse((await gnomon(t, "trace", "info", trace, "--json")).out) as {
    requests: number;
    notes: string[];
    recorded: { records: [string, number][]; replayable: boolean };
  };
  const arrived = all.recorded.records.find(([kind]) => kind === "request-arrived")![1];
  const left = all.notes.reduce((sum, note) => sum + Number(/^\d+/.exec(note)?.[0] ?? 0), 0);
  assert.equal(all.requests + left, arrived, "every request is in the figures or in a note");
  assert.equal(all.recorded.replayable, true);
  const head = fresh();
  assert.equal((await gnomon(t, "trace", "slice", trace, "--requests", ":30", "-o", head)).code, 0);
  const replayed = await gnomon(t, "replay", head, "--allow-gaps");
  assert.match(replayed.out, /decisions compared, and these identical/);
  assert.equal(replayed.code, 0);
  const capped = fresh();
  assert.equal((await gnomon(t, "trace", "cap", head, "--max-turns", "2", "-o", capped)).code, 0);
  const { out } = await gnomon(t, "trace", "info", capped);
  assert.match(out, /made by +slice.*; cap --max-turns 2/);
  assert.match(out, /does not replay/);
});

test("replay of a trace of which a part is missing states so first, and fails unless that is allowed", async (t) => {
  const lines = recordedLines(3);
  const half = Math.floor(lines.length / 2);
  const lost = (from: number) => [...lines.slice(0, from), ...lines.slice(from + 5)];
  const broken = [...lines.slice(0, half), "not a record", ...lines.slice(half)];
  const gap = [...lines.slice(0, half), '{"kind":"gap","at":0,"dropped":3}', ...lines.slice(half)];
  const damaged = { lost: lost(half), broken, gap };
  const whole = await gnomon(t, "replay", segment(compressed(lines)));
  assert.match(whole.out, /^1 run, \d+ inputs, \d+ decisions compared: all identical\n/);
  assert.equal(whole.code, 0);
  for (const [name, kept] of Object.entries(damaged)) {
    const path = segment(compressed(kept));
    const { code, out, said } = await gnomon(t, "replay", path);
    assert.match(
      out,
      /^[^\n]* decisions compared, and these identical; the trace is damaged or incomplete: [^\n]*NOT/,
      name,
    );
    assert.equal(code, 1, name);
    assert.match(said, /not all of it was compared; --allow-gaps/, name);
    assert.equal((await gnomon(t, "replay", path, "--allow-gaps")).code, 0, name);
    const report = JSON.parse((await gnomon(t, "replay", path, "--json")).out) as { complete: boolean };
    assert.equal(report.complete, false, name);
  }
  const nothing = await gnomon(t, "replay", segment(compressed([lines[0]!, "not a record", ...lines.slice(1)])));
  assert.match(nothing.out, /^[^\n]* 0 decisions compared, the trace is damaged or incomplete: \d+ NOT compared/);
  assert.equal((await gnomon(t, "replay", segment(compressed(lost(half))), "--strict")).code, 1);
});

test("a slice of the whole keeps every record as it was written, decisions with fewer candidates than endpoints included", async (t) => {
  const lines = recordedLines(2);
  const whole = fresh();
  await gnomon(t, "trace", "slice", segment(compressed(lines)), "--from", "0", "-o", whole);
  const [name] = readdirSync(whole);
  const text = zstdDecompressSync(readFileSync(join(whole, name!))).toString();
  const records = text.trim().split("\n").slice(1);
  assert.match(records.pop() ?? "", /^\{"kind":"check","crc32":\d+,"last":true\}$/);
  assert.deepEqual(records, lines.slice(1));
});

test("scale, merge, export and import go from file to file", async (t) => {
  const trace = segment(compressed(recordedLines(3)));
  const scaled = fresh(".jsonl");
  assert.equal((await gnomon(t, "trace", "scale", trace, "--rate", "2", "-o", scaled)).code, 0);
  const merged = fresh(".jsonl.zst");
  assert.equal((await gnomon(t, "trace", "merge", trace, scaled, "-o", merged)).code, 0);
  const count = async (path: string) =>
    (JSON.parse((await gnomon(t, "trace", "info", path, "--json")).out) as { requests: number }).requests;
  assert.equal(await count(merged), 2 * (await count(scaled)));
  const csv = fresh(".csv");
  assert.equal((await gnomon(t, "trace", "export", trace, "-f", "blis", "-o", csv)).code, 0);
  const imported = fresh();
  const { code, said } = await gnomon(t, "trace", "import", csv, "-o", imported, "--endpoints", "3");
  assert.equal(code, 0, said);
  assert.equal(await count(imported), await count(csv));
});

test("info states the engine of the last run that has a request", async (t) => {
  const folder = fresh();
  mkdirSync(folder);
  const header = { ...(JSON.parse(recordedLines(6)[0]!) as object), engine: { sequencesMax: 37 } };
  writeFileSync(join(folder, "1.ndjson"), `${[JSON.stringify(header), ...recordedLines(6).slice(1)].join("\n")}\n`);
  const later = { ...header, run: "bbbbbbbb", engine: { sequencesMax: 99 } };
  writeFileSync(join(folder, "2.ndjson"), `${JSON.stringify(later)}\n`);
  const { out, said } = await gnomon(t, "trace", "info", folder);
  assert.match(out, /^engine +sequencesMax 37$/m, said);
  assert.match(out, /^recording +2 runs, 2 segments/m);
});

test("traces that are torn, damaged, empty, foreign or repeat an id: a clear error, or counted by reason", async (t) => {
  const lines = recordedLines(4);
  const cut = segment(lines.join("\n").slice(0, -40));
  const torn = await gnomon(t, "trace", "info", cut);
  assert.equal(torn.code, 0, torn.said);
  assert.match(torn.out, /1 lines left out: torn/);
  const strict = await gnomon(t, "trace", "info", "--strict", cut);
  assert.equal(strict.code, 1);

  const empty = await gnomon(t, "trace", "info", segment(""));
  assert.match(empty.said, /expected a trace, got nothing that could be read/);
  const foreign = [lines[0]!.replace('"version":1', '"version":2'), ...lines.slice(1)];
  const other = await gnomon(t, "trace", "info", segment(compressed(foreign)));
  assert.match(other.said, /version: expected 1, got 2/);
  assert.equal(other.code, 1);

  const arrival = lines.findIndex((line) => line.startsWith('{"kind":"request-arrived"'));
  const twice = await gnomon(t, "trace", "info", segment(compressed(lines.toSpliced(arrival, 0, lines[arrival]!))));
  assert.match(twice.out, /1 lines left out: duplicate-id/);
  const swapped = lines.toSpliced(-1, 1).toSpliced(1, 0, lines.at(-1)!);
  assert.match(
    (await gnomon(t, "trace", "info", segment(compressed(swapped)))).out,
    /lie before the time of the one above/,
  );
});

test("what is asked wrongly is reported with what is accepted, before anything is written", async (t) => {
  const trace = segment(compressed(recordedLines(5)));
  const taken = segment("");
  for (const [argv, words] of [
    [["trace", "info", "nowhere"], /which is not there/],
    [["trace", "slice", trace, "-o", fresh()], /expected --from, --to or --requests/],
    [["trace", "slice", trace, "--from", "soon", "-o", fresh()], /expected a time like 90s/],
    [["trace", "slice", trace, "--requests", "9:3", "-o", fresh()], /expected a range like/],
    [["trace", "cap", trace, "--max-turns", "0", "-o", fresh()], /1 or more/],
    [["trace", "scale", trace, "--rate", "2", "-o", fresh(".txt")], /ends with .jsonl/],
    [["trace", "scale", trace, "--rate", "-2", "-o", fresh(".jsonl")], /above 0/],
    [["trace", "cap", trace, "--max-turns", "1", "-o", taken], /expected a name that is free/],
    [["trace", "export", trace, "-f", "parquet", "-o", fresh()], /Allowed choices are/],
    [["trace", "import", trace, "-o", fresh()], /expected a foreign workload/],
  ] as const) {
    const { code, said } = await gnomon(t, ...argv);
    assert.match(said, words, argv.join(" "));
    assert.equal(code, 2, argv.join(" "));
  }
});

test("where a command fails, or nothing is left to write, nothing is there afterwards", async (t) => {
  const lines = recordedLines(6);
  const trace = segment(compressed(lines));
  const [torn, none] = [segment("not zstd"), segment(compressed(lines.slice(0, 1)))];
  for (const [argv, output, words] of [
    [["scale", torn, "--rate", "2"], fresh(".jsonl"), /nothing that could be read/],
    [["export", torn, "-f", "mooncake"], fresh(".jsonl.zst"), /nothing that could be read/],
    [["cap", torn, "--max-turns", "1"], fresh(), /nothing that could be read/],
    [["slice", "--strict", segment(lines.join("\n").slice(0, -40)), "--from", "0"], fresh(), /complete line/],
    [["scale", none, "--rate", "2"], fresh(".jsonl"), /was not written: no request is left/],
    [["cap", none, "--max-turns", "1"], fresh(), /was not written: no request is left/],
    [["export", none, "-f", "blis"], fresh(".csv"), /was not written: no request is left/],
    [["slice", trace, "--from", "9h"], fresh(), /was not written: no request is left/],
  ] as const) {
    const { code, said } = await gnomon(t, "trace", ...argv, "-o", output);
    assert.equal(code, 1, argv.join(" "));
    assert.match(said, words, argv.join(" "));
    assert.equal(existsSync(output), false, argv.join(" "));
  }
  const sliced = await gnomon(t, "trace", "slice", trace, "--from", "9h", "-o", fresh());
  assert.match(sliced.out, /\d+ requests left out: outside the range/);
});
