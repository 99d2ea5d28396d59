import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, truncate, writeFile, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import type { Input } from "#core/input.ts";
import { Recorder, type RecorderOptions } from "#live/recorder/recorder.ts";
import { TraceReader, type TraceReport } from "#trace/reader.ts";
import type { TraceItem } from "#trace/record.ts";
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

/** Many different inputs in order of time, no request twice. */
function sampleInputs(count: number, seed: number): Input[] {
  return fc
    .sample(inputs, { numRuns: count, seed })
    .sort((a, b) => a.at - b.at)
    .map((input, i) =>
      input.kind === "request-arrived" ? { ...input, request: { ...input.request, id: `r${i}` } } : input,
    );
}

test("what was accepted is read back, in order, over all segments", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { segmentBytesMax: 2_000 }));
  const written = sampleInputs(3_000, 11);
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

test("a full buffer drops whole records and the gap says how many", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { bufferBytesMax: 65_536 }));
  const written = sampleInputs(2_000, 12);
  for (const input of written.slice(0, 1_500)) recorder.accepted(input, undefined);
  const { dropped } = recorder.status();
  assert.ok(dropped > 0 && recorder.status().bufferedBytes <= 65_536);
  for (let i = 0; i < 50 && recorder.status().bufferedBytes > 0; i++)
    await new Promise((resolve) => setTimeout(resolve, 10));
  for (const input of written.slice(1_500, 1_510)) recorder.accepted(input, undefined);
  await recorder.close();
  const { items, report } = await readAll(directory);
  assert.equal(report.dropped, dropped);
  assert.equal(report.records + report.dropped, 1_510);
  const gap = items.findIndex((item) => item.kind === "gap");
  assert.deepEqual(inputsRead(items.slice(gap)), written.slice(1_500, 1_510));
});

test("records dropped last are told when the recorder closes", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory, { bufferBytesMax: 65_536 }));
  for (const input of sampleInputs(1_000, 13)) recorder.accepted(input, undefined);
  await recorder.close();
  const { items, report } = await readAll(directory);
  assert.equal(items.at(-1)?.kind, "gap");
  assert.equal(report.records + report.dropped, 1_000);
});

test("a torn end costs the last lines only and is reported", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory));
  const written = sampleInputs(400, 14);
  for (const [i, input] of written.entries()) {
    recorder.accepted(input, undefined);
    if (i % 100 === 99) await pause(15);
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
    assert.equal(report.skipped.torn, 1);
  }
});

test("a crash before anything was closed loses nothing that was flushed", async (t) => {
  const directory = await folder(t);
  const recorder = await Recorder.open(options(directory));
  t.after(() => recorder.close());
  const written = sampleInputs(50, 15);
  for (const input of written) recorder.accepted(input, undefined);
  for (let i = 0; i < 100 && recorder.status().recorded < 50; i++)
    await new Promise((resolve) => setTimeout(resolve, 5));
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

test("a disk that fails is told once, and recording goes on in a new segment with a gap before it", async (t) => {
  const parent = await folder(t);
  const directory = join(parent, "trace");
  const failures: string[] = [];
  const onFailure = (message: string) => failures.push(message);
  const recorder = await Recorder.open(options(directory, { segmentMillisMax: 0, retryMillis: 30, onFailure }));
  const written = sampleInputs(40, 16);
  const [before, during, after] = [written.slice(0, 10), written.slice(10, 30), written.slice(30)];
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
  await pause(80);
  for (const input of after) {
    recorder.accepted(input, undefined);
    await pause(8);
  }
  await recorder.close();
  const { items, report } = await readAll(directory);
  const read = inputsRead(items);
  assert.deepEqual(read, written.slice(-read.length));
  assert.ok(read.length > 0);
  assert.equal(report.dropped, recorder.status().dropped);
  assert.equal(recorder.status().recorded + recorder.status().dropped, written.length);
  assert.match(failures[0]!, /recording stopped for a while/);
});

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !condition(); i++) await pause(5);
  assert.ok(condition(), "it came to pass within two seconds");
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
