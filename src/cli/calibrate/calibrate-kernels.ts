import { stringify } from "yaml";
import { ConfigError } from "#config/config-error.ts";
import { achievedBy } from "#engine/achieved.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Hardware } from "#engine/hardware.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { ModelConfig } from "#engine/step-time/hugging-face.ts";
import type { KernelTableSpec } from "#engine/step-time/kernel-table.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import type { BoardExchange, RankExchange } from "#engine/step-time/board-exchange.ts";
import { GRAPH_TOKENS_MAX } from "#engine/step-time/graph-tokens.ts";
import { engineFields } from "#shadow/calibrate/engine-text.ts";
import { writeOutput } from "#drive/output-file.ts";
import { boardNamed, modelIn } from "../simulate/model-on-board.ts";
import { givenSizes, type SizeFlags } from "./engine-sizes.ts";
import type { KernelTarget } from "./kernel-tables/kernel-form.ts";
import { readKernelTables } from "./kernel-tables/kernel-tables.ts";

export interface KernelFlags extends SizeFlags {
  readonly fromKernels?: readonly string[];
  readonly modelConfig?: string;
  readonly hardware?: string;
  readonly tp: number;
  readonly output?: string;
}

/** As LLMServingSim configures boards that are joined by PCIe alone. */
const PCIE_LINK = { gigabytesPerSecond: 16, hopMicros: 20 } as const;
/**
 * Through the host one direction alone is so many times as quick as each of both: NVIDIA's p2pBandwidthLatencyTest without
 * P2P, 22.3 GB/s for 15.3 (github.com/NVIDIA/nccl/issues/814) and 6.34 for 4.33 (github.com/tinygrad/open-gpu-kernel-modules/issues/44).
 */
const PCIE_ONE_WAY = 1.46;
const PCIE_GBS_MAX = 64;

/** Writes an engine of measured kernels: tables of one of its boards, and the model's config.json. */
export function calibrateKernels(folders: readonly string[], flags: KernelFlags): void {
  const { modelConfig, hardware, tp: tensorParallel, output } = flags;
  if (modelConfig === undefined || hardware === undefined)
    throw new ConfigError(["--from-kernels: expected together with --model-config and --hardware, got it alone"]);
  const model = modelIn(modelConfig);
  const engine = kernelEngine(folders, { model, board: boardNamed(hardware), tensorParallel }, givenSizes(flags));
  const comment = `# Measured kernels of one ${hardware} in ${folders.join(", ")}, put together by gnomon. Not validated on a run of this engine.`;
  const text = `${comment}\n${stringify(engineFields(engine), { lineWidth: 0 })}`;
  writeOutput(output ?? "-", text);
}

/** The engine of measured kernels, as vLLM would serve its model by default but for what is given. Throws ConfigError. */
export function kernelEngine(
  folders: readonly string[],
  target: KernelTarget,
  given: Partial<EngineConfig>,
): EngineConfig {
  const { model, board, tensorParallel } = target;
  const { experts, layers, hidden, bytesPerParameter } = model.shape;
  const { kernels, expertRows, exchanged } = readKernelTables(folders, target);
  if ((experts === undefined) !== (expertRows === undefined)) {
    const [wanted, got] =
      experts === undefined ? ["no moe.csv for a dense model", "one"] : ["moe.csv for a mixture", "none"];
    throw new ConfigError([`--from-kernels: ${folders.join(", ")}: expected ${wanted}, got ${got}`]);
  }
  const exchange = exchanged ? undefined : exchangeOf(board, tensorParallel, hidden * bytesPerParameter);
  const sized = { ...modelledEngine(model, board, { tensorParallel, utilization: 0.9 }), ...given };
  if (exchanged && experts !== undefined && sized.dataParallel > 1)
    throw new ConfigError(["--data-parallel: expected 1 for tables of a mixture on one rank's boards"]);
  return {
    ...sized,
    modelTokensMax: Math.min(sized.modelTokensMax, (sized.kvBlocks - 1) * sized.blockTokens),
    stepTime: {
      ...kernels,
      layers,
      graphTokensMax: Math.min(2 * sized.sequencesMax, GRAPH_TOKENS_MAX),
      ...(experts && expertRows && spreadExperts(model, expertRows, board, tensorParallel, sized.dataParallel)),
      ...(exchange && { exchange }),
    },
  };
}

/** The experts of a mixture, spread over all boards of several ranks (vLLM's --enable-expert-parallel). */
function spreadExperts(
  { shape: { experts, hidden, bytesPerParameter } }: ModelConfig,
  rows: readonly ExpertRow[],
  board: Hardware,
  tensorParallel: number,
  ranks: number,
): Pick<KernelTableSpec, "experts" | "ranks"> {
  const { count, perToken } = experts!;
  if (ranks === 1) return { experts: { count, perToken, rows } };
  const bytesBack = hidden * bytesPerParameter;
  return {
    experts: { count, perToken, rows, boards: ranks * tensorParallel },
    ranks: {
      ranks,
      bytesOut: bytesBack + count * bytesPerParameter,
      bytesBack,
      ...linkOf(board, ranks),
      ...oneWayOf(board),
    },
  };
}

/** Of neighbours in a ring of so many boards. */
function linkOf(board: Hardware, gpus: number): Pick<BoardExchange, "gigabytesPerSecond" | "hopMicros"> {
  if (board.linkGbs <= PCIE_GBS_MAX) return PCIE_LINK;
  const { linkBandwidth, reduceMicros } = achievedBy(board.generation);
  return { gigabytesPerSecond: board.linkGbs * linkBandwidth, hopMicros: reduceMicros / (2 * (gpus - 1)) };
}

function oneWayOf({ linkGbs }: Hardware): Pick<RankExchange, "oneWayGigabytesPerSecond"> {
  return linkGbs <= PCIE_GBS_MAX ? { oneWayGigabytesPerSecond: PCIE_ONE_WAY * PCIE_LINK.gigabytesPerSecond } : {};
}

function exchangeOf(board: Hardware, gpus: number, bytesPerToken: number): BoardExchange | undefined {
  if (gpus === 1) return undefined;
  return { gpus, bytesPerToken, ...linkOf(board, gpus) };
}
