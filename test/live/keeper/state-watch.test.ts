import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { StateWatch } from "#live/keeper/state-watch.ts";

const STALE_AFTER = 3 * MICROS_PER_SECOND;

function underTest() {
  const { name, spec } = loadProfile("gnomon");
  const router = new Router({
    seed: 1,
    profiles: { [name]: spec },
    defaultProfile: name,
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: STALE_AFTER,
  });
  const events: FaultEvent[] = [];
  const state = { at: 0, dropped: 0 };
  const watch = new StateWatch({
    rows: (at): readonly EndpointRow[] => router.endpointRows(at),
    directory: { get: (id) => ({ id, url: `http://${id}`, state: "ready", detail: "", models: [] }) as never },
    keeper: { rows: () => [{ url: "http://a", lastError: "timeout after 2000 ms" } as never] },
    staleAfterMicros: STALE_AFTER,
    losses: [{ kind: "recorder-dropped", total: () => state.dropped, detail: "full", done: "counted" }],
    report: (event) => void events.push(event),
    now: () => state.at,
  });
  const join = (id: string): void => {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: state.at, endpoint });
  };
  const scraped = (id: string): void =>
    router.accept({ kind: "load-observed", at: state.at, endpoint: id, load: { running: 0 } as never }) as undefined;
  const lookAt = (seconds: number): string[] => {
    state.at = seconds * MICROS_PER_SECOND;
    events.length = 0;
    watch.look();
    return events.map(({ kind, endpoint }) => `${kind} ${endpoint ?? ""}`);
  };
  return { watch, events, state, join, scraped, lookAt };
}

test("signals that grow old are one line, and one when they are back", () => {
  const { watch, events, join, scraped, lookAt } = underTest();
  join("a");
  scraped("a");
  assert.deepEqual(lookAt(2), []);
  assert.deepEqual(lookAt(4), ["signals-stale a"]);
  assert.equal(events[0]!.detail, "its metrics were not read lately: timeout after 2000 ms");
  assert.deepEqual(events[0]!.figures, { ageMillis: 4_000 });
  assert.deepEqual(lookAt(5), [], "what goes on is not said again");
  scraped("a");
  assert.deepEqual(lookAt(6), ["signals-fresh a"]);
  assert.deepEqual(lookAt(7), []);
  watch.stop();
});

test("an endpoint that was never scraped is reported after the same time", () => {
  const { watch, events, join, lookAt } = underTest();
  join("b");
  assert.deepEqual(lookAt(1), []);
  assert.deepEqual(lookAt(3), []);
  assert.deepEqual(lookAt(5), ["signals-stale b"]);
  assert.equal(events[0]!.detail, "its metrics were never read");
  watch.stop();
});

test("a loss that goes on is a line in ten seconds with what was lost since, and the rest at the end", () => {
  const { watch, events, state, lookAt } = underTest();
  const records: (number | undefined)[] = [];
  for (let second = 0; second < 25; second++) {
    state.dropped = 100 * second;
    if (lookAt(second).length > 0) records.push(events[0]!.figures!["records"]);
  }
  assert.deepEqual(records, [100, 1_000, 1_000]);
  events.length = 0;
  state.dropped = 2_500;
  watch.stop();
  assert.deepEqual(events[0]?.figures, { records: 400, recordsInAll: 2_500 });
});
