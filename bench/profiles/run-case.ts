import { loadEngine } from "#config/engine-file.ts";
import type { NamedProfile } from "#config/profile-file.ts";
import type { Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import type { RoutersOptions } from "#sim/setting/routers-options.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { type SimulationResult, simulate } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { type Case, ENGINES_DEFAULT, STALE_AFTER_INTERVALS, type Study } from "./case.ts";
import { PLAIN_CLUSTER } from "../plain-cluster.ts";

/** Longer than the model's own, so that the longest conversations are served too. */
const MODEL_TOKENS_MAX = 400_000;

/** Names of engines; a fleet has them in turn. */
const FLEETS = {
  even: ["h100-llama-3.1-8b"],
  mixed: ["h100-llama-3.1-8b", "a100-llama-3.1-8b"],
  sizes: ["h100-llama-3.1-8b", "h100-llama-3.1-8b"],
} as const;
/** Of a fleet of two sizes, what the smaller engines have of the larger ones' cache, batch and step. */
const SMALL_SHARE = 1 / 4;

/** What few benches ask for. */
interface CaseExtras {
  /** One router where they are left out. */
  readonly routers?: RoutersOptions | undefined;
  /** Of the router; as the engines have it where it is left out. */
  readonly blockTokens?: number;
  readonly observe?: SimulationOptions["observe"];
  /** In place of the study's fleet. */
  readonly engines?: EngineSpec[];
  /** What becomes of it, and the engines of those that join. */
  readonly changes?: Pick<SimulationOptions, "fleetEvents" | "engineOf">;
}

/** One profile over one workload, its gauges read every so often. */
export function runCase(
  one: Pick<Case, "rateScale">,
  study: Study,
  requests: readonly WorkloadRequest[],
  { name, spec }: NamedProfile,
  scrapeMicros: Micros,
  { routers, blockTokens: given, observe, engines = fleetOf(study), changes }: CaseExtras = {},
): SimulationResult {
  const blockTokens = given ?? engines[0]!.config.blockTokens;
  return simulate({
    router: {
      seed: study.seed,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens,
      staleAfterMicros: STALE_AFTER_INTERVALS * scrapeMicros,
    },
    ...(routers && { routers }),
    ...(observe && { observe }),
    ...changes,
    engines,
    arrivals: new WorkloadArrivals(requests, {
      seed: study.seed,
      blockTokens,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: (one.rateScale * study.engines) / ENGINES_DEFAULT,
    }),
    signals: scrapedEvery(scrapeMicros),
    ...PLAIN_CLUSTER,
  });
}

function fleetOf({ engines, fleet: kind }: Pick<Study, "engines" | "fleet">): EngineSpec[] {
  const configs = FLEETS[kind].map((name) => ({ ...loadEngine(name), modelTokensMax: MODEL_TOKENS_MAX }));
  return Array.from({ length: engines }, (_, i): EngineSpec => {
    const large = configs[i % configs.length]!;
    const config = kind === "sizes" && i % 2 === 1 ? small(large) : large;
    return {
      config,
      endpoint: {
        id: `engine-${String(i).padStart(2, "0")}`,
        models: [],
        labels: {},
        kvCapacityTokens: (config.kvBlocks - 1) * config.blockTokens,
        concurrencyMax: config.sequencesMax,
      },
    };
  });
}

function small(config: EngineConfig): EngineConfig {
  const share = (count: number): number => Math.round(count * SMALL_SHARE);
  const { kvBlocks, sequencesMax, batchTokensMax } = config;
  return {
    ...config,
    kvBlocks: share(kvBlocks),
    sequencesMax: share(sequencesMax),
    batchTokensMax: share(batchTokensMax),
  };
}
