import { ConfigError } from "#config/config-error.ts";
import { engineNames, loadEngine } from "#config/engine-file.ts";
import { unknownWord } from "#config/problem.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineConfig, KvTierConfig } from "#engine/config.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import { boardNamed, modelIn } from "./model-on-board.ts";
import type { SimulateFlags } from "./simulate-flags.ts";
import type { SimulatePolicies } from "./simulate-policies.ts";

/** The engine that flags and policies describe: a file's, or a model on a board by roofline. */
export function engineOf(flags: SimulateFlags, policies: SimulatePolicies): EngineConfig {
  if (flags.modelConfig !== undefined && flags.engine !== undefined)
    throw new ConfigError(["--engine: expected to be alone, got it together with --model-config"]);
  if (flags.modelConfig === undefined && flags.model === undefined && flags.hardware !== undefined)
    throw new ConfigError(["--hardware: expected together with --model or --model-config, got it alone"]);
  const named = flags.model === undefined ? flags.engine : engineNamed(flags.model, flags);
  const base = flags.modelConfig === undefined ? loadEngine(named) : modelledByConfig(flags.modelConfig, flags);
  const { kvGpuBlocks, kvCpuBlocks, tokenGaps, check } = flags;
  const kvBlocks = kvGpuBlocks ?? base.kvBlocks;
  // That of no model in particular takes whatever has room.
  const isNamed = named !== undefined || flags.modelConfig !== undefined;
  return {
    ...base,
    kvBlocks,
    // A longer request could never be served.
    modelTokensMax: Math.min(isNamed ? base.modelTokensMax : Infinity, (kvBlocks - 1) * base.blockTokens),
    scheduler: policies.scheduler ?? base.scheduler,
    preemption: policies.preemption ?? base.preemption,
    tier: kvCpuBlocks === undefined ? base.tier : tierOf(kvCpuBlocks, flags),
    coalesce: base.coalesce && !tokenGaps,
    check,
  };
}

/** The engine file of a model on a board: their names are `BOARD-MODEL`. */
function engineNamed(model: string, { hardware, engine, modelConfig }: SimulateFlags): string {
  if (engine !== undefined || modelConfig !== undefined)
    throw new ConfigError(["--model: expected without --engine and --model-config, got both"]);
  const all = engineNames();
  const fits = all.filter((name) => name.endsWith(`-${model}`));
  const models = [...new Set(all.map((name) => name.slice(name.indexOf("-") + 1)))];
  if (fits.length === 0) throw new ConfigError([`--model: ${unknownWord("model", model, models)}`]);
  const boards = fits.map((name) => name.slice(0, -model.length - 1));
  const chosen = fits.filter((_name, i) => hardware === undefined || boards[i] === hardware.toLowerCase());
  const [only, another] = chosen;
  if (only !== undefined && another === undefined) return only;
  throw new ConfigError([`--hardware: expected one of ${boards.join(", ")} for ${model}, got ${hardware ?? "none"}`]);
}

/** A Hugging Face config.json on a board: step time by a roofline of its kernels, KV blocks by what memory is left. */
function modelledByConfig(file: string, flags: SimulateFlags): EngineConfig {
  const { hardware: name = "H100", tp: tensorParallel, gpuMemoryUtilization: utilization } = flags;
  const engine = modelledEngine(modelIn(file), boardNamed(name), {
    tensorParallel,
    utilization,
    eager: flags.enforceEager,
    asyncScheduling: flags.asyncScheduling,
    connector: flags.architecture === "pd",
  });
  if (engine.kvBlocks < 2) {
    throw new ConfigError([
      `--hardware: expected boards with room beside the weights, got ${tensorParallel} of ${name}`,
    ]);
  }
  return engine;
}

function tierOf(cpuBlocks: number, flags: SimulateFlags): KvTierConfig {
  return {
    cpuBlocks,
    offloadThreshold: flags.kvOffloadThreshold,
    transferBaseMicros: flags.kvTransferBase,
    blockBytes: flags.kvBlockBytes,
    bytesPerSecond: flags.kvTransferBandwidth,
    thrashWindowMicros: MICROS_PER_SECOND,
  };
}
