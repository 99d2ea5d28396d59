import { writeFileSync } from "node:fs";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";

const REQUESTS = 120;
const PER_SECOND = 40;
const PROMPT_TOKENS = 1_500;
const OUTPUT_TOKENS = 40;

/** Writes a workload that gets the engines' code compiled; its prompts have nothing in common with any other. */
export function writeWarmUp(file: string, timeScale: number): void {
  const lines = Array.from({ length: REQUESTS }, (_, index) =>
    workloadLine({
      ...LENGTHS_ONLY,
      index,
      arrivalMicros: Math.round((index * MICROS_PER_SECOND * timeScale) / PER_SECOND),
      promptTokens: PROMPT_TOKENS,
      outputTokens: OUTPUT_TOKENS,
    }),
  );
  writeFileSync(file, workloadFileHeader(["warm-up"]) + lines.join(""));
}
