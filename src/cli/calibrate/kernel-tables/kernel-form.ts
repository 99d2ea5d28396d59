import type { Hardware } from "#engine/hardware.ts";
import type { ExpertRow } from "#engine/step-time/expert-time.ts";
import type { ModelConfig } from "#engine/step-time/hugging-face.ts";
import type { KernelTableSpec } from "#engine/step-time/kernel-table.ts";

/** Whose kernels are looked for: those of one of so many boards. */
export interface KernelTarget {
  readonly model: ModelConfig;
  readonly board: Hardware;
  readonly tensorParallel: number;
}

/** Kernels of one GPU, as a profiler measured them. */
export interface KernelTables {
  readonly kernels: Omit<KernelTableSpec, "layers">;
  /** Of a mixture of experts. */
  readonly expertRows: readonly ExpertRow[] | undefined;
  /** What boards send each other is in the tables too. */
  readonly exchanged: boolean;
}

/** How one profiler writes its tables down. */
export interface KernelForm {
  readonly name: string;
  /** Names of a file that no other form has. */
  readonly mark: readonly string[];
  /** All its files, for people. */
  readonly files: string;
  /** Throws ConfigError with file and line, columns and accepted values. */
  read(folders: readonly string[], target: KernelTarget): KernelTables;
}
