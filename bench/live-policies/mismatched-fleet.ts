import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { engineParameters, loadEngine } from "#config/engine-file.ts";
import type { EngineGroup } from "../closed-loop/live-run.ts";
import { strangeFleet } from "../default-choice/strange-fleet.ts";

/** Of a cache. */
const SMALL_SHARE = 1 / 2;

/**
 * Eight engines of four kinds, of which the router knows nothing but their pages: H100s, one of them with half the cache,
 * A100s, and two whose steps are another board's measured kernels. Engine files are written to `folder`.
 */
export function mismatchedFleet(traces: string, folder: string): readonly EngineGroup[] {
  const fast = loadEngine("h100-llama-3.1-8b");
  // Their drift belongs to virtual time.
  const { stepDrift: _drift, ...strange } = strangeFleet(traces, 1, 0)[0]!.config;
  const kernels = { ...strange, modelTokensMax: CONTEXT_TOKENS_MAX };
  const small = written(join(folder, "small.yaml"), { ...fast, kvBlocks: Math.round(fast.kvBlocks * SMALL_SHARE) });
  return [
    { engine: "h100-llama-3.1-8b", count: 3 },
    { engine: small, count: 1 },
    { engine: "a100-llama-3.1-8b", count: 2 },
    { engine: written(join(folder, "kernels.yaml"), kernels), count: 2 },
  ];
}

/** Prompt and answer in all that each of them takes, as the models state it. */
export const CONTEXT_TOKENS_MAX = loadEngine("h100-llama-3.1-8b").modelTokensMax;

/** JSON is YAML. */
function written(file: string, engine: Parameters<typeof engineParameters>[0]): string {
  writeFileSync(file, JSON.stringify(engineParameters(engine)));
  return file;
}
