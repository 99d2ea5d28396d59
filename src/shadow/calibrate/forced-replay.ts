import { Engine } from "#engine/engine.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { Evidence } from "./evidence.ts";

/** A row per row of the evidence, in its order; NaN where a request never got that far, or was not replayed. */
export interface ForcedOutcome {
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
  /** Mean time per token after the first; NaN below two tokens. */
  readonly tpotMicros: Float64Array;
  readonly cachedTokens: Float64Array;
}

/**
 * Gives the first `count` requests to simulated engines where and when the real ones had them, so that nothing but the
 * engine model makes a difference. Same arguments, same bytes.
 */
export function forcedReplay(
  { endpoints, rows }: Evidence,
  config: EngineConfig,
  count: number = rows.length,
): ForcedOutcome {
  const column = () => new Float64Array(rows.length).fill(NaN);
  const outcome = { ttftMicros: column(), e2eMicros: column(), tpotMicros: column(), cachedTokens: column() };
  const sink = {
    admitted: (_: number, { id }: { readonly id: string }, cached: number) => (outcome.cachedTokens[Number(id)] = cached),
    token: (at: number, { id }: { readonly id: string }, tokens: number) => {
      const row = Number(id);
      const since = at - rows[row]!.arrivalAt;
      if (tokens === 1) outcome.ttftMicros[row] = since;
      outcome.e2eMicros[row] = since;
    },
    finished: () => undefined,
  };
  const engines = endpoints.map(() => new Engine(config, sink));
  for (let row = 0; row < count; row++) {
    const { endpoint, arrivalAt, promptTokens, outputTokens, lanes } = rows[row]!;
    engines[endpoint]!.submit(arrivalAt, {
      id: String(row),
      promptTokens,
      outputTokens,
      lanes,
      priority: 0,
      deadlineAt: undefined,
      cacheRead: true,
    });
  }
  for (const engine of engines) {
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  }
  for (let row = 0; row < count; row++) {
    const { outputTokens } = rows[row]!;
    if (outputTokens > 1) outcome.tpotMicros[row] = (outcome.e2eMicros[row]! - outcome.ttftMicros[row]!) / (outputTokens - 1);
  }
  return outcome;
}
