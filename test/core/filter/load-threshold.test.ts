import assert from "node:assert/strict";
import { test } from "node:test";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { loadThreshold } from "#core/filter/load-threshold.ts";
import { randomFor } from "#core/base/random.ts";
import { load, request, snapshot } from "../state.ts";

const FULL = { waitingMax: 3, runningMax: 5, inFlightMax: 7, kvUtilizationMax: 0.5 };
const AT_EVERY_BOUND = { waiting: 3, running: 5, inFlight: 7, kv: 0.5 };

function endpoint(id: string, over: Partial<typeof AT_EVERY_BOUND> = {}): Snapshot {
  const { waiting, running, inFlight, kv } = { ...AT_EVERY_BOUND, ...over };
  return snapshot({
    id,
    freshness: "fresh",
    load: load({ waiting, running }),
    requestsInFlight: inFlight,
    kvUtilization: kv,
  });
}

function kept(candidates: readonly Snapshot[], more: Record<string, string> = {}): string {
  const keep = new Uint8Array(candidates.length).fill(1);
  const filter = loadThreshold.create("load-threshold", { ...FULL, ...more });
  filter.filter(request({ id: "r" }), candidates, keep, randomFor(1, 1));
  return candidates.flatMap(({ id }, i) => (keep[i] === 1 ? [id] : [])).join("");
}

test("an endpoint at every bound stays, one beyond a single one goes", () => {
  for (const beyond of [{ waiting: 4 }, { running: 6 }, { inFlight: 8 }, { kv: 0.5001 }]) {
    assert.equal(kept([endpoint("a", beyond), endpoint("b")]), "b", JSON.stringify(beyond));
  }
});

test("where none is below its bounds all stay, or none where that is asked for", () => {
  const full = [endpoint("a", { waiting: 9 }), endpoint("b", { kv: 1 })];
  assert.equal(kept(full), "ab");
  assert.equal(kept(full, { whenEmpty: "refuse" }), "");
});
