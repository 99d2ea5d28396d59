import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import { simulate } from "#sim/simulate.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const SECOND = MICROS_PER_SECOND;
const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
const RULES = {
  outliers: {
    intervalMicros: 5 * SECOND,
    requestsMin: 5,
    failureShare: 0.3,
    slowFactor: 4,
    ejectMicros: 20 * SECOND,
    ejectMicrosMax: 60 * SECOND,
  },
  slowStart: { windowMicros: 20 * SECOND, shareMin: 0.1 },
  floorShare: 0.25,
};
const ROUTER = {
  seed: 7,
  profiles: { tested: ROUND_ROBIN },
  defaultProfile: "tested",
  blockTokens: 16,
  staleAfterMicros: 3_000_000,
  endpointRules: RULES,
};

/** Runs four engines, the first of which takes `slower` times as long for a step; and replays all that the router got. */
function play(fleetEvents: readonly EngineEvent[], slower = 1) {
  const inputs: Input[] = [];
  const decided: [at: number, place: string | undefined][] = [];
  const specs = engines(4, { stepTime: STEP }).map((spec, i) =>
    i > 0 ? spec : { ...spec, config: { ...spec.config, stepTime: { ...STEP, baseMicros: 10_000 * slower } } },
  );
  const replayed = new Router({ ...ROUTER, index: new ApproximateIndex() });
  const result = simulate(
    cluster(ROUND_ROBIN, specs, {
      router: ROUTER,
      arrivals: new ListedArrivals(Array.from({ length: 1500 }, (_, i) => listed(i, i * 40_000, 64, 5))),
      fleetEvents,
      rules: { ...PATH_RULES, check: { intervalMicros: SECOND, unhealthyAfter: 2, healthyAfter: 2 } },
      observe: (input, decision) => {
        inputs.push(input);
        if (decision !== undefined) decided.push([input.at, placeOf(decision)]);
        assert.deepEqual(placeOf(replayed.accept(input)), placeOf(decision));
      },
    }),
  );
  const share = (from: number, until: number): number => {
    const there = decided.filter(([at]) => at >= from * SECOND && at < until * SECOND);
    const taken = there.filter(([, place]) => place === "engine_000");
    return taken.length / there.length;
  };
  return { ...result, inputs, share };
}

test("a hung engine is left by its health checks before it is judged to hang, and comes back slowly", () => {
  const events: EngineEvent[] = [
    { kind: "engine-hung", at: 10 * SECOND, endpoint: "engine_000" },
    { kind: "engine-continued", at: 20 * SECOND, endpoint: "engine_000" },
  ];
  const { inputs, share, requests } = play(events);
  const checked = inputs.filter((input) => input.kind === "endpoint-checked");
  assert.deepEqual(
    checked.map(({ healthy }) => healthy),
    [false, true],
  );
  const suspended = inputs.find(({ kind }) => kind === "endpoint-suspended");
  assert.ok(checked[0]!.at < 16 * SECOND && checked[0]!.at <= suspended!.at, `${checked[0]!.at} ${suspended?.at}`);
  assert.equal(requests.cut + requests.completed, 1500);
  assert.equal(share(17, 20), 0);
  assert.ok(share(45, 60) > 0.2, `${share(45, 60)}`);
  const first = share(checked[1]!.at / SECOND, checked[1]!.at / SECOND + 6);
  assert.ok(first < 0.15, `it comes back with ${first}`);
});

test("an engine whose tokens are slow is ejected in a simulation as it is live", () => {
  const { inputs, share, requests } = play([], 8);
  assert.equal(requests.completed, 1500);
  assert.ok(!inputs.some(({ kind }) => kind === "endpoint-checked"));
  assert.ok(share(0, 5) > 0.2, `${share(0, 5)}`);
  assert.equal(share(11, 20), 0);
});

function placeOf(decision: Decision | undefined): string | undefined {
  return decision?.kind === "routed" ? decision.endpoint : decision?.kind;
}
