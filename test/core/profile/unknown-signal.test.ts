import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ABSTAINED } from "#core/input/breakdown.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { randomFor } from "#core/base/random.ts";
import { Router } from "#core/router.ts";
import { chain, load, request, snapshot } from "../state.ts";

/** Endpoints by how often they are chosen in 400 draws, and the breakdown of the last. */
function chosen(
  name: string,
  snapshots: readonly Snapshot[],
): { counts: number[]; totals: number[]; values: number[] } {
  const profile = buildProfile(name, loadProfile(name).spec);
  const counts = snapshots.map(() => 0);
  const ids = snapshots.map(({ id }) => id);
  const choose = (draw: number) =>
    profile.choose(request({ id: "q" }), snapshots, ids, new Uint8Array(ids.length), randomFor(5, draw));
  for (let draw = 0; draw < 400; draw++) counts[choose(draw).index]!++;
  const { totals, values } = choose(0).breakdown;
  return { counts, totals: [...totals], values: [...values] };
}

const measured = (id: string, ttftMillis: number) =>
  snapshot({ id, requestsInFlight: 1, ttftMicros: ttftMillis * 1000, tpotMicros: 20_000 });

test("an endpoint of which a profile's only scorer knows nothing ties with the best, and the table shows abstained", () => {
  for (const name of ["aibrix-least-latency", "llm-d-latency"]) {
    const { counts, totals, values } = chosen(name, [measured("e0", 400), measured("e1", 200), snapshot({ id: "e2" })]);
    assert.equal(values[2], ABSTAINED, name);
    assert.equal(totals[2], Math.max(totals[0]!, totals[1]!), name);
    assert.ok(counts[2]! > 100, `${name}: the unknown one was tried ${counts[2]} of 400 times`);
    const known = Math.max(counts[0]!, counts[1]!);
    assert.ok(known > 100, `${name}: the best known one was used ${known} of 400 times`);
  }
});

test("a profile without any signal yet chooses evenly", () => {
  for (const name of ["aibrix-least-latency", "aibrix-throughput", "llm-d-latency"]) {
    const { counts } = chosen(
      name,
      ["e0", "e1", "e2", "e3"].map((id) => snapshot({ id })),
    );
    for (const count of counts) assert.ok(count > 60 && count < 140, `${name}: ${counts.join(" ")} of 400`);
  }
});

test("least-latency: what was seen of an endpoint that is idle now does not count, what was just scraped does", () => {
  const idle = snapshot({ id: "e0", ttftMicros: 60_000_000, tpotMicros: 90_000 });
  const busy = snapshot({ ...idle, id: "e0", requestsInFlight: 3 });
  const scraped = snapshot({
    ...idle,
    id: "e0",
    freshness: "fresh",
    load: load({ ttftMicros: 60_000_000, tpotMicros: 90_000 }),
  });
  const rest = [measured("e1", 200), measured("e2", 300)];
  assert.ok(chosen("aibrix-least-latency", [idle, ...rest]).counts[0]! > 100);
  assert.deepEqual(chosen("aibrix-least-latency", [busy, ...rest]).counts, [0, 400, 0]);
  assert.deepEqual(chosen("aibrix-least-latency", [scraped, ...rest]).counts, [0, 400, 0]);
});

test("llm-d-latency: while nothing was observed, free cache, short queues and prefixes decide, a third each", () => {
  const profile = buildProfile("l", { ...loadProfile("llm-d-latency").spec, filters: [] });
  const scraped = (waiting: number, kvUtilization: number) => ({
    freshness: "fresh" as const,
    load: load({ waiting, kvUtilization }),
    kvUtilization,
  });
  const snapshots = [
    snapshot({ id: "e0", ...scraped(8, 0.25), hitBlocks: 4 }),
    snapshot({ id: "e1", ...scraped(2, 0.5), hitBlocks: 1 }),
    snapshot({ id: "e2", ...scraped(0, 0) }),
  ];
  const ids = snapshots.map(({ id }) => id);
  const choice = profile.choose(request({ id: "q" }), snapshots, ids, new Uint8Array(3), randomFor(1, 0));
  const expected = [(0.75 + 0 + 1) / 3, (0.5 + 0.75 + 0.25) / 3, (1 + 1 + 0) / 3];
  expected.forEach((total, i) => assert.ok(Math.abs(choice.breakdown.totals[i]! - total) < 1e-12));
});

/** Where 60 requests one after the other go, each with the latency of its endpoint. */
function served(profile: string, latencyMillis: Readonly<Record<string, number>>): Map<string, number> {
  const router = new Router({
    seed: 3,
    index: new ApproximateIndex(),
    blockTokens: 16,
    profiles: { [profile]: loadProfile(profile).spec },
    defaultProfile: profile,
    staleAfterMicros: 3_000_000,
  });
  for (const id of Object.keys(latencyMillis)) {
    const endpoint = { id, models: ["m"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  const counts = new Map<string, number>();
  let at = 0;
  for (let i = 0; i < 60; i++) {
    const requestId = `r${i}`;
    const asked = request({ id: requestId, blocks: chain(i, 4) });
    const decision = router.accept({ kind: "request-arrived", at, request: asked });
    assert.equal(decision?.kind, "routed");
    const endpoint = decision?.kind === "routed" ? decision.endpoint : "";
    counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
    at += latencyMillis[endpoint]! * 1000;
    router.accept({ kind: "first-token", at, requestId });
    at += 500_000;
    const end = { promptTokens: undefined, cachedTokens: undefined, outputTokens: 20 };
    router.accept({ kind: "request-finished", at, requestId, outcome: "ok", ...end });
  }
  return counts;
}

test("no endpoint stays untried under a profile that follows measurements", () => {
  for (const profile of ["aibrix-least-latency", "aibrix-throughput", "llm-d-latency"]) {
    const counts = served(profile, { a: 100, b: 200, c: 300, d: 400, e: 450 });
    assert.equal(counts.size, 5, `${profile}: ${[...counts].join(" ")}`);
  }
});
