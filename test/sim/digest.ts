import { createHash } from "node:crypto";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { cluster, engines } from "./cluster.ts";

const SPEC = `
conversations: 150
arrivals: { process: gamma, ratePerSecond: 40, cv: 2 }
groups:
  - name: shared
    weight: 3
    prefixes: 4
    zipfExponent: 1
    prefixTokens: 256
    userTokens: { distribution: normal, mean: 100, stddev: 60, min: 1, max: 400 }
    outputTokens: { distribution: lognormal, median: 40, sigma: 1, min: 1, max: 300 }
    turns: { distribution: geometric, mean: 3, max: 8 }
    thinkSeconds: { distribution: exponential, mean: 0.5 }
    tenant: a
    sloClass: standard
  - name: alone
    userTokens: 700
    outputTokens: 20
    tenant: b
    sloClass: batch
`;

/** A cluster under pressure: sessions, shared prefixes, lost scrapes, and a cache that preempts. */
export function busyRun(
  profile: ProfileSpec,
  seed: number,
  more: Partial<SimulationOptions> = {},
  conversations = 150,
): SimulationResult {
  const report = new ImportReport("spec", "synthetic", true);
  const arrivals = new WorkloadArrivals(
    synthesize(parseSyntheticSpec("spec", SPEC.replace("150", String(conversations))), seed, report),
    {
      seed,
      blockTokens: 16,
      timeoutMicros: 20_000_000,
      timeScale: 1,
      rateScale: 1,
    },
  );
  const specs = engines(3, { kvBlocks: 200, modelTokensMax: 3000 });
  const signals = {
    mode: "scrape",
    intervalMicros: 50_000,
    phase: "spread",
    delayMicros: 7_000,
    lossShare: 0.2,
  } as const;
  return simulate(cluster(profile, specs, { arrivals, signals, ...more }), { standard: { ttftMicros: 500_000 } });
}

/** Of every outcome and every figure, byte for byte. */
export function digest(result: SimulationResult): string {
  const { outcomes: _outcomes, ...figures } = result;
  return createHash("sha256").update(JSON.stringify(figures)).update(outcomesDigest(result)).digest("hex");
}

/** Of every outcome alone. */
export function outcomesDigest({ outcomes }: Pick<SimulationResult, "outcomes">): string {
  const hash = createHash("sha256").update(outcomes.ids.join());
  const columns = [
    outcomes.status,
    outcomes.arrivalAt,
    outcomes.endpoint,
    outcomes.ttft,
    outcomes.e2e,
    outcomes.queueDelay,
    outcomes.outputTokens,
    outcomes.cachedTokens,
    outcomes.expectedTokens,
    outcomes.preemptions,
  ];
  for (const column of columns) hash.update(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
  return hash.digest("hex");
}
