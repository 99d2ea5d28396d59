import assert from "node:assert/strict";
import { test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { exponential } from "#trace/import/exponential.ts";
import { ln } from "#trace/import/portable-math.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

/** Every step takes as long, so an answer of n tokens takes n of them. */
const STEP_MICROS = 1_000;
const TOKENS_MEAN = 50;
const REQUESTS = 8_000;

type Service = "memoryless" | "fixed";

function arrivals(utilisation: number, service: Service, seed: number): ListedArrival[] {
  const gaps = randomFor(seed, 1);
  const lengths = randomFor(seed, 2);
  let at = 0;
  return Array.from({ length: REQUESTS }, (_, number) => {
    at += (exponential(gaps) * STEP_MICROS * TOKENS_MEAN) / utilisation;
    const tokens = service === "fixed" ? TOKENS_MEAN : 1 + Math.floor(ln(1 - lengths.next()) / ln(1 - 1 / TOKENS_MEAN));
    return listed(number, Math.round(at), 1, tokens);
  });
}

/** One engine that serves one request at a time. */
function serve(requests: readonly ListedArrival[]): SimulationResult {
  const single = engines(1, {
    sequencesMax: 1,
    check: false,
    stepTime: { kind: "coefficients", baseMicros: STEP_MICROS, perPrefillTokenMicros: 0, perDecodeMicros: 0 },
  });
  return simulate(cluster(ROUND_ROBIN, single, { arrivals: new ListedArrivals(requests) }));
}

/** Lindley's recursion: a request starts when it has arrived and the one before has ended. */
function waits(requests: readonly ListedArrival[]): Float64Array {
  let freeAt = 0;
  return Float64Array.from(requests, ({ arrivalAt, outputTokens }) => {
    const startAt = Math.max(arrivalAt, freeAt);
    freeAt = startAt + outputTokens * STEP_MICROS;
    return startAt - arrivalAt;
  });
}

for (const service of ["memoryless", "fixed"] as const) {
  for (const utilisation of [0.3, 0.6, 0.9]) {
    test(`a queue with ${service} service at utilisation ${utilisation}: every wait is Lindley's`, () => {
      const requests = arrivals(utilisation, service, 11);
      const { outcomes, endedAt, metrics } = serve(requests);
      assert.deepEqual(outcomes.queueDelay, waits(requests));

      const busy = requests.reduce((sum, { outputTokens }) => sum + outputTokens * STEP_MICROS, 0);
      const inSystem = outcomes.e2e.reduce((sum, e2e) => sum + e2e, 0);
      const meanInSystem = areaUnderPopulation(outcomes.arrivalAt, outcomes.e2e) / endedAt;
      const littles = (outcomes.length / endedAt) * (inSystem / outcomes.length);
      assert.ok(Math.abs(meanInSystem - littles) <= 1e-9 * littles, "Little: L = lambda W");
      assert.equal(metrics.e2eMicros["all"]?.count, REQUESTS);
      assert.ok(endedAt >= busy, "one server does no more than its time");
    });
  }
}

/** Integral of the number of requests in the system over time, from its jumps. */
function areaUnderPopulation(arrivalAt: Float64Array, e2e: Float64Array): number {
  const jumps = [...arrivalAt].flatMap((at, i): [number, number][] => [
    [at, 1],
    [at + e2e[i]!, -1],
  ]);
  jumps.sort(([a], [b]) => a - b);
  let area = 0;
  let inside = 0;
  let before = 0;
  for (const [at, jump] of jumps) {
    area += inside * (at - before);
    inside += jump;
    before = at;
  }
  return area;
}
