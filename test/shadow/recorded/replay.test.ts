import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Router } from "#core/router.ts";
import { Replay, routerOf } from "#shadow/recorded/replay.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import type { Input } from "#core/input/input.ts";
import { type Step, drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const STEPS = 250;

function headerOf(profiles: Record<string, ProfileSpec>, defaultProfile: string): TraceHeader {
  return { ...HEADER, router: { ...HEADER.router, profiles, defaultProfile, staleAfterMicros: 50_000 } };
}

/** What a recorder would have written of a run, read back from its lines. */
function recorded(header: TraceHeader, log: readonly Step[]): TraceItem[] {
  const encoder = new LineEncoder({ blockTokens: header.router.blockTokens });
  const decoder = new TraceDecoder(encoder.header(header));
  const records = log.map(({ input, decision }) => decoder.decode(encoder.record(input, decision)));
  return [{ kind: "run", header: decoder.header }, ...records];
}

function replayOf(items: readonly TraceItem[], makeRouter?: (header: TraceHeader) => Router) {
  const replay = new Replay(makeRouter);
  for (const item of items) replay.take(item);
  return replay.result();
}

for (const name of profileNames()) {
  test(`${name}: a trace with aborts, retries, endpoints that come and go replays to the same decisions`, () => {
    const header = headerOf({ [name]: loadProfile(name).spec }, name);
    const log = drawTraffic(routerOf(header), 7, STEPS);
    const result = replayOf(recorded(header, log));
    assert.equal(result.inputs, log.length);
    assert.ok(result.decisions > STEPS / 5, `${result.decisions} decisions`);
    assert.equal(result.first?.what, undefined);
    assert.equal(result.differences, 0);
    assert.equal(result.unverifiable, 0);
  });
}

test("decisions that another router made replay, and are counted as its", () => {
  const header = { ...headerOf({ gnomon: loadProfile("gnomon").spec }, "gnomon"), observed: { router: "other" } };
  const drawn = drawTraffic(routerOf(header), 5, STEPS);
  const router = routerOf(header);
  let observed = 0;
  const log = drawn.map(({ input }): Step => {
    if (input.kind !== "request-arrived") return { input, decision: router.accept(input) };
    const ids = router.endpointRows(input.at).map(({ id }) => id);
    const endpoint = ids[observed % Math.max(1, ids.length)] ?? "";
    if (endpoint !== "") observed++;
    const seen: Input = { ...input, observed: { endpoint, by: endpoint === "" ? "none" : "header", sure: 1 } };
    return { input: seen, decision: router.accept(seen) };
  });
  const result = replayOf(recorded(header, log));
  assert.ok(observed > STEPS / 10, `${observed} observed`);
  assert.deepEqual([result.differences, result.observed, result.observedRouters], [0, observed, ["other"]]);
});

test("a policy change in the middle of a trace is replayed too", () => {
  const header = headerOf({ gnomon: loadProfile("gnomon").spec, lmetric: loadProfile("lmetric").spec }, "gnomon");
  const router = routerOf(header);
  const log = drawTraffic(router, 3, STEPS);
  const at = log.at(-1)!.input.at;
  const change = { kind: "profile-changed", at, name: "gnomon", profile: loadProfile("unified").spec } as const;
  log.push({ input: change, decision: router.accept(change) });
  for (let i = 0; i < 40; i++) {
    const { input } = log.find((step) => step.input.kind === "request-arrived")!;
    assert.ok(input.kind === "request-arrived");
    const again = { ...input, at: at + i, request: { ...input.request, id: `again-${i}`, profile: "" } };
    log.push({ input: again, decision: router.accept(again) });
  }
  const result = replayOf(recorded(header, log));
  assert.equal(result.differences, 0);
  assert.ok(result.decisions >= 40);
});

test("a fault in a scorer is caught: at the first decision that it changes, with both breakdowns", () => {
  const { spec } = loadProfile("llm-d");
  const header = headerOf({ "llm-d": spec }, "llm-d");
  const log = drawTraffic(routerOf(header), 5, STEPS);
  const faulty = {
    ...spec,
    scorers: spec.scorers.map((scorer, i) => (i === 0 ? { ...scorer, weight: scorer.weight * 1.0001 } : scorer)),
  };
  const result = replayOf(recorded(header, log), () => routerOf(headerOf({ "llm-d": faulty }, "llm-d")));
  assert.ok(result.differences > 0);
  assert.match(result.first?.what ?? "", /digest|endpoint|reason/);
  assert.ok(result.first?.recorded !== undefined && result.first.replayed !== undefined);
  assert.notDeepEqual([...result.first.recorded.breakdown.totals], [...result.first.replayed.breakdown.totals]);
});

test("each part of a decision that a trace has is compared: one that was recorded otherwise is named", () => {
  const header = headerOf({ gnomon: loadProfile("gnomon").spec }, "gnomon");
  const items = recorded(header, drawTraffic(routerOf(header), 5, STEPS));
  const at = items.findIndex((item) => item.kind === "record" && item.decision?.kind === "routed");
  const item = items[at]!;
  assert.ok(item.kind === "record" && item.decision?.kind === "routed");
  const { decision } = item;
  const forecast = { ttftMicros: 123, tpotMicros: 45 };
  const changes: Record<string, object> = {
    usedLedger: { usedLedger: !decision.usedLedger },
    forecast: { forecast: { ...decision.forecast, ...forecast } },
    hitTokens: { hitTokens: decision.hitTokens + 16 },
    endpoint: { endpoint: `${decision.endpoint}-other` },
    priority: { priority: (decision.priority ?? 0) + 1 },
    reason: { reason: "another" },
    attempt: { attempt: decision.attempt + 1 },
    prefixSource: { prefixSource: "another" },
  };
  for (const [field, change] of Object.entries(changes)) {
    const other = items.with(at, { ...item, decision: { ...decision, ...change } as typeof decision });
    const result = replayOf(other);
    assert.equal(result.differences, 1, field);
    assert.match(result.first?.what ?? "", new RegExp(`^${field}: .* recorded, .* replayed$`));
  }
});

test("after a gap decisions are counted as not comparable, and none as different", () => {
  const header = headerOf({ gnomon: loadProfile("gnomon").spec }, "gnomon");
  const items = recorded(header, drawTraffic(routerOf(header), 11, STEPS));
  const half = Math.floor(items.length / 2);
  const result = replayOf([...items.slice(0, half), { kind: "gap", at: 0, dropped: 3 }, ...items.slice(half + 3)]);
  assert.equal(result.differences, 0);
  assert.ok(result.decisions > 0 && result.unverifiable > 0);
});

test("a profile that asks for what this version does not have is named, and nothing is compared", () => {
  const { spec } = loadProfile("llm-d");
  const header = headerOf({ "llm-d": spec }, "llm-d");
  const log = drawTraffic(routerOf(header), 5, STEPS);
  const changed: readonly (readonly [ProfileSpec, RegExp])[] = [
    [{ ...spec, picker: { plugin: "best-of-three", parameters: {} } }, /picker\.plugin: .*got "best-of-three"/],
    [{ ...spec, picker: { ...spec.picker, parameters: { depth: 3 } } }, /picker\.parameters\.depth: unknown/],
    [{ ...spec, filters: [{ plugin: "newer", parameters: {} }] }, /filters\[0\]\.plugin: .*got "newer"/],
  ];
  for (const [profile, reason] of changed) {
    const atStart = replayOf(recorded(headerOf({ "llm-d": profile }, "llm-d"), log));
    assert.deepEqual([atStart.decisions, atStart.differences], [0, 0]);
    assert.ok(atStart.unverifiable > 0);
    assert.match(atStart.reasons.join(), reason);
    const [run, ...records] = recorded(header, log);
    const input = { kind: "profile-changed", at: 0, name: "llm-d", profile } as const;
    const half = records.length >> 1;
    const later = [run!, ...records.slice(0, half), { kind: "record", input, decision: undefined } as const];
    const inside = replayOf([...later, ...records.slice(half)]);
    assert.equal(inside.differences, 0);
    assert.ok(inside.decisions > 0 && inside.unverifiable > 0);
    assert.match(inside.reasons.join(), reason);
  }
});

test("decisions are numbered one by one: where a record is lost, repeated or moved, nothing after it is compared", () => {
  const header = headerOf({ gnomon: loadProfile("gnomon").spec }, "gnomon");
  const items = recorded(header, drawTraffic(routerOf(header), 11, STEPS));
  const arrivals = items.flatMap((item, i) => (item.kind === "record" && item.decision !== undefined ? [i] : []));
  const at = arrivals[arrivals.length >> 1]!;
  const next = arrivals[(arrivals.length >> 1) + 1]!;
  const moved = items.with(at, items[next]!).with(next, items[at]!);
  for (const damaged of [items.toSpliced(at, 1), items.toSpliced(at, 0, items[at]!), moved]) {
    const result = replayOf(damaged);
    assert.deepEqual([result.differences, result.breaks], [0, 1]);
    assert.ok(result.decisions > 0 && result.unverifiable > 0);
    assert.match(result.reasons.join(), /expected decision \d+, got decision \d+: records are missing or moved/);
  }
});
