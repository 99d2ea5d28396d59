import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { Simulation } from "#sim/simulation.ts";
import type { FleetEvent, SimulationOptions } from "#sim/setting/simulation-options.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, WEIGHTED } from "./cluster.ts";
import { outcomesDigest } from "./digest.ts";

const INTERVAL = 100_000;
const YEAR = 365 * 86_400 * 1_000_000;

interface Seen {
  /** Every decision with all that it saw. */
  readonly decisions: readonly string[];
  readonly outcomes: string;
  readonly events: number;
}

function seenBy(overrides: Partial<SimulationOptions> & Pick<SimulationOptions, "arrivals">): Seen {
  const decisions: string[] = [];
  const simulation = new Simulation({
    ...cluster(WEIGHTED, engines(3, { kvBlocks: 200, modelTokensMax: 2000 }), overrides),
    observe: (_input, decision) => decision !== undefined && decisions.push(JSON.stringify(decision)),
  });
  simulation.run();
  return { decisions, outcomes: outcomesDigest(simulation), events: simulation.events };
}

/** A fleet event that changes nothing, so often that no time is quiet. */
function* nothing(until: number): Generator<FleetEvent> {
  for (let at = 0; at < until; at += INTERVAL / 2) yield { kind: "endpoint-uncordoned", at, endpoint: "nobody" };
}

/** One request a gap; every fifth has the same prompt. */
const arrivalsAfter = (gaps: readonly number[]) => {
  let at = 0;
  return gaps.map((gap, i) => {
    const arrival = listed(i % 5, (at += gap), 40 + 16 * (i % 3), 1 + (i % 30));
    return { ...arrival, route: { ...arrival.route, id: `request_${i}` } };
  });
};

test("a quiet time of which scrapes are left out leaves behind what all its scrapes would: every decision is the same", () => {
  const gap = fc.oneof(fc.nat(20_000), fc.nat(40 * INTERVAL), fc.constant(7 * INTERVAL));
  fc.assert(
    fc.property(
      fc.array(gap, { minLength: 2, maxLength: 12 }),
      fc.constantFrom(0, 5_000, INTERVAL, 3 * INTERVAL),
      fc.constantFrom("spread", "together"),
      fc.constantFrom(0, 0.3),
      (gaps, delayMicros, phase, lossShare) => {
        const signals = { mode: "scrape", intervalMicros: INTERVAL, phase, delayMicros, lossShare } as const;
        const given = arrivalsAfter(gaps);
        const until = gaps.reduce((sum, one) => sum + one, 0) + 10 * INTERVAL;
        const each = seenBy({ arrivals: new ListedArrivals(given), signals, fleetEvents: [...nothing(until)] });
        const some = seenBy({ arrivals: new ListedArrivals(given), signals });
        assert.deepEqual(some.decisions, each.decisions);
        assert.equal(some.outcomes, each.outcomes);
      },
    ),
    { numRuns: 60 },
  );
});

test("a gap of years takes no more work than one of a minute, and what comes after it goes where it would have", () => {
  const after = (gap: number, fleetEvents?: readonly FleetEvent[]) =>
    seenBy({
      arrivals: new ListedArrivals(arrivalsAfter([0, 5_000, 20_000, gap, 3_000, 4_000, gap, 10])),
      ...(fleetEvents && { fleetEvents }),
    });
  const minute = after(600 * INTERVAL);
  const years = after(100 * YEAR);
  const endpoints = ({ decisions }: Seen) =>
    decisions.map((line) => (JSON.parse(line) as { endpoint: string }).endpoint);
  assert.deepEqual(endpoints(years), endpoints(minute));
  assert.ok(years.events <= minute.events && years.events < 1_000, `${years.events} events, ${minute.events}`);
  const joins = after(YEAR, [{ kind: "endpoint-uncordoned", at: YEAR / 2, endpoint: "nobody" }]);
  assert.deepEqual(endpoints(joins), endpoints(minute));
  assert.ok(joins.events < 1_000);
});

test("where scrapes are lost, years take the work of so many scrapes at most", () => {
  const signals = {
    mode: "scrape",
    intervalMicros: INTERVAL,
    phase: "spread",
    delayMicros: 0,
    lossShare: 0.5,
  } as const;
  const { events, decisions } = seenBy({ arrivals: new ListedArrivals(arrivalsAfter([0, YEAR, YEAR])), signals });
  assert.equal(decisions.length, 3);
  assert.ok(events < 70_000, String(events));
});

test("no policy works through a year without requests step by step", () => {
  for (const name of profileNames()) {
    const { spec } = loadProfile(name);
    const options = cluster(spec, engines(2), { arrivals: new ListedArrivals(arrivalsAfter([0, YEAR, YEAR, 10])) });
    const simulation = new Simulation(options);
    simulation.run();
    assert.equal(simulation.outcomes.length, 4);
    assert.ok(simulation.events < 1_000, name);
  }
});
