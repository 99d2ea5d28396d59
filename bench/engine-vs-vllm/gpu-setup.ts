import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { readHuggingFaceModel } from "#engine/step-time/hugging-face.ts";
import type { BoardExchange } from "#engine/step-time/board-exchange.ts";
import type { ExpertShape, ModelShape } from "#engine/step-time/model-shape.ts";
import { RunMeta } from "./meta.ts";

interface KnownModel {
  readonly layers: number;
  readonly parameters: number;
  readonly hidden: number;
  readonly experts?: ExpertShape;
}

/** What a run's recorded kernels do not show of its model and boards. */
export interface GpuSetup {
  readonly layers: number;
  readonly gpus: number;
  /** Time to read one GPU's share of the weights from its memory: parameters * bytes / GPUs / bandwidth. */
  readonly weightsMicros: number;
  /** Of a mixture of experts. */
  readonly experts: ExpertShape | undefined;
  /** Between several GPUs, where the link between them is known. */
  readonly exchange: BoardExchange | undefined;
}

/** By the models' own cards. */
const MODELS: Readonly<Record<string, KnownModel>> = {
  "meta-llama/Llama-3.1-8B": { layers: 32, parameters: 8.03e9, hidden: 4096 },
  "meta-llama/Llama-3.1-70B": { layers: 80, parameters: 70.6e9, hidden: 8192 },
  "Qwen/Qwen3-8B": { layers: 36, parameters: 8.19e9, hidden: 4096 },
  "Qwen/Qwen3-14B": { layers: 40, parameters: 14.8e9, hidden: 5120 },
  "Qwen/Qwen3-32B": { layers: 64, parameters: 32.8e9, hidden: 5120 },
  "Qwen/Qwen3-30B-A3B-Instruct-2507": {
    layers: 48,
    parameters: 30.5e9,
    hidden: 2048,
    experts: { count: 128, perToken: 8 },
  },
};

/**
 * Of boards without NVLink: GB/s and microseconds from one to the next, as LLMServingSim's configurations have them for
 * these boards. Nothing is fitted to them here.
 */
const LINKS: Readonly<Record<string, Pick<BoardExchange, "gigabytesPerSecond" | "hopMicros">>> = {
  RTX4090: { gigabytesPerSecond: 16, hopMicros: 1 },
  RTXPRO6000: { gigabytesPerSecond: 16, hopMicros: 20 },
};

/** Bytes a microsecond that a board's memory gives, by its data sheet. */
const BANDWIDTHS: Readonly<Record<string, number>> = {
  RTX4090: 1.008e6,
  RTX5090: 1.792e6,
  RTXPRO6000: 1.792e6,
  L40S: 0.864e6,
  A100: 2.039e6,
  H100: 3.35e6,
  H200: 4.8e6,
};

const WEIGHT_BYTES = 2;

/** From meta.json, the folder's config.json where it has one, and its name where meta.json does not name the board. */
export function readGpuSetup(folder: string): GpuSetup {
  const meta = new RunMeta(folder);
  const gpus = meta.count(["engine_kwargs.tensor_parallel_size"]);
  const { layers, parameters, hidden, experts } = modelOf(folder, meta.text("model"));
  const device = `${meta.text("hardware.device_name", [], "")} ${basename(folder)}`.replaceAll(" ", "");
  const board = Object.keys(BANDWIDTHS).find((name) => device.includes(name));
  if (board === undefined) {
    throw new Error(
      `${folder}: expected a board in hardware.device_name or in the folder's name: ${Object.keys(BANDWIDTHS).join(", ")}`,
    );
  }
  const link = gpus > 1 ? LINKS[board] : undefined;
  return {
    layers,
    gpus,
    weightsMicros: (parameters * WEIGHT_BYTES) / gpus / BANDWIDTHS[board]!,
    experts,
    exchange: link && { gpus, bytesPerToken: hidden * WEIGHT_BYTES, ...link },
  };
}

function modelOf(folder: string, name: string): KnownModel {
  const file = join(folder, "config.json");
  if (existsSync(file)) {
    const model = readHuggingFaceModel(JSON.parse(readFileSync(file, "utf8")));
    if (typeof model === "string") throw new Error(`${file}: ${model}`);
    const heads = model.tiedEmbeddings ? 1 : 2;
    const { layers, hidden, experts } = model.shape;
    const parameters = layers * layerParameters(model.shape) + heads * model.vocabulary * hidden;
    return { layers, parameters, hidden, ...(experts && { experts }) };
  }
  const known = Object.hasOwn(MODELS, name) ? MODELS[name] : undefined;
  if (known !== undefined) return known;
  throw new Error(
    `${folder}: ${name} is none of ${Object.keys(MODELS).join(", ")}: put the model's config.json into the folder`,
  );
}

function layerParameters(model: ModelShape): number {
  const { hidden, heads, kvHeads, headSize, intermediate, mlpMatrices, experts } = model;
  const width = headSize ?? hidden / heads;
  const feedForward = intermediate * (experts?.count ?? 1) + (experts?.sharedIntermediate ?? 0);
  return hidden * width * (2 * heads + 2 * kvHeads) + mlpMatrices * hidden * feedForward;
}
