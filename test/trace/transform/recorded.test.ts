import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Input } from "#core/input/input.ts";
import { Replay, routerOf } from "#shadow/recorded/replay.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../line-encoder.ts";
import type { TraceHeader, TraceItem, TraceRecord } from "#trace/codec/record.ts";
import { capRecorded } from "#trace/transform/cap-recorded.ts";
import { recordedTraffic } from "#trace/transform/recorded-traffic.ts";
import { sliceRecorded } from "#trace/transform/slice-recorded.ts";
import { Tally } from "#trace/transform/tally.ts";
import { trafficToTrace } from "#trace/transform/traffic-to-trace.ts";
import { drawTraffic } from "../../core/traffic.ts";
import { request } from "../../core/state.ts";
import { HEADER } from "../trace-samples.ts";
import { collected, streamed } from "./workload-samples.ts";

const EVERYTHING = { fromMicros: 0, toMicros: Infinity, fromRequest: 0, toRequest: Infinity };
const SEEDS = [1, 2, 3, 4, 5];

/** A trace with aborts, retries and endpoints that come and go, as a reader gives it. */
function traceOf(seed: number): TraceItem[] {
  const profiles = { gnomon: loadProfile("gnomon").spec };
  const header: TraceHeader = { ...HEADER, router: { ...HEADER.router, profiles, defaultProfile: "gnomon" } };
  const encoder = new LineEncoder({ blockTokens: 16 });
  const decoder = new TraceDecoder(encoder.header(header));
  const records = drawTraffic(routerOf(header), seed, 250).map(({ input, decision }) =>
    decoder.decode(encoder.record(input, decision)),
  );
  return [{ kind: "run", header: decoder.header }, ...records];
}

function inputsOf(items: readonly TraceItem[]): Input[] {
  return items.flatMap((item) => (item.kind === "record" ? [item.input] : []));
}

function idOf(input: Input): string | undefined {
  if (input.kind === "request-arrived") return input.request.id;
  return "requestId" in input ? input.requestId : undefined;
}

function replayed(items: readonly TraceItem[]) {
  const replay = new Replay();
  for (const item of items) replay.take(item);
  return replay.result();
}

test("a request's answers and prompts are its traffic's, and a trace's made of that", async () => {
  const asked = request({ id: "r", promptTokens: 90, sequences: 4, tokensByPrompt: [60, 30] });
  const end = { outcome: "ok", promptTokens: 120, cachedTokens: 0, outputTokens: 36 } as const;
  const items = [
    { kind: "run", header: HEADER } as const,
    ...[
      { kind: "request-arrived", at: 1, request: asked } as const,
      { kind: "request-finished", at: 9, requestId: "r", ...end } as const,
    ].map((input) => ({ kind: "record", input, decision: undefined }) as const),
  ];
  const traffic = await collected(recordedTraffic(streamed(items), new Tally()));
  const { sequences, tokensByPrompt, promptTokens } = traffic[0]!.request;
  assert.deepEqual([sequences, tokensByPrompt, promptTokens], [4, [80, 40], 120]);
  const trace = inputsOf(await collected(trafficToTrace(streamed(traffic), HEADER, new Tally())));
  const [arrived] = trace;
  assert.ok(arrived?.kind === "request-arrived");
  assert.deepEqual([arrived.request.sequences, arrived.request.tokensByPrompt], [4, [80, 40]]);
});

test("of a request that a slice keeps all inputs are there, of another none", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const ids = inputsOf(items).flatMap((input) => (input.kind === "request-arrived" ? [input.request.id] : []));
    const range = { ...EVERYTHING, fromRequest: 10, toRequest: 40 };
    const sliced = inputsOf(await collected(sliceRecorded(streamed(items), range, new Tally())));
    const kept = new Set(ids.slice(10, 40));
    const expected = inputsOf(items).filter((input) => kept.has(idOf(input) ?? ""));
    assert.deepEqual(
      sliced.filter((input) => idOf(input) !== undefined),
      expected,
      `seed ${seed}`,
    );
  }
});

test("a slice from the beginning replays to the same decisions; another one is reported as incomplete, and nothing is compared", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const head = await collected(sliceRecorded(streamed(items), { ...EVERYTHING, toRequest: 30 }, new Tally()));
    assert.equal(replayed(head).differences, 0, `seed ${seed}`);
    assert.ok(replayed(head).decisions >= 30);
    const middle = await collected(sliceRecorded(streamed(items), { ...EVERYTHING, fromRequest: 10 }, new Tally()));
    assert.ok(middle[0]?.kind === "run" && middle[0].header.derived?.replayable === false);
    assert.equal(replayed(middle).decisions, 0);
    assert.ok(replayed(middle).unverifiable > 0);
  }
});

test("where a slice left records out before a decision, a gap of as many stands there", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const range = { ...EVERYTHING, toRequest: 30 };
    const sliced = await collected(sliceRecorded(streamed(items), range, new Tally()));
    const gaps = sliced.flatMap((item) => (item.kind === "gap" ? [item.dropped] : []));
    const lastDecision = items.findLastIndex(
      (item) => sliced.includes(item) && item.kind === "record" && item.decision !== undefined,
    );
    const left = items.slice(1, lastDecision).filter((item) => !sliced.includes(item)).length;
    assert.equal(
      gaps.reduce((sum, dropped) => sum + dropped, 0),
      left,
      `seed ${seed}`,
    );
  }
});

test("a request that two endpoints had is of the one that answered it", async () => {
  const decided = (requestId: string, endpoint: string) =>
    ({ kind: "routed", requestId, endpoint }) as TraceRecord["decision"];
  const record = (input: Input, decision?: TraceRecord["decision"]): TraceItem => ({ kind: "record", input, decision });
  const [run] = traceOf(1);
  const counts = { promptTokens: 20, cachedTokens: 0, outputTokens: 5 };
  for (const [winner, expected] of [
    ["first", "a"],
    ["second", "b"],
  ] as const) {
    const items = [
      run!,
      record({ kind: "request-arrived", at: 1, request: request({ id: "r" }) }, decided("r", "a")),
      record({ kind: "request-hedged", at: 2, requestId: "r" }, decided("r", "b")),
      record({ kind: "hedge-settled", at: 3, requestId: "r", winner }),
      record({ kind: "first-token", at: 4, requestId: "r" }),
      record({ kind: "request-finished", at: 5, requestId: "r", outcome: "ok", ...counts }),
    ];
    const [one] = await collected(recordedTraffic(streamed(items), new Tally()));
    assert.equal(one?.observed?.endpoint, expected);
  }
});

test("the header of a slice has the fleet as it stood there", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const sliced = await collected(sliceRecorded(streamed(items), { ...EVERYTHING, fromRequest: 25 }, new Tally()));
    const [run] = sliced;
    assert.ok(run?.kind === "run");
    const fleet = new Set<string>();
    let arrivals = 0;
    for (const input of inputsOf(items)) {
      if (input.kind === "request-arrived" && arrivals++ === 25) break;
      if (input.kind === "endpoint-joined") fleet.add(input.endpoint.id);
      if (input.kind === "endpoint-left") fleet.delete(input.endpoint);
    }
    assert.deepEqual(
      run.header.endpoints.map(({ id }) => id),
      [...fleet].sort(),
      `seed ${seed}`,
    );
  }
});

test("capping a trace keeps the first turns of each named conversation, whole, and counts the others", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const seen = new Map<string, number>();
    const kept = new Set<string>();
    let named = 0;
    for (const input of inputsOf(items)) {
      if (input.kind !== "request-arrived" || input.request.session === "") continue;
      const turns = seen.get(input.request.session) ?? 0;
      seen.set(input.request.session, turns + 1);
      named++;
      if (turns < 2) kept.add(input.request.id);
    }
    const left = new Tally();
    const capped = await collected(capRecorded(streamed(items), 2, left));
    const isNamed = new Set(
      inputsOf(items).flatMap((input) =>
        input.kind === "request-arrived" && input.request.session !== "" ? [input.request.id] : [],
      ),
    );
    const stays = inputsOf(capped).filter((input) => isNamed.has(idOf(input) ?? ""));
    assert.deepEqual(
      stays,
      inputsOf(items).filter((input) => kept.has(idOf(input) ?? "")),
      `seed ${seed}`,
    );
    assert.ok(named === 0 || left.total >= named - kept.size);
    assert.ok(capped[0]?.kind === "run" && capped[0].header.derived?.replayable === false);
  }
});

test("requests of a trace come in order of arrival, and every one is given out or counted", async () => {
  for (const seed of SEEDS) {
    const items = traceOf(seed);
    const left = new Tally();
    const traffic = await collected(recordedTraffic(streamed(items), left));
    const arrivals = inputsOf(items).filter(({ kind }) => kind === "request-arrived").length;
    assert.equal(traffic.length + left.total, arrivals, `seed ${seed}: ${JSON.stringify(left.entries())}`);
    for (let i = 1; i < traffic.length; i++)
      assert.ok(traffic[i]!.request.arrivalMicros >= traffic[i - 1]!.request.arrivalMicros);
  }
});

test("a workload of single requests with what came of them is the same after it was written as a trace", async () => {
  for (const seed of SEEDS) {
    const traffic = await collected(recordedTraffic(streamed(traceOf(seed)), new Tally()));
    assert.ok(traffic.length > 10, `seed ${seed}: ${traffic.length} requests`);
    const single = traffic.map((one) => ({ ...one, request: { ...one.request, session: "", blockIds: undefined } }));
    const items = await collected(trafficToTrace(streamed(single), HEADER, new Tally()));
    const times = inputsOf(items).map(({ at }) => at);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
      "in order of time",
    );
    const again = await collected(recordedTraffic(streamed(items), new Tally()));
    const figures = (all: typeof traffic) =>
      all.map(({ id, request, observed }) => [
        id,
        request.arrivalMicros - all[0]!.request.arrivalMicros,
        request.promptTokens,
        request.outputTokens,
        observed?.outcome,
        observed?.e2eMicros,
      ]);
    assert.deepEqual(figures(again), figures(single), `seed ${seed}`);
  }
});

test("a turn thinks from the end of the one before it; one that came earlier begins a conversation of its own", async () => {
  const { header } = new TraceDecoder(new LineEncoder({ blockTokens: 16 }).header(HEADER));
  const inputs: Input[] = [];
  // Conversation "a": sent at 0, 5 and 9 s; its second turn ends at 10 s only. "b" is another one.
  for (const [id, session, at, seconds] of [
    ["a0", "a", 0, 2],
    ["b0", "b", 1, 3],
    ["a1", "a", 5, 5],
    ["b1", "b", 4, 1],
    ["a2", "a", 9, 1],
    ["a3", "a", 13, 1],
  ] as const) {
    inputs.push({ kind: "request-arrived", at: at * 1e6, request: request({ id, session }) });
    const end = { kind: "request-finished", at: (at + seconds) * 1e6, requestId: id, outcome: "ok" } as const;
    inputs.push({ ...end, promptTokens: 67, cachedTokens: 0, outputTokens: 5 });
  }
  const records = inputs
    .toSorted((a, b) => a.at - b.at)
    .map((input): TraceItem => ({ kind: "record", input, decision: undefined }));
  const traffic = await collected(recordedTraffic(streamed([{ kind: "run", header }, ...records]), new Tally()));
  assert.deepEqual(
    traffic.map(({ id, request: { session, turn, arrivalMicros, thinkMicros } }) => {
      return [id, session, turn, arrivalMicros / 1e6, thinkMicros === undefined ? undefined : thinkMicros / 1e6];
    }),
    [
      ["a0", "conversation_0", 0, 0, undefined],
      ["b0", "conversation_1", 0, 1, undefined],
      ["b1", "conversation_1", 1, 4, 0],
      ["a1", "conversation_0", 1, 5, 3],
      ["a2", "conversation_2", 0, 9, undefined],
      ["a3", "conversation_2", 1, 13, 3],
    ],
  );
  assert.deepEqual(
    traffic.map(({ observed }) => observed?.e2eMicros),
    [2e6, 3e6, 1e6, 5e6, 1e6, 1e6],
  );
});
