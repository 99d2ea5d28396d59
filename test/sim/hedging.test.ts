import assert from "node:assert/strict";
import { test } from "node:test";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { simulate } from "#sim/simulate.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const coefficients = (baseMicros: number) =>
  ({ kind: "coefficients", baseMicros, perPrefillTokenMicros: 0, perDecodeMicros: 0 }) as const;

test("a request whose first token is late is one of the second engine once that one has a token; both were attempts", () => {
  const specs = [
    ...engines(1, { stepTime: coefficients(2_000_000) }),
    ...engines(2, { stepTime: coefficients(1_000) }).slice(1),
  ];
  const rules = {
    ...PATH_RULES,
    settings: { hedgeMillis: 500, hedgeShareMax: 1 },
  };
  const arrivals = new ListedArrivals([listed(0, 0, 10, 3), listed(1, 10_000, 10, 3)]);
  const { outcomes } = simulate(cluster(ROUND_ROBIN, specs, { arrivals, rules }));
  assert.deepEqual([...outcomes.attempts.subarray(0, 2)], [2, 1]);
  assert.deepEqual([...outcomes.endpoint.subarray(0, 2)], [1, 1]);
  assert.ok(outcomes.ttft[0]! > 500_000 && outcomes.ttft[0]! < 1_500_000, `${outcomes.ttft[0]}`);
});
