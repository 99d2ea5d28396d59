import assert from "node:assert/strict";
import { test } from "node:test";
import type { Load } from "#core/endpoint/endpoint.ts";
import { simulate } from "#sim/simulate.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { ROUND_ROBIN, cluster, engines, listed } from "./cluster.ts";

test("a scrape has the time between tokens while answers are still being written, as vLLM's histogram does", () => {
  const seen: Load[] = [];
  const result = simulate(
    cluster(ROUND_ROBIN, engines(1), {
      arrivals: new ListedArrivals([listed(1, 0, 640, 400), listed(2, 50_000, 64, 100)]),
      observe: (input) => {
        if (input.kind === "load-observed") seen.push(input.load);
      },
    }),
  );
  const { outcomes } = result;
  const tpot = (row: number) => (outcomes.e2e[row]! - outcomes.ttft[row]!) / (outcomes.outputTokens[row]! - 1);
  const told = seen.map(({ tpotMicros }) => tpotMicros).filter((micros) => micros !== undefined);
  assert.ok(told.length > 5, `${told.length} scrapes of ${seen.length} while tokens came`);
  const mean = told.reduce((sum, micros) => sum + micros, 0) / told.length;
  assert.ok(Math.abs(mean / tpot(0) - 1) < 0.05, `${mean}, and the answer had ${tpot(0)}`);
  assert.equal(seen.at(0)?.tpotMicros, undefined, "nothing is told before the second token");
});
