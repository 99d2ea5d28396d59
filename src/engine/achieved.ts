import type { QueueDelay } from "./config.ts";
import type { Achieved } from "./step-time/kernel-roofline.ts";

/** Generations of boards, which reach different shares of their data sheets. */
export type Generation = "ampere" | "ada" | "hopper" | "blackwell" | "cdna3";

/**
 * Fitted, all together, to published measurements of vLLM: `npm run bench -- published --fit`, whose sources
 * bench/published/runs.ts lists. Nothing was published of Blackwell that states its load: it has Hopper's.
 */
const REACHED: Readonly<Record<Generation, Pick<Achieved, "bandwidth" | "compute" | "narrowCompute" | "layerMicros">>> =
  {
    ampere: { bandwidth: 0.712, compute: 0.682, layerMicros: 61.1 },
    ada: { bandwidth: 0.843, compute: 0.682, layerMicros: 61.1 },
    hopper: { bandwidth: 0.977, compute: 0.682, layerMicros: 61.1 },
    blackwell: { bandwidth: 0.977, compute: 0.682, layerMicros: 61.1 },
    // There 8-bit numbers are multiplied hardly sooner than 16-bit ones.
    cdna3: { bandwidth: 0.833, compute: 0.36, narrowCompute: 0.154, layerMicros: 100.4 },
  };

const COMMON: Omit<Achieved, "bandwidth" | "compute" | "narrowCompute" | "layerMicros"> = {
  // Not fitted: NCCL's and vLLM's own sums reach about so much of an NVLink where they are large.
  linkBandwidth: 0.7,
  expertBandwidth: 1,
  kvBandwidth: 0.607,
  stepMicros: 372,
  sequenceMicros: 9.74,
  expertLayerMicros: 42.9,
  latentLayerMicros: 128,
  eagerLayerMicros: 43,
  eagerExpertLayerMicros: 202,
  reduceMicros: 4.61,
};

/** What boards of this generation achieve. */
export function achievedBy(generation: Generation): Achieved {
  return { ...COMMON, ...REACHED[generation] };
}

/** From the request at the API server to the scheduler's queue, and from the first token back to the client. */
export const FIRST_TOKEN_DELAY: QueueDelay = { baseMicros: 5540, perPromptTokenMicros: 2 };

/**
 * How far predictions were from published runs whose model and boards were left out of the fit, as shares of the mean:
 * `npm run bench -- published`.
 */
export const LEFT_OUT_ERROR = {
  runs: 108,
  models: 34,
  tpot: { median: 0.05, ninety: 0.16 },
  ttft: { median: 0.05, ninety: 0.17 },
} as const;

/** Of these no run was published that states its load. */
export const UNMEASURED: ReadonlySet<Generation> = new Set(["blackwell"]);
