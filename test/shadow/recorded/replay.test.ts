import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Router } from "#core/router.ts";
import { Replay, routerOf } from "#shadow/recorded/replay.ts";
import { TraceDecoder } from "#trace/decoder.ts";
import { TraceEncoder } from "#trace/encoder.ts";
import type { TraceHeader, TraceItem } from "#trace/record.ts";
import { type Step, drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const STEPS = 250;

function headerOf(profiles: Record<string, ProfileSpec>, defaultProfile: string): TraceHeader {
  return { ...HEADER, router: { ...HEADER.router, profiles, defaultProfile, staleAfterMicros: 50_000 } };
}

/** What a recorder would have written of a run, read back from its lines. */
function recorded(header: TraceHeader, log: readonly Step[]): TraceItem[] {
  const encoder = new TraceEncoder({ blockTokens: header.router.blockTokens });
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

test("after a gap decisions are counted as not comparable, and none as different", () => {
  const header = headerOf({ gnomon: loadProfile("gnomon").spec }, "gnomon");
  const items = recorded(header, drawTraffic(routerOf(header), 11, STEPS));
  const half = Math.floor(items.length / 2);
  const result = replayOf([...items.slice(0, half), { kind: "gap", at: 0, dropped: 3 }, ...items.slice(half + 3)]);
  assert.equal(result.differences, 0);
  assert.ok(result.decisions > 0 && result.unverifiable > 0);
});
