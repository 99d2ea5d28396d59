import { type CascadeFile, readCascadeFile } from "#config/cascade-file.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import type { SimulatedCascade } from "#sim/setting/cascade-options.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import { stagesAsked } from "../flag/stage-flags.ts";
import type { SimulateFlags } from "./simulate-flags.ts";

export interface CascadePlan {
  readonly cascade: SimulatedCascade;
  readonly engines: readonly EngineSpec[];
}

/** The cascade that all requests ask for, and its engines in place of `--engine`; undefined without one. */
export function cascadePlan(flags: SimulateFlags): CascadePlan | undefined {
  if (flags.cascade === undefined) return undefined;
  const problems = [
    ["--lose", flags.lose.length > 0],
    ["--set", flags.set.length > 0],
    ...stagesAsked(flags),
    ["--autoscaler-enabled", flags.autoscalerEnabled],
    ["--engine", flags.engine !== undefined],
    ["--model-config", flags.modelConfig !== undefined],
    ["--model", flags.model !== undefined],
    ["--routers", flags.routers > 1],
  ].flatMap(([flag, given]) => (given === true ? [`--cascade: expected without ${flag}, got both`] : []));
  if (problems.length > 0) throw new ConfigError(problems);
  const file = readCascadeFile(flags.cascade);
  return { cascade: cascadeOf(file), engines: file.steps.flatMap((step) => enginesOf(step, file, flags)) };
}

function cascadeOf({ name, steps, judgedTokens, escalationsInFlightMax }: CascadeFile): SimulatedCascade {
  return {
    spec: {
      name,
      steps: steps.map(({ model, logprobMin }) => ({ model, ...(logprobMin !== undefined && { logprobMin }) })),
      judgedTokensMax: judgedTokens ?? Infinity,
    },
    confidence: steps.map((step) => ({
      mean: step.logprobMean,
      deviation: step.logprobDeviation,
      tokenDeviation: step.tokenDeviation,
    })),
    escalationsInFlightMax,
    heldBytesMax: Infinity,
  };
}

function enginesOf(
  { model, engine, instances, logprobMin }: CascadeFile["steps"][number],
  { judgedTokens }: CascadeFile,
  { tokenGaps, check }: SimulateFlags,
): EngineSpec[] {
  const loaded = loadEngine(engine);
  // Where a single token in the middle of an answer counts, an engine cannot pass over it.
  const coalesce = loaded.coalesce && !tokenGaps && (logprobMin === undefined || judgedTokens === undefined);
  const config = { ...loaded, coalesce, check };
  return numberedIds(model, instances).map((id) => ({
    config,
    endpoint: {
      id,
      models: [model],
      labels: {},
      kvCapacityTokens: config.dataParallel * (config.kvBlocks - 1) * config.blockTokens,
      concurrencyMax: config.dataParallel * config.sequencesMax,
    },
  }));
}
