import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ArrivalOrder, movedOrder, type SavedOrder } from "#core/rollout/judge/arrival-order.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { RolloutOutcome } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/plan/rollout-plan.ts";
import { sliceAt, sliceMicros } from "#core/rollout/judge/slice-counts.ts";
import { DESIGNS, planOf, WINDOW_MICROS } from "../rollout-case.ts";

const SECOND = 1_000_000;

/** The place of a request is its endpoint's name. */
function outcomeOf(place: number, arm = 0, e2e = 1, slice = 0): RolloutOutcome {
  return {
    arm,
    window: 0,
    counted: true,
    stretch: 0,
    slice,
    cluster: "",
    status: "ok",
    times: { ttft: 1, tpot: undefined, e2e },
    endpoint: String(place),
    promptTokens: 1,
    cachedTokens: undefined,
  };
}

const placesOf = (outcomes: readonly RolloutOutcome[]) => outcomes.map(({ endpoint }) => Number(endpoint));

test("what goes on is at any time all that came until some time, of what ended or had its time; a restart changes nothing", () => {
  const limit = 30;
  const requests = fc.array(fc.record({ at: fc.nat(40), takes: fc.nat(50), awaits: fc.boolean() }), { maxLength: 60 });
  fc.assert(
    fc.property(requests, fc.nat(80), fc.integer({ min: -99, max: 99 }), (all, restartAt, byMicros) => {
      let [order, moved] = [new ArrivalOrder(), 0];
      const gone = new Set<number>();
      for (let now = 0; now <= 200; now++) {
        if (now === restartAt) {
          const saved = JSON.parse(JSON.stringify(order.saved())) as SavedOrder;
          order = new ArrivalOrder(movedOrder(saved, byMicros, true));
          moved = byMicros;
        }
        for (const [place, { at, takes, awaits }] of all.entries()) {
          if (at === now) order.arrived(at + moved);
          // Half of the time passes before the end, half before what is predicted of it.
          const endAt = at + (awaits ? takes >> 1 : takes);
          if (awaits && endAt === now) order.awaits(at + moved);
          if (at + takes === now) {
            const next = order.ended(at + moved, outcomeOf(place), awaits);
            assert.deepEqual(next, [], "nothing that was seen coming overtakes");
          }
        }
        const released = placesOf(order.release(now - 1 + moved, now - 1 - limit + moved));
        for (const place of released) {
          assert.ok(!gone.has(place), "once");
          gone.add(place);
        }
        const until = Math.max(-1, ...released.map((place) => all[place]!.at));
        for (const [place, { at, takes }] of all.entries()) {
          const isDue = at <= until && at + takes <= now;
          if (isDue && now - 1 - at <= limit) assert.ok(gone.has(place), `${place} came before what went on at ${now}`);
        }
      }
      for (const [place, { takes }] of all.entries())
        if (takes <= limit) assert.ok(gone.has(place), "whatever ends in time is compared");
    }),
  );
});

test("what there is no room for goes on early and is counted, and what it left behind is compared when it ends", () => {
  const order = new ArrivalOrder();
  order.arrived(0);
  let early = 0;
  for (let at = 1; at <= 36_000; at++) {
    order.arrived(at);
    early += order.ended(at, outcomeOf(at)).length;
  }
  assert.ok(early > 3_000 && early < 4_000, `${early}`);
  assert.equal(order.early, early);
  assert.deepEqual(placesOf(order.ended(0, outcomeOf(0))), [0]);
  assert.equal(order.release(36_000, -1).length, 36_000 - early);
});

test("of requests that were in flight when a gateway ended nothing waits for ever", () => {
  const order = new ArrivalOrder();
  for (const at of [0, 0, 1, 2]) order.arrived(at);
  assert.deepEqual(order.ended(1, outcomeOf(1)), []);
  order.awaits(2);
  assert.deepEqual(order.release(9, -9), []);
  const again = new ArrivalOrder(movedOrder(order.saved(), 100, false));
  assert.deepEqual(placesOf(again.release(109, 0)), [1], "what is to be predicted is still awaited");
  again.ended(102, outcomeOf(2), true);
  assert.deepEqual(placesOf(again.release(109, 0)), [2]);
});

test("an arm whose slow answers take longer never looks quicker while they are under way, by request, tenant or session", () => {
  const splits = DESIGNS.filter((design): design is Extract<Design, { kind: "split" }> => design.kind === "split");
  assert.equal(splits.length, 3);
  for (const design of splits) {
    const judge = new Judge({
      plan: planOf(design),
      level: 0.05,
      plannedCount: 20,
      settleMicros: 600 * SECOND,
      windowSamplesMin: 1,
      guardrails: [],
      predictions: [],
    });
    const step = sliceMicros(WINDOW_MICROS);
    const ends: [at: number, outcome: RolloutOutcome][] = [];
    let looks = 0;
    for (let now = 0; now < 3 * WINDOW_MICROS; now += step) {
      const place = Math.round(now / step);
      if (now < WINDOW_MICROS) {
        for (const arm of [0, 1]) {
          judge.arrived(0, WINDOW_MICROS, sliceAt(0, WINDOW_MICROS, place));
          // Every second one is slow, half as slow again in the other arm.
          const e2e = place % 2 === 0 ? SECOND : (arm === 0 ? 20 : 30) * SECOND;
          const cluster = design.by === "request" ? "" : `${place} ${arm}`;
          ends.push([now + e2e, { ...outcomeOf(place, arm, e2e, place), cluster }]);
        }
      }
      for (const [endAt, outcome] of ends) if (endAt > now - step && endAt <= now) judge.observe(outcome);
      judge.advance(now);
      const { mean, count } = judge.difference(1, "e2e", "mean");
      if (count < 4) continue;
      looks++;
      const [control, other] = judge.compared.map((tally) => tally.samples("e2e"));
      assert.ok(Math.abs(other! - control!) <= 0, `as many of both arms: ${control} ${other}`);
      assert.ok(mean >= 0, `${design.by} at ${now / SECOND} s: ${mean}`);
    }
    assert.ok(looks > 100);
    assert.equal(judge.difference(1, "e2e", "mean").mean, 5 * SECOND);
  }
});
