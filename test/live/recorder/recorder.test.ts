import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { mkdtemp, open, readdir, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import type { Input } from "#core/input/input.ts";
import { Recorder, type RecorderOptions } from "#live/recorder/recorder.ts";
import { segmentName } from "#trace/segment-name.ts";
import type { SegmentFile } from "#trace/segment-writer.ts";
import { TraceReader, type TraceReport } from "#trace/reader.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { HEADER, inputs } from "../../trace/trace-samples.ts";

async function folder(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "gnomon-recorder-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function options(directory: string, more: Partial<RecorderOptions> = {}): RecorderOptions {
  return {
    directory,
    run: {
      id: "0a1b2c3d",
      startWallMicros: HEADER.startWallMicros,
      router: HEADER.router,
      hash: HEADER.hash,
      endpoints: [],
    },
    bufferBytesMax: 8_388_608,
    segmentBytesMax: 67_108_864,
    bytesMax: 1_073_741_824,
    segmentMillisMax: 3_600_000,
    flushMillis: 5,
    fsync: "never",
    compressionLevel: 3,
    candidatesMax: 4,
    onFailure: (message) => assert.fail(message),
    ...more,
  };
}

async function readAll(path: string): Promise<{ items: TraceItem[]; report: TraceReport }> {
  const reader = new TraceReader(path);
  const items: TraceItem[] = [];
  for await (const item of reader.items()) items.push(item);
  return { items, report: reader.report };
}

const inputsRead = (items: readonly TraceItem[]) =>
  items.flatMap((item) => (item.kind === "record" ? [item.input] : []));

const SAMPLED_MAX = 5_000;
/** Drawn once for all tests. */
let sampled: readonly Input[] | undefined;

/** Many different inputs in order of time, no request twice. */
function sampleInputs(count: number): Input[] {
  assert.ok(count <= SAMPLED_MAX);
  sampled ??= fc.sample(inputs, { numRuns: SAMPLED_MAX, seed: 16 });
  return sampled
    .slice(0, count)
    .sort((a, b) => a.at - b.at)
    .map((input, i) =>
      input.kind === "request-arrived" ? { ...input, request: { ...input.request, id: `r${i}` } } : input,
    );
}

test("a trace and the folders made for it are their owner's alone", async (t) => {
  const directory = join(await folder(t), "made", "for-it");
  const recorder = await Recorder.open(options(directory));
  for (const input of sampleInputs(10)) recorder.accepted(input, undefined);
  await recorder.close();
  const names = await readdir(directory);
  assert.ok(names.length > 0);
  const mode = async (...parts: string[]): Promise<string> => ((await stat(join(...parts))).mode & 0o777).toString(8);
  assert.deepEqual([await mode(directory), await mode(directory, "..")], ["700", "700"]);
  for (const name of names) assert.equal(await mode(directory, name), "600", name);
});

test("what was accepted is read back, in order, over all segments", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { segmentBytesMax: 2_000 }));
  const written = sampleInputs(3_000);
  for (const [i, input] of written.entries()) {
    recorder.accepted(input, undefined);
    if (i % 100 === 0) await pause(6);
  }
  await recorder.close();
  const { items, report } = await readAll(directory);
  assert.deepEqual(inputsRead(items), written);
  assert.equal(items.filter((item) => item.kind === "run").length, 1);
  const status = recorder.status();
  assert.deepEqual([status.recorded, status.dropped, status.bufferedBytes], [written.length, 0, 0]);
  assert.ok(status.segments > 3, `${status.segments} segments`);
  assert.equal(report.segments, status.segments);
  assert.deepEqual(report.skipped, {});
  const sizes = await Promise.all(
    (await readdir(directory)).map(async (name) => (await stat(join(directory, name))).size),
  );
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    status.writtenBytes,
  );
});

test("a full buffer drops whole records and the gap has how many", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { bufferBytesMax: 65_536 }));
  const written = sampleInputs(2_000);
  for (const input of written.slice(0, 1_500)) recorder.accepted(input, undefined);
  const { dropped } = recorder.status();
  assert.ok(dropped > 0 && recorder.status().bufferedBytes <= 65_536);
  await until(() => recorder.status().bufferedBytes === 0);
  for (const input of written.slice(1_500, 1_510)) recorder.accepted(input, undefined);
  await recorder.close();
  const { items, report } = await readAll(directory);
  assert.equal(report.dropped, dropped);
  assert.equal(report.records + report.dropped, 1_510);
  const gap = items.findIndex((item) => item.kind === "gap");
  assert.deepEqual(inputsRead(items.slice(gap)), written.slice(1_500, 1_510));
});

test("records dropped last are reported when the recorder closes", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { bufferBytesMax: 65_536 }));
  for (const input of sampleInputs(1_000)) recorder.accepted(input, undefined);
  await recorder.close();
  const { items, report } = await readAll(directory);
  assert.equal(items.at(-1)?.kind, "gap");
  assert.equal(report.records + report.dropped, 1_000);
});

test("a torn end costs the last lines only and is reported", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory));
  const written = sampleInputs(400);
  for (const [i, input] of written.entries()) {
    recorder.accepted(input, undefined);
    if (i % 20 === 19) await until(() => recorder.status().recorded === i + 1);
  }
  await recorder.close();
  const [name] = await readdir(directory);
  const file = join(directory, name!);
  const whole = (await stat(file)).size;
  for (const share of [0.99, 0.6, 0.3]) {
    await truncate(file, Math.floor(whole * share));
    const { items, report } = await readAll(directory);
    const read = inputsRead(items);
    assert.deepEqual(read, written.slice(0, read.length));
    assert.ok(read.length < written.length && read.length > 0);
    assert.equal(report.unended, 1);
  }
});

test("a crash before anything was closed loses nothing that was flushed", async (t) => {
  const directory = await folder(t);
  // Its folder is removed before it is closed.
  const recorder = await Recorder.open(options(directory, { onFailure: () => {} }));
  t.after(() => recorder.close());
  const written = sampleInputs(50);
  for (const input of written) recorder.accepted(input, undefined);
  await until(() => recorder.status().recorded === 50);
  const { items } = await readAll(directory);
  assert.deepEqual(inputsRead(items), written);
});

test("a folder that cannot be made is an error at once", async (t) => {
  const directory = await folder(t);
  await writeFile(join(directory, "file"), "");
  await assert.rejects(Recorder.open(options(join(directory, "file", "trace"))), /ENOTDIR/);
  if (process.platform === "linux") await assert.rejects(Recorder.open(options("/proc/gnomon/trace")), /ENOENT/);
  const deep = await Recorder.open(options(join(directory, "a", "b", "c")));
  await deep.close();
  assert.equal((await readdir(join(directory, "a", "b", "c"))).length, 1);
});

test("a disk that fails is reported once, and recording goes on in a new segment with a gap before it", async (t) => {
  const parent = await folder(t);
  const directory = join(parent, "trace");
  const failures: string[] = [];
  const onFailure = (message: string) => failures.push(message);
  const recorder = await Recorder.open(options(directory, { segmentMillisMax: 0, retryMillis: 30, onFailure }));
  // More than are needed: pauses between tries double each time that the disk fails.
  const written = sampleInputs(5_000);
  const [before, during] = [written.slice(0, 10), written.slice(10, 30)];
  for (const input of before) recorder.accepted(input, undefined);
  await until(() => recorder.status().recorded === before.length);
  await rm(directory, { recursive: true });
  await writeFile(directory, "");
  for (const input of during) {
    recorder.accepted(input, undefined);
    await pause(1);
  }
  await until(() => failures.length > 0 && recorder.status().dropped > 0);
  await rm(directory);
  const recorded = () => recorder.status().recorded;
  let given = before.length + during.length;
  for (const known = recorded(); recorded() === known; given++) {
    recorder.accepted(written[given]!, undefined);
    await pause(8);
  }
  await recorder.close();
  const { items, report } = await readAll(directory);
  const read = inputsRead(items);
  assert.deepEqual(read, written.slice(given - read.length, given));
  assert.ok(read.length > 0);
  assert.equal(report.dropped, recorder.status().dropped);
  assert.equal(recorder.status().recorded + recorder.status().dropped, given);
  assert.match(failures[0]!, /^recording stopped, and records are lost until/);
});

test("that somebody removed the folder is reported, and what comes after is in a new one: nothing is written where nobody finds it", async (t) => {
  const parent = await folder(t);
  const directory = join(parent, "deep", "trace");
  const failures: string[] = [];
  const onFailure = (message: string) => failures.push(message);
  const recorder = await Recorder.open(options(directory, { segmentMillisMax: 1e9, retryMillis: 1, onFailure }));
  const written = sampleInputs(40);
  for (const input of written.slice(0, 10)) recorder.accepted(input, undefined);
  await until(() => recorder.status().recorded === 10);
  await rm(join(parent, "deep"), { recursive: true });
  let next = 10;
  while (failures.length === 0) {
    recorder.accepted(written[next++ % written.length]!, undefined);
    await until(() => recorder.status().bufferedBytes === 0);
  }
  assert.match(failures[0]!, /^recording stopped, .*ENOENT.*trace/);
  await pause(5);
  const after = recorder.status().recorded;
  while (recorder.status().recorded === after) {
    recorder.accepted(written[next++ % written.length]!, undefined);
    await until(() => recorder.status().bufferedBytes === 0);
  }
  await recorder.close();
  const { items } = await readAll(directory);
  assert.ok(inputsRead(items).length > 0);
  const { recorded, dropped } = recorder.status();
  assert.equal(recorded + dropped, next);
  assert.equal(failures.length, 1);
});

/** A disk of so many bytes, which takes what still fits of a write and then fails, as a full one does. */
class SmallDisk {
  bytesMax: number;
  bytes = 0;
  filesMade = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  readonly create = async (path: string): Promise<SegmentFile> => {
    const file = await open(path, "wx");
    this.filesMade++;
    let own = 0;
    return {
      appendFile: async (data) => {
        const taken = (data as Buffer).subarray(0, Math.max(0, this.bytesMax - this.bytes));
        this.bytes += taken.length;
        own += taken.length;
        await file.appendFile(taken);
        if (taken.length === (data as Buffer).length) return;
        // What is given back meanwhile, another program takes.
        this.bytesMax = 0;
        throw new Error("ENOSPC: no space left on device, write");
      },
      truncate: async (length = 0) => {
        this.bytes -= own - length;
        own = length;
        await file.truncate(length);
      },
      datasync: () => file.datasync(),
      sync: () => file.sync(),
      close: () => file.close(),
    };
  };
}

test("a full disk costs one line of log, leaves no empty segment, and what fits is recorded again when there is room", async (t) => {
  const directory = await folder(t);
  const disk = new SmallDisk(20_000);
  const failures: string[] = [];
  const recoveries: { records: number; millis: number }[] = [];
  const recorder = await Recorder.open(
    options(directory, {
      retryMillis: 10,
      createFile: disk.create,
      onFailure: (message) => failures.push(message),
      onRecovery: (lost) => recoveries.push(lost),
    }),
  );
  const written = sampleInputs(3_000);
  const beganMillis = performance.now();
  for (const [i, input] of written.slice(0, 2_500).entries()) {
    recorder.accepted(input, undefined);
    if (i % 10 === 0) await pause(3);
  }
  assert.equal(failures.length, 1);
  assert.match(failures[0]!, /^recording stopped, and records are lost until .*: ENOSPC/);
  const tries = disk.filesMade - 1;
  const pausedMillis = 10 * (2 ** tries - 1);
  assert.ok(tries > 1 && pausedMillis <= performance.now() - beganMillis, `${tries} tries, each pause twice the last`);
  const { recorded, dropped } = recorder.status();
  assert.ok(recorded > 100 && dropped > 500, `${recorded} recorded, ${dropped} dropped`);
  await until(() => readdirSync(directory).length === 1, "segments without records are removed");
  disk.bytesMax = 10_000_000;
  for (let i = 2_500; recoveries.length === 0; i = Math.min(i + 1, 2_998)) {
    recorder.accepted({ kind: "first-token", at: written[i]!.at, requestId: `late-${i}` }, undefined);
    await pause(5);
  }
  await recorder.close();
  const { items, report } = await readAll(directory);
  const status = recorder.status();
  assert.deepEqual([failures.length, recoveries.length], [1, 1]);
  assert.ok(recoveries[0]!.records > 500 && recoveries[0]!.records <= status.dropped);
  assert.deepEqual(inputsRead(items).slice(0, recorded), written.slice(0, recorded));
  assert.deepEqual([report.records, report.dropped], [status.recorded, status.dropped]);
  assert.equal(report.segmentsMissing, 0, "numbers of segments that were given up are used again");
  assert.deepEqual([report.segments, status.segments], [2, 2]);
});

test("segments beyond the bound of bytes are removed whole, the oldest first, and counted; other files stay", async (t) => {
  const directory = await folder(t);
  const foreign = ["notes.txt", "mine.ndjson.zst", "20260101T000000000Z-x.ndjson.zst"];
  for (const name of foreign) await writeFile(join(directory, name), "x".repeat(9_000));
  const earlier = join(directory, segmentName(HEADER.startWallMicros - 1e9, "11111111", 0));
  await writeFile(earlier, "x".repeat(5_000));
  await utimes(earlier, 1_000_000, 1_000_000);
  const recorder = await Recorder.open(options(directory, { segmentBytesMax: 4_000, bytesMax: 30_000 }));
  const written = sampleInputs(1_000);
  for (const [i, input] of written.entries()) {
    recorder.accepted(input, undefined);
    if (i % 10 === 9) await until(() => recorder.status().recorded === i + 1);
  }
  await recorder.close();
  const names = (await readdir(directory)).filter((name) => !foreign.includes(name)).sort();
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  const { segments, removedSegments, removedBytes, writtenBytes } = recorder.status();
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= 30_000 + Math.max(...sizes), sizes.join());
  assert.equal(names.length, segments + 1 - removedSegments);
  assert.equal(removedBytes - 5_000, writtenBytes - sizes.reduce((sum, size) => sum + size, 0));
  assert.ok(names.length > 1 && removedSegments > 3, `${names.length} stay, ${removedSegments} are removed`);
  assert.deepEqual((await readdir(directory)).filter((name) => foreign.includes(name)).sort(), foreign.toSorted());
  const last = names.map((name) => Number(/-(\d{6})\./.exec(name)![1]));
  assert.deepEqual(
    last,
    last.map((_number, i) => segments - last.length + i),
    "the latest stay",
  );
  for (const name of foreign) await rm(join(directory, name));
  const { items } = await readAll(directory);
  const read = inputsRead(items);
  assert.deepEqual(read, written.slice(-read.length));
});

test("segments that are too old are removed as the next one begins", async (t) => {
  const directory = await folder(t);
  const paths = [0, 1, 2].map((i) => join(directory, segmentName(HEADER.startWallMicros, "11111111", i)));
  const now = Date.now() / 1000;
  for (const [i, path] of paths.entries()) {
    await writeFile(path, "x");
    await utimes(path, now, now - (2 - i) * 7200);
  }
  const recorder = await Recorder.open(options(directory, { ageMaxHours: 1 }));
  await recorder.close();
  assert.deepEqual(
    await Promise.all(
      paths.map((path) =>
        stat(path).then(
          () => true,
          () => false,
        ),
      ),
    ),
    [false, false, true],
  );
  assert.equal(recorder.status().removedSegments, 2);
});

async function until(condition: () => boolean, what = "it came to pass within a minute"): Promise<void> {
  for (let i = 0; i < 12_000 && !condition(); i++) await pause(5);
  assert.ok(condition(), what);
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
