import type { HardwareShape } from "./step-time/model-shape.ts";

export interface Hardware extends HardwareShape {
  readonly memoryBytes: number;
}

const GIB = 2 ** 30;

/**
 * Boards by data sheet: dense bf16 peak without sparsity, memory bandwidth, memory that the driver leaves. The fractions
 * of the peak are assumptions, those of BLIS (inference-sim) where it has the board.
 */
export const HARDWARE: Readonly<Record<string, Hardware>> = {
  "A100-80": { tflopsPeak: 312, bandwidthTbs: 2.039, mfuPrefill: 0.38, mfuDecode: 0.18, memoryBytes: 79.25 * GIB },
  H100: { tflopsPeak: 989.5, bandwidthTbs: 3.35, mfuPrefill: 0.45, mfuDecode: 0.3, memoryBytes: 79.25 * GIB },
  H200: { tflopsPeak: 989.5, bandwidthTbs: 4.8, mfuPrefill: 0.45, mfuDecode: 0.3, memoryBytes: 139.8 * GIB },
  L40S: { tflopsPeak: 362.05, bandwidthTbs: 0.864, mfuPrefill: 0.32, mfuDecode: 0.08, memoryBytes: 44.5 * GIB },
  "RTX-4090": { tflopsPeak: 165.2, bandwidthTbs: 1.008, mfuPrefill: 0.9, mfuDecode: 0.3, memoryBytes: 23.52 * GIB },
};
