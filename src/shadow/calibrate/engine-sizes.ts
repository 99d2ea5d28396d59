import { tokensOfEach } from "#core/latency/latency-model.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { RecordedRun } from "../recorded/recorded-run.ts";
import { recordedSizes } from "./recorded-sizes.ts";

/** An engine with the sizes that its traffic shows, which win over what was assumed. Its times stay. */
export function engineSizes(engine: EngineConfig, run: RecordedRun): { sizes: EngineConfig; notes: readonly string[] } {
  const { sizes: recorded, notes } = recordedSizes(run, undefined, engine.blockTokens);
  const sizes = { ...engine, ...recorded };
  const room = (sizes.kvBlocks - 1) * sizes.blockTokens;
  const longest = run.workload.reduce((most, one) => Math.max(most, longestOf(one)), 0);
  return { sizes: { ...sizes, modelTokensMax: Math.min(room, Math.max(engine.modelTokensMax, longest)) }, notes };
}

/** Of its prompts, each with one answer. */
function longestOf({ promptTokens, tokensByPrompt, outputTokens, sequences = 1 }: WorkloadRequest): number {
  return Math.max(...(tokensByPrompt ?? [promptTokens])) + tokensOfEach(outputTokens, sequences);
}
