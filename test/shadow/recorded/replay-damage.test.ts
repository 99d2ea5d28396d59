import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import fc from "fast-check";
import { loadProfile } from "#config/profile-file.ts";
import { randomFor } from "#core/base/random.ts";
import { RecordQueue } from "#live/recorder/record-queue.ts";
import { type RunHeader, RunLines } from "#live/recorder/run-lines.ts";
import { Replay, type ReplayResult, routerOf } from "#shadow/recorded/replay.ts";
import { TraceReader, type TraceReport } from "#trace/reader.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { segmentName } from "#trace/segment-name.ts";
import { SegmentWriter } from "#trace/segment-writer.ts";
import { drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const APPENDS_PER_SEGMENT = 3;
const DECISIONS_MIN = 40;
/** How much traffic a trace has, and how much of it is written at once. */
interface Size {
  readonly steps: number;
  readonly recordsPerAppend: number;
}
/** Four segments or five: each damage is drawn often, and may hit any of them. */
const SMALL: Size = { steps: 180, recordsPerAppend: 20 };
const LARGE: Size = { steps: 450, recordsPerAppend: 25 };
/** Places that damage is drawn from. */
const DRAWS = 2 ** 30;

type Files = ReadonlyMap<string, Buffer>;

/** A run as the recorder writes it: several segments of several appends, and the end. */
async function recordedFiles(
  directory: string,
  run: string,
  seed: number,
  { steps, recordsPerAppend }: Size,
  isChecked = true,
): Promise<Files> {
  const { spec } = loadProfile("gnomon");
  const router = { ...HEADER.router, profiles: { gnomon: spec }, defaultProfile: "gnomon", staleAfterMicros: 50_000 };
  const about: RunHeader = { ...HEADER, id: run, startWallMicros: HEADER.startWallMicros + seed * 1e6, router };
  const header: TraceHeader = { ...HEADER, router };
  const lines = new RunLines({ run: about, candidatesMax: 4, checked: isChecked });
  const queue = new RecordQueue(100_000_000);
  const log = drawTraffic(routerOf(header), seed, steps);
  const options = { compressionLevel: 3, syncEveryAppend: false };
  let writer: SegmentWriter | undefined;
  for (let i = 0, appends = 0; i < log.length; i += recordsPerAppend, appends++) {
    if (appends % APPENDS_PER_SEGMENT === 0) lines.beginSegment();
    for (const { input, decision } of log.slice(i, i + recordsPerAppend))
      lines.write({ input, decision, droppedBefore: 0 }, queue);
    const { lines: batch, segment } = lines.take(i + recordsPerAppend >= log.length)!;
    if (segment !== undefined) {
      await writer?.close(false);
      writer = await SegmentWriter.create(join(directory, segmentName(about.startWallMicros, run, segment)), options);
    }
    await writer!.append(batch);
  }
  await writer?.close(false);
  return read(directory);
}

const read = (directory: string): Files =>
  new Map(
    readdirSync(directory)
      .sort()
      .map((name) => [name, readFileSync(join(directory, name))]),
  );

/** The same segments without compression. */
const plain = (files: Files): Files =>
  new Map([...files].map(([name, bytes]) => [name.replace(/\.zst$/, ""), zstdDecompressSync(bytes)]));

interface Replayed {
  readonly result: ReplayResult;
  readonly report: TraceReport;
  /** Every input that was given out, as text. */
  readonly inputs: string;
}

async function replayed(directory: string, strict: boolean): Promise<Replayed | Error> {
  const reader = new TraceReader(directory, { strict });
  const replay = new Replay();
  const inputs: unknown[] = [];
  try {
    for await (const item of reader.items()) {
      replay.take(item);
      if (item.kind === "record") inputs.push(item);
    }
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
  return { result: replay.result(), report: reader.report, inputs: JSON.stringify(inputs) };
}

/** Whether anything was said that is not "all identical". */
function isReported({ result, report }: Replayed): boolean {
  const { unended, segmentsMissing, dropped, skipped } = report;
  return unended + segmentsMissing + dropped + Object.keys(skipped).length + result.breaks + result.reasons.length > 0;
}

/** A kind of damage: changes the files of a trace with numbers drawn from 0 to 1. */
type Damage = (files: Map<string, Buffer>, draw: () => number) => void;

const nth = <T>(list: readonly T[], share: number): T =>
  list[Math.min(list.length - 1, Math.floor(share * list.length))]!;
const some = (files: ReadonlyMap<string, Buffer>, draw: () => number) => nth([...files], draw());
const splitLines = (bytes: Buffer) => bytes.toString("latin1").split(/(?<=\n)/);

function onLines(change: (lines: string[], draw: () => number) => void): Damage {
  return (files, draw) => {
    const [name, bytes] = some(files, draw);
    const lines = splitLines(bytes);
    change(lines, draw);
    files.set(name, Buffer.from(lines.join(""), "latin1"));
  };
}

const DAMAGES: Readonly<Record<string, Damage>> = {
  truncated: (files, draw) => {
    const [name, bytes] = some(files, draw);
    files.set(name, bytes.subarray(0, Math.floor(draw() * bytes.length)));
  },
  "cut after a line": onLines((lines, draw) => void lines.splice(Math.floor(draw() * lines.length))),
  missing: (files, draw) => void (files.size > 1 && files.delete(some(files, draw)[0])),
  emptied: (files, draw) => void files.set(some(files, draw)[0], Buffer.alloc(0)),
  "bit flipped": (files, draw) => {
    const [name, bytes] = some(files, draw);
    if (bytes.length === 0) return;
    const copy = Buffer.from(bytes);
    const at = Math.floor(draw() * bytes.length);
    copy[at]! ^= 1 << Math.floor(draw() * 8);
    files.set(name, copy);
  },
  "digit changed": (files, draw) => {
    const [name, bytes] = some(files, draw);
    const digits = [...bytes.keys()].filter((i) => bytes[i]! >= 0x30 && bytes[i]! <= 0x39);
    if (digits.length === 0) return;
    const copy = Buffer.from(bytes);
    copy[nth(digits, draw())] = 0x30 + Math.floor(draw() * 10);
    files.set(name, copy);
  },
  "range zeroed": (files, draw) => {
    const [name, bytes] = some(files, draw);
    const from = Math.floor(draw() * bytes.length);
    files.set(name, Buffer.from(bytes).fill(0, from, Math.min(bytes.length, from + Math.floor(draw() * 300))));
  },
  "bytes cut out": (files, draw) => {
    const [name, bytes] = some(files, draw);
    const from = Math.floor(draw() * bytes.length);
    files.set(name, Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + Math.floor(draw() * 2_000))]));
  },
  "garbage put in": (files, draw) => {
    const [name, bytes] = some(files, draw);
    const at = Math.floor(draw() * (bytes.length + 1));
    const garbage = Buffer.from(Array.from({ length: 40 }, () => Math.floor(draw() * 256)));
    files.set(name, Buffer.concat([bytes.subarray(0, at), garbage, bytes.subarray(at)]));
  },
  "line lost": onLines((lines, draw) => void lines.splice(Math.floor(draw() * lines.length), 1)),
  "half a line": onLines((lines, draw) => {
    const at = Math.floor(draw() * lines.length);
    const line = lines[at] ?? "";
    lines[at] = `${line.slice(0, Math.floor(draw() * line.length))}\n`;
  }),
  "line repeated": onLines((lines, draw) => {
    const at = Math.floor(draw() * lines.length);
    lines.splice(at, 0, lines[at] ?? "");
  }),
  "lines swapped": onLines((lines, draw) => {
    const [a, b] = [Math.floor(draw() * lines.length), Math.floor(draw() * lines.length)];
    [lines[a], lines[b]] = [lines[b] ?? "", lines[a] ?? ""];
  }),
  "segments swapped": (files, draw) => {
    const [[a, bytes], [b, others]] = [some(files, draw), some(files, draw)];
    files.set(a, others);
    files.set(b, bytes);
  },
  "segment twice": (files, draw) => {
    const [name, bytes] = some(files, draw);
    files.set(name.replace(".ndjson", "-again.ndjson"), bytes);
  },
};

function place(t: TestContext, root: string, files: Files): string {
  const directory = mkdtempSync(join(root, "damaged-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, bytes] of files) writeFileSync(join(directory, name), bytes);
  return directory;
}

/** Traces to damage: compressed as they are written, plain, and of two runs. */
async function samples(t: TestContext, size: Size): Promise<{ root: string; traces: Readonly<Record<string, Files>> }> {
  const root = mkdtempSync(join(tmpdir(), "gnomon-damage-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const make = async (run: string, seed: number) => {
    const directory = join(root, run);
    mkdirSync(directory);
    return recordedFiles(directory, run, seed, size);
  };
  const one = await make("aaaaaaaa", 3);
  const other = await make("bbbbbbbb", 4);
  assert.ok(one.size >= 4, `${one.size} segments`);
  return { root, traces: { compressed: one, plain: plain(one), "two runs": new Map([...one, ...other]) } };
}

test("however a trace is damaged: no difference is reported, nothing passes as whole, nothing but a plain error", async (t) => {
  const { root, traces } = await samples(t, SMALL);
  for (const [kind, files] of Object.entries(traces)) {
    const whole = await replayed(place(t, root, files), true);
    assert.ok(!(whole instanceof Error), kind);
    assert.deepEqual([whole.result.differences, whole.result.unverifiable, isReported(whole)], [0, 0, false]);
    assert.ok(whole.result.decisions > DECISIONS_MIN);
    const names = fc.array(fc.constantFrom(...Object.keys(DAMAGES)), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(names, fc.nat(), async (damages, seed) => {
        const changed = new Map(files);
        const random = randomFor(seed, 0);
        for (const name of damages) DAMAGES[name]!(changed, () => random.below(DRAWS) / DRAWS);
        const directory = place(t, root, changed);
        const lenient = await replayed(directory, false);
        if (lenient instanceof Error) assertPlain(lenient);
        else assert.equal(lenient.result.differences, 0, lenient.result.first?.what ?? "");
        const strict = await replayed(directory, true);
        if (strict instanceof Error) assertPlain(strict);
        else if (!isReported(strict)) assert.equal(strict.inputs, whole.inputs, "passed as whole");
        rmSync(directory, { recursive: true });
      }),
      { numRuns: 20 },
    );
  }
});

test("a trace from before there were checksums: one kind of damage to its compressed files reports no difference", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "gnomon-damage-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "old"));
  const files = await recordedFiles(join(root, "old"), "cccccccc", 5, SMALL, false);
  const whole = await replayed(place(t, root, files), true);
  assert.ok(!(whole instanceof Error) && whole.result.decisions > DECISIONS_MIN && !isReported(whole));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(DAMAGES)), fc.nat(), async (name, seed) => {
      const changed = new Map(files);
      const random = randomFor(seed, 0);
      DAMAGES[name]!(changed, () => random.below(DRAWS) / DRAWS);
      const directory = place(t, root, changed);
      const lenient = await replayed(directory, false);
      if (lenient instanceof Error) assertPlain(lenient);
      else assert.equal(lenient.result.differences, 0, `${name}: ${lenient.result.first?.what}`);
      rmSync(directory, { recursive: true });
    }),
    { numRuns: 20 },
  );
});

test("what is missing is named, and strict refuses it: first, middle and last segment, cut off, empty, a line", async (t) => {
  const { root, traces } = await samples(t, LARGE);
  const files = traces["plain"]!;
  const names = [...files.keys()];
  const [first, middle, last] = [names[0]!, names[2]!, names.at(-1)!];
  const cut = (name: string) => new Map([...files, [name, files.get(name)!.subarray(0, files.get(name)!.length / 2)]]);
  const without = (name: string) => new Map([...files].filter(([one]) => one !== name));
  const altered = new Map([...files, [middle, Buffer.from(files.get(middle)!)]]);
  altered.get(middle)?.write("999", altered.get(middle)!.indexOf('"at":') + 5);
  // A file that is cut off at its end may be one that is still written: that is reported, and refused by nobody.
  const cases: readonly (readonly [string, Files, RegExp, RegExp | undefined])[] = [
    ["first missing", without(first), /what came before segment 1 is missing/, /one missing before/],
    ["middle missing", without(middle), /what came before segment 3 is missing/, /one missing before/],
    ["first cut off", cut(first), /expected a checksum after the last lines/, /expected all lines before/],
    ["middle cut off", cut(middle), /expected a checksum after the last lines/, /expected all lines before/],
    ["last cut off", cut(last), /1 without an end/, undefined],
    ["first empty", new Map([...files, [first, Buffer.alloc(0)]]), /expected a header/, /expected a header/],
    ["a line altered", altered, /altered, lost, repeated or moved/, /altered, lost, repeated or moved/],
  ];
  for (const [name, damaged, reason, refusal] of cases) {
    const directory = place(t, root, damaged);
    const lenient = await replayed(directory, false);
    assert.ok(!(lenient instanceof Error), name);
    const { result, report } = lenient;
    assert.equal(result.differences, 0, name);
    // What stands before the last checksum is whole, and little comes after it.
    if (refusal !== undefined) assert.ok(result.unverifiable > 0, `${name}: ${result.decisions} compared`);
    assert.match([`${report.unended} without an end`, ...result.reasons, ...report.examples].join("\n"), reason, name);
    const strict = await replayed(directory, true);
    if (refusal === undefined) assert.ok(!(strict instanceof Error) && strict.report.unended === 1, name);
    else assert.match(strict instanceof Error ? strict.message : "passed", refusal, name);
  }
  const ended = await replayed(place(t, root, new Map([...traces["compressed"]!].slice(0, -1))), true);
  assert.match(ended instanceof Error ? ended.message : "passed", /one missing after .* which does not end the run/);
});

/** An error for people: it names a file of the trace, and is no bug's. */
function assertPlain(error: Error): void {
  assert.match(error.message, /damaged-/);
  assert.doesNotMatch(error.message, /invariant|undefined|not a function|Cannot read/);
}
