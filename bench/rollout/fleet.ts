import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { loadProfile } from "#config/profile-file.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import type { ArrivalSource } from "#sim/setting/arrival-source.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { PLAIN_CLUSTER } from "../plain-cluster.ts";

export const ENGINES = 4;
/** Label of the endpoints that names their pool. */
export const POOL_LABEL = "pool";
export const POOLS: readonly string[] = ["a", "b"];

export const ENGINE: EngineConfig = engineDefaults({
  kvBlocks: 2001,
  modelTokensMax: 16_384,
  batchTokensMax: 8192,
  stepTime: { kind: "coefficients", baseMicros: 5752.705, perPrefillTokenMicros: 17.25086, perDecodeMicros: 5.99914 },
});

/** Traffic of a study: conversations of about three turns, of which most share one of some prefixes. */
export interface Traffic {
  readonly name: string;
  readonly prefixes: number;
  readonly prefixTokens: number;
  readonly sharedShare: number;
}

export const TRAFFICS: readonly Traffic[] = [
  { name: "shared prefixes", prefixes: 40, prefixTokens: 2048, sharedShare: 0.8 },
  { name: "conversations", prefixes: 1, prefixTokens: 0, sharedShare: 1 },
];

export function workloadOf(traffic: Traffic, conversationsPerSecond: number, seconds: number, seed: number) {
  const lengths = `
    userTokens: { distribution: normal, mean: 400, stddev: 150, min: 16, max: 1500 }
    outputTokens: { distribution: normal, mean: 60, stddev: 25, min: 2, max: 200 }
    turns: { distribution: normal, mean: 3, stddev: 1, min: 1, max: 6 }
    thinkSeconds: 1`;
  const { prefixes, prefixTokens, sharedShare } = traffic;
  const alone = sharedShare === 1 ? "" : `\n  - name: alone\n    weight: ${1 - sharedShare}${lengths}`;
  const spec = `
conversations: ${Math.round(conversationsPerSecond * seconds)}
arrivals: { process: poisson, ratePerSecond: ${conversationsPerSecond} }
groups:
  - name: shared
    weight: ${sharedShare}
    prefixes: ${prefixes}
    zipfExponent: 0.8
    prefixTokens: ${prefixTokens}${lengths}${alone}
`;
  const report = new ImportReport("study", "synthetic", true);
  return [...synthesize(parseSyntheticSpec("study", spec), seed, report)];
}

export function arrivalsOf(workload: readonly WorkloadRequest[], seed: number): ArrivalSource {
  return new WorkloadArrivals(workload, { seed, blockTokens: 16, timeoutMicros: Infinity, timeScale: 1, rateScale: 1 });
}

export function profileNamed(name: string): ProfileSpec {
  return loadProfile(name).spec;
}

/** `speed` multiplies all step times: 1.1 is a tenth slower. */
export function engineAt(speed: number): EngineConfig {
  const { stepTime } = ENGINE;
  if (stepTime.kind !== "coefficients") throw new Error("the study's engine has coefficients");
  return engineDefaults({
    ...ENGINE,
    stepTime: {
      kind: "coefficients",
      baseMicros: stepTime.baseMicros * speed,
      perPrefillTokenMicros: stepTime.perPrefillTokenMicros * speed,
      perDecodeMicros: stepTime.perDecodeMicros * speed,
    },
  });
}

export function clusterOf(
  profiles: Readonly<Record<string, ProfileSpec>>,
  arrivals: ArrivalSource,
  seed: number,
  speed = 1,
): SimulationOptions {
  const config = engineAt(speed);
  const [defaultProfile] = Object.keys(profiles);
  return {
    router: {
      seed,
      profiles,
      defaultProfile: defaultProfile!,
      blockTokens: 16,
      staleAfterMicros: 3 * MICROS_PER_SECOND,
    },
    engines: Array.from({ length: ENGINES }, (_, number) => ({
      config,
      endpoint: {
        id: `engine_${number}`,
        models: [],
        labels: { [POOL_LABEL]: POOLS[number % POOLS.length]! },
        kvCapacityTokens: (config.kvBlocks - 1) * config.blockTokens,
        concurrencyMax: config.sequencesMax,
      },
    })),
    arrivals,
    signals: scrapedEvery(MICROS_PER_SECOND),
    ...PLAIN_CLUSTER,
  };
}
