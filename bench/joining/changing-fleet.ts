import { loadEngine } from "#config/engine-file.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import type { ScriptEvent } from "#sim/setting/simulation-options.ts";

/** Of the run, when the newcomer joins, and when the one that comes back is killed and serves again, empty. */
const JOINS_AT_SHARE = 0.3;
const KILLED_AT_SHARE = 0.55;
const BACK_AT_SHARE = 0.65;

export const NEWCOMER = "joins-cold";
export const SLOW = "is-slow";
export const RETURNING = "comes-back";

/** Longer than the model's own, so that the longest conversations are served too. */
const MODEL_TOKENS_MAX = 400_000;

export interface ChangingFleet {
  readonly engines: EngineSpec[];
  readonly fleetEvents: ScriptEvent[];
  readonly engineOf: () => EngineConfig;
  readonly joinsAt: Micros;
  readonly killedAt: Micros;
  readonly backAt: Micros;
}

/**
 * So many H100s, of which one joins with an empty cache while the others have traffic, one is killed and comes back as a
 * new process, and one is an A100 that the router takes for an H100. None states its step times.
 */
export function changingFleet(engines: number, lastsMicros: Micros): ChangingFleet {
  const [fast, slow] = ["h100-llama-3.1-8b", "a100-llama-3.1-8b"].map((name) => ({
    ...loadEngine(name),
    modelTokensMax: MODEL_TOKENS_MAX,
  })) as [EngineConfig, EngineConfig];
  const at = (share: number): Micros => Math.round((share * lastsMicros) / MICROS_PER_SECOND) * MICROS_PER_SECOND;
  const [joinsAt, killedAt, backAt] = [at(JOINS_AT_SHARE), at(KILLED_AT_SHARE), at(BACK_AT_SHARE)];
  const usual = Array.from({ length: engines - 3 }, (_, i) => specOf(`usual-${i}`, fast));
  return {
    engines: [...usual, specOf(RETURNING, fast), specOf(SLOW, slow)],
    engineOf: () => fast,
    fleetEvents: [
      { kind: "endpoint-joined", at: joinsAt, endpoint: endpointOf(NEWCOMER, fast) },
      { kind: "engine-killed", at: killedAt, endpoint: RETURNING },
      { kind: "engine-started", at: backAt, endpoint: RETURNING },
    ],
    joinsAt,
    killedAt,
    backAt,
  };
}

function specOf(id: string, config: EngineConfig): EngineSpec {
  return { config, endpoint: endpointOf(id, config) };
}

function endpointOf(id: string, config: EngineConfig): Endpoint {
  const kvCapacityTokens = (config.kvBlocks - 1) * config.blockTokens;
  return { id, models: [], labels: {}, kvCapacityTokens, concurrencyMax: config.sequencesMax };
}
