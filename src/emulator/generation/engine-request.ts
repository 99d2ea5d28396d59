import type { EngineRequest } from "#engine/request.ts";
import type { EmulatedSequence } from "./sequence.ts";

/** A sequence as the engine is given it. */
export function engineRequest(sequence: EmulatedSequence): EngineRequest {
  return {
    id: sequence.id,
    promptTokens: sequence.prompt.length,
    outputTokens: sequence.plan.tokens.length,
    hashes: sequence.hashes,
    priority: sequence.priority,
    deadlineAt: undefined,
    cacheRead: sequence.cacheRead,
    fetch: sequence.fetch,
    holds: sequence.transfer?.phase === "prefill",
  };
}
