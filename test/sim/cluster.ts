import type { ProfileSpec } from "#core/plugin/spec.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import { NO_LATENCY, type SimulationOptions } from "#sim/setting/simulation-options.ts";
import type { ListedArrival } from "../../bench/simulate/listed-arrivals.ts";

export const ROUND_ROBIN: ProfileSpec = {
  filters: [],
  scorers: [],
  picker: { plugin: "round-robin", parameters: {} },
};

export const WEIGHTED: ProfileSpec = {
  filters: [],
  scorers: [
    { plugin: "prefix-affinity", weight: 3, parameters: {} },
    { plugin: "queue-depth", weight: 2, parameters: {} },
    { plugin: "kv-utilization", weight: 2, parameters: {} },
  ],
  picker: { plugin: "max-score", parameters: {} },
};

export function engines(count: number, config: Partial<EngineConfig> = {}): EngineSpec[] {
  return Array.from({ length: count }, (_, number) => {
    const engine = engineDefaults({ check: true, ...config });
    return {
      config: engine,
      endpoint: {
        id: `engine_${String(number).padStart(3, "0")}`,
        models: [],
        labels: {},
        kvCapacityTokens: (engine.kvBlocks - 1) * engine.blockTokens,
        concurrencyMax: engine.sequencesMax,
      },
    };
  });
}

/** A cluster with scraped signals and everything verified; arrivals are the caller's. */
export function cluster(
  profile: ProfileSpec,
  specs: readonly EngineSpec[],
  overrides: Partial<SimulationOptions> & Pick<SimulationOptions, "arrivals">,
): SimulationOptions {
  return {
    router: {
      seed: 7,
      profiles: { tested: profile },
      defaultProfile: "tested",
      blockTokens: 16,
      staleAfterMicros: 3_000_000,
    },
    engines: specs,
    signals: { mode: "scrape", intervalMicros: 100_000, phase: "spread", delayMicros: 5_000, lossShare: 0 },
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: true,
    ...overrides,
  };
}

/** A request that shares nothing. */
export function listed(number: number, arrivalAt: number, promptTokens: number, outputTokens: number): ListedArrival {
  const length = Math.floor(promptTokens / 16);
  const hashes = new Int32Array(2 * length);
  for (let i = 0; i < length; i++) {
    hashes[2 * i] = number;
    hashes[2 * i + 1] = i;
  }
  return {
    route: {
      id: `request_${number}`,
      model: "",
      tenant: "",
      session: "",
      sloClass: "",
      priority: 0,
      promptTokens,
      promptTokensExact: true,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: { hashes, length, blockTokens: 16 },
      profile: "",
    },
    arrivalAt,
    outputTokens,
    deadlineAt: Infinity,
  };
}
