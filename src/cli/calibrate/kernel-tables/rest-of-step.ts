import { achievedBy } from "#engine/achieved.ts";
import type { CurvePoint, KernelTableSpec } from "#engine/step-time/kernel-table.ts";
import type { KernelTarget } from "./kernel-form.ts";

const SEQUENCES = [1, 2048] as const;

/** What tables of kernels alone lack: the host's part of a step and of each sequence, as on all boards of its generation. */
export function hostPart(
  { board }: KernelTarget,
  head: readonly CurvePoint[],
): Pick<KernelTableSpec, "baseMicros" | "perSequence"> {
  const { stepMicros, sequenceMicros } = achievedBy(board.generation);
  return {
    baseMicros: stepMicros,
    perSequence: head.map(([sequences, micros]) => [sequences, micros + sequenceMicros * sequences]),
  };
}

/** The output head as memory and arithmetic allow it. */
export function modelledHead({ model, board, tensorParallel }: KernelTarget): CurvePoint[] {
  const { bandwidth, compute } = achievedBy(board.generation);
  const weights = (model.vocabulary * model.shape.hidden) / tensorParallel;
  const memory = (weights * model.shape.bytesPerParameter) / (board.bandwidthTbs * 1e6 * bandwidth);
  return SEQUENCES.map((sequences) => [
    sequences,
    Math.max(memory, (2 * weights * sequences) / (board.tflopsPeak * 1e6 * compute)),
  ]);
}
