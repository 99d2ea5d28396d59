import type { Generation } from "./achieved.ts";
import type { BoardShape } from "./step-time/kernel-roofline.ts";
import type { HardwareShape } from "./step-time/model-shape.ts";

export interface Hardware extends HardwareShape, BoardShape {
  readonly memoryBytes: number;
  readonly generation: Generation;
}

const GIB = 2 ** 30;

function board(
  generation: Generation,
  tflopsPeak: number,
  tflopsPeakNarrow: number,
  bandwidthTbs: number,
  memoryGib: number,
  linkGbs: number,
  mfuPrefill: number,
  mfuDecode: number,
): Hardware {
  return {
    generation,
    tflopsPeak,
    tflopsPeakNarrow,
    bandwidthTbs,
    linkGbs,
    mfuPrefill,
    mfuDecode,
    memoryBytes: memoryGib * GIB,
  };
}

/**
 * Boards by data sheet: dense peak for 16-bit and for 8-bit numbers without sparsity (the former twice where the board
 * has no 8-bit floats), memory bandwidth, memory that the driver leaves, and the link to the other boards in one
 * direction (NVLink or Infinity Fabric; PCIe 4.0 or 5.0 x16 where there is none). The fractions of the peak, which the
 * kind `roofline` alone uses, are assumptions, those of BLIS (inference-sim) where it has the board.
 */
export const HARDWARE: Readonly<Record<string, Hardware>> = {
  "A100-40": board("ampere", 312, 312, 1.555, 39.4, 300, 0.38, 0.18),
  "A100-80": board("ampere", 312, 312, 2.039, 79.25, 300, 0.38, 0.18),
  A10G: board("ampere", 70, 70, 0.6, 22.1, 32, 0.38, 0.18),
  B200: board("blackwell", 2250, 4500, 8, 178.4, 900, 0.45, 0.3),
  GB200: board("blackwell", 2500, 5000, 8, 184, 900, 0.45, 0.3),
  H100: board("hopper", 989.5, 1979, 3.35, 79.25, 450, 0.45, 0.3),
  H200: board("hopper", 989.5, 1979, 4.8, 139.8, 450, 0.45, 0.3),
  L4: board("ada", 121, 242, 0.3, 22.1, 32, 0.32, 0.08),
  L40S: board("ada", 362.05, 733, 0.864, 44.5, 32, 0.32, 0.08),
  MI300X: board("cdna3", 1307.4, 2614.9, 5.3, 191.5, 448, 0.38, 0.18),
  "RTX-4090": board("ada", 165.2, 330.3, 1.008, 23.52, 32, 0.9, 0.3),
  "RTX-PRO-6000": board("blackwell", 503.8, 1007.6, 1.792, 94.97, 64, 0.7, 0.3),
};
