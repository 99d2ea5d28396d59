import type { QueueDelay } from "./config.ts";
import type { Achieved } from "./step-time/kernel-roofline.ts";

/** Generations of boards, which reach different shares of their data sheets. */
export type Generation = "ampere" | "ada" | "hopper" | "blackwell" | "cdna3";

/**
 * Fitted, all together, to published measurements of vLLM: `npm run bench -- published --fit`, whose sources
 * bench/published/runs.ts lists. Nothing was published of Blackwell that states its load: it has Hopper's.
 */
const REACHED: Readonly<Record<Generation, Pick<Achieved, "bandwidth" | "compute">>> = {
  ampere: { bandwidth: 0.664, compute: 0.635 },
  ada: { bandwidth: 0.805, compute: 0.635 },
  hopper: { bandwidth: 0.888, compute: 0.635 },
  blackwell: { bandwidth: 0.888, compute: 0.635 },
  cdna3: { bandwidth: 0.566, compute: 0.348 },
};

const COMMON: Omit<Achieved, "bandwidth" | "compute"> = {
  // Not fitted: NCCL's and vLLM's own sums reach about so much of an NVLink where they are large.
  linkBandwidth: 0.7,
  expertBandwidth: 1,
  kvBandwidth: 0.683,
  stepMicros: 296,
  sequenceMicros: 13.4,
  layerMicros: 40.9,
  expertLayerMicros: 45.6,
  eagerLayerMicros: 44.5,
  eagerExpertLayerMicros: 134,
  reduceMicros: 6,
};

/** What boards of this generation achieve. */
export function achievedBy(generation: Generation): Achieved {
  return { ...COMMON, ...REACHED[generation] };
}

/** From the request at the API server to the scheduler's queue, and from the first token back to the client. */
export const FIRST_TOKEN_DELAY: QueueDelay = { baseMicros: 6110, perPromptTokenMicros: 2 };

/**
 * How far predictions were from published runs whose model and boards were left out of the fit, as shares of the mean:
 * `npm run bench -- published`.
 */
export const LEFT_OUT_ERROR = {
  runs: 104,
  models: 30,
  tpot: { median: 0.07, ninety: 0.18 },
  ttft: { median: 0.05, ninety: 0.12 },
} as const;

/** Of these no run was published that states its load. */
export const UNMEASURED: ReadonlySet<Generation> = new Set(["blackwell"]);
