import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import { simulate } from "#sim/simulate.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;
const QUEUE = {
  requestsMax: 8,
  promptTokensMax: 1_000_000,
  ttlMicros: 200_000,
  waitAt: 1,
  fairness: "least-served",
  inputWeight: 1,
  outputWeight: 2,
  shares: {},
  emptyPool: { requestsMax: 8, ttlMicros: 60_000_000, models: [] },
} as const;

for (const shareLagMicros of [0, 10_000, 100_000, undefined])
  test(`requests that only waited at one of several routers leave nothing with the others, lag ${shareLagMicros}`, () => {
    const admission = { ...ADMIT_ALL, saturation: { ...ADMIT_ALL.saturation, requestsMax: 2 }, queue: QUEUE };
    const policy = { profiles: { tested: ROUND_ROBIN }, defaultProfile: "tested", admission };
    // The end is verified: nothing in flight or charged anywhere, and no input about a request that is not.
    const { requests } = simulate(
      cluster(ROUND_ROBIN, engines(2, { stepTime: STEP }), {
        router: { seed: 7, ...policy, blockTokens: 16, staleAfterMicros: 3_000_000 },
        routers: { count: 3, shareLagMicros, spread: "round-robin" },
        arrivals: new ListedArrivals(Array.from({ length: 200 }, (_, i) => listed(i, i * 5_000, 64, 20))),
      }),
    );
    assert.equal(requests.completed + requests.rejected, 200);
    assert.ok(requests.rejected > 100 && requests.completed > 20, JSON.stringify(requests));
  });
