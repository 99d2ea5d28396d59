import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Input } from "#core/input/input.ts";
import { readDecidedRun } from "#shadow/reproduce/decided-run.ts";
import { AS_RECORDED, GAUGE_READINGS, readSo } from "#shadow/reproduce/gauge-reading.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { foreignTraffic, itemsOf } from "./foreign-traffic.ts";

const TRAFFIC = { spec: loadProfile("round-robin").spec, requests: 40, seed: 3, routerName: "theirs" };

const arrivals = (items: readonly TraceItem[]) =>
  items.filter((item) => item.kind === "record" && item.input.kind === "request-arrived");

test("a decision that nobody attributed is no evidence, but is placed where it was recorded", async () => {
  const items = foreignTraffic(TRAFFIC);
  const first = arrivals(items)[0]!;
  const unknown = items.map((item): TraceItem => {
    if (item !== first || item.kind !== "record" || item.input.kind !== "request-arrived") return item;
    return { ...item, input: { ...item.input, observed: { endpoint: "", by: "none", sure: 0 } } };
  });
  const run = await readDecidedRun(itemsOf(unknown), Infinity);
  assert.deepEqual([run.decisions, run.left], [39, { "nobody knows where it went": 1 }]);
  assert.equal(run.inputs.filter(({ endpoint }) => endpoint !== undefined).length, 40);
});

test("where a request moved afterwards is where it went; the move itself is no input any more", async () => {
  const items = foreignTraffic(TRAFFIC);
  const at = items.indexOf(arrivals(items)[0]!);
  const first = items[at]!;
  assert.ok(first.kind === "record" && first.input.kind === "request-arrived");
  const { id } = first.input.request;
  const moved: Input = { kind: "request-moved", at: first.input.at, requestId: id, endpoint: "e3" };
  const all: TraceItem[] = [
    ...items.slice(0, at + 1),
    { kind: "record", input: moved, decision: undefined },
    ...items.slice(at + 1),
  ];
  const run = await readDecidedRun(itemsOf(all), Infinity);
  const arrived = run.inputs.find(({ input }) => input.kind === "request-arrived" && input.request.id === id)!;
  assert.equal(arrived.endpoint, "e3");
  assert.ok(run.inputs.every(({ input }) => input.kind !== "request-moved"));
});

test("requests that come within three milliseconds are no evidence, and stand by their endpoints' turns", async () => {
  const items = foreignTraffic(TRAFFIC);
  const [first, second] = arrivals(items) as [TraceItem, TraceItem];
  assert.ok(first.kind === "record" && second.kind === "record");
  const at = first.input.at + 1_000;
  const closer = items.flatMap((item) => (item === second ? [] : item === first ? [first, moved(second, at)] : [item]));
  const run = await readDecidedRun(itemsOf(closer), Infinity);
  assert.equal(run.decisions, 38);
  assert.deepEqual(Object.values(run.left), [2]);
  assert.ok(run.inputs.every(({ input }, i) => i === 0 || run.inputs[i - 1]!.input.at <= input.at));
});

function moved(item: Extract<TraceItem, { readonly kind: "record" }>, at: number): TraceItem {
  return { ...item, input: { ...item.input, at } };
}

test("of several runs the last one counts, and the decisions before it are stated", async () => {
  const items = foreignTraffic(TRAFFIC);
  const run = await readDecidedRun(itemsOf([...items, ...items]), Infinity);
  assert.deepEqual([run.decisions, run.left], [40, { "of an earlier run of the recorder": 40 }]);
});

test("gauges that are read otherwise: late ones in order of time, rarer ones, none; all else stays", async () => {
  const { inputs } = await readDecidedRun(itemsOf(foreignTraffic(TRAFFIC)), Infinity);
  const loads = (reading: (typeof GAUGE_READINGS)[number]) =>
    readSo(inputs, reading).filter(({ input }) => input.kind === "load-observed");
  for (const reading of GAUGE_READINGS) {
    const read = readSo(inputs, reading);
    assert.ok(
      read.every(({ input }, i) => i === 0 || read[i - 1]!.input.at <= input.at),
      reading.name,
    );
    assert.equal(read.length - loads(reading).length, inputs.length - loads(AS_RECORDED).length, reading.name);
  }
  const named = (name: string) => loads(GAUGE_READINGS.find((one) => one.name === name)!).length;
  assert.equal(named("never"), 0);
  assert.equal(named("200 ms later"), named("as recorded"));
  assert.ok(named("every 1 s") < named("as recorded") / 10);
});
