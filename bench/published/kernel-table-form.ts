import { kernelEngine } from "#cli/calibrate/calibrate-kernels.ts";
import { ConfigError } from "#config/config-error.ts";
import { FIRST_TOKEN_DELAY } from "#engine/achieved.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Form } from "./form.ts";
import { boardOf } from "./kernel-roofline-form.ts";
import { modelNamed } from "./models.ts";

/** Measured kernels of one board, as `calibrate --from-kernels` reads them: nothing of them is fitted. */
export function kernelTables(folders: readonly string[], board: string, refused: (why: string) => void): Form {
  const engines = new Map<string, EngineConfig | undefined>();
  return {
    name: `measured kernels of ${board}`,
    fitted: [],
    engineFor: (run) => {
      if (run.board !== board || run.eager) return undefined;
      const name = `${run.model} ${run.tp} ${run.batchTokensMax}`;
      if (!engines.has(name)) {
        try {
          const target = { model: modelNamed(run.model), board: boardOf(run), tensorParallel: run.tp };
          const given = { batchTokensMax: run.batchTokensMax, sequencesMax: 128, asyncScheduling: true };
          engines.set(name, { ...kernelEngine(folders, target, given), queueDelay: FIRST_TOKEN_DELAY });
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          refused(`${run.model} x${run.tp}: ${error.message}`);
          engines.set(name, undefined);
        }
      }
      return engines.get(name);
    },
  };
}
