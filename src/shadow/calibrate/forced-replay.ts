import { type EngineConfig } from "#engine/config.ts";
import { Engine } from "#engine/engine.ts";
import { RankedEngine } from "#engine/ranked-engine.ts";
import type { EngineSink } from "#engine/sink.ts";
import { FurtherAnswer, furtherAnswers } from "#engine/further-answer.ts";
import type { Evidence } from "./evidence.ts";
import { PARAMETERS } from "./parameters.ts";
import { WorkLog, type WorkTimes } from "./work-log.ts";

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
export function forcedReplay(evidence: Evidence, config: EngineConfig, count?: number): ForcedOutcome {
  return replay(evidence, config, count ?? evidence.rows.length, undefined);
}

/** The same, with what each time consists of. */
export function tracedReplay(
  evidence: Evidence,
  config: EngineConfig,
  count: number,
): ForcedOutcome & { readonly work: WorkTimes } {
  const work = () => new Float64Array(evidence.rows.length * PARAMETERS.length);
  const times = { ttft: work(), e2e: work() };
  return { ...replay(evidence, config, count, times), work: times };
}

function replay(
  { endpoints, rows }: Evidence,
  config: EngineConfig,
  count: number,
  times: WorkTimes | undefined,
): ForcedOutcome {
  const column = () => new Float64Array(rows.length).fill(NaN);
  const outcome = { ttftMicros: column(), e2eMicros: column(), tpotMicros: column(), cachedTokens: column() };
  const arrived = new Float64Array(times === undefined ? 0 : rows.length * PARAMETERS.length);
  const sinkInto = (log: WorkLog | undefined): EngineSink => ({
    admitted: (_at, request, cached) => {
      if (!(request instanceof FurtherAnswer)) outcome.cachedTokens[Number(request.id)] = cached;
    },
    token: (at, request, tokens) => {
      const further = request instanceof FurtherAnswer;
      const row = Number(further ? request.first.id : request.id);
      const since = at - rows[row]!.arrivalAt;
      if (tokens === 1 && !further) {
        outcome.ttftMicros[row] = since;
        log?.firstToken(row);
      }
      // The last one of several answers ends it.
      outcome.e2eMicros[row] = Math.max(outcome.e2eMicros[row]! || 0, since);
    },
    finished: (_at, request) => {
      if (!(request instanceof FurtherAnswer)) return log?.lastToken(Number(request.id));
      // What other ranks did meanwhile is not in the log of the first one's.
      if (config.dataParallel === 1) log?.lastToken(Number(request.first.id));
    },
    ...(log && { step: (startAt, endAt, shape) => log.step(startAt, endAt, shape) }),
  });
  const ranks = Array.from({ length: config.dataParallel });
  const logs = times && endpoints.map(() => ranks.map(() => new WorkLog(times, arrived)));
  const engines = endpoints.map((_, endpoint) => {
    const sinkOf = (rank: number): EngineSink => sinkInto(logs?.[endpoint]?.[rank]);
    if (config.dataParallel > 1) return new RankedEngine(config, sinkOf);
    return new Engine(config, sinkOf(0));
  });
  for (let row = 0; row < count; row++) {
    const { endpoint, arrivalAt, promptTokens, outputTokens, hashes, cacheRead = true } = rows[row]!;
    const { sequences = 1, furtherPrompts = [] } = rows[row]!;
    const engine = engines[endpoint]!;
    const id = String(row);
    const request = { id, promptTokens, outputTokens, hashes, priority: 0, deadlineAt: undefined, cacheRead };
    if (engine.submit(arrivalAt, request) !== "queued") continue;
    if (sequences > 1)
      for (const one of furtherAnswers(request, sequences, config.blockTokens, furtherPrompts))
        engine.submit(arrivalAt, one);
    const rank = engine instanceof RankedEngine ? engine.rankOf(id)! : 0;
    logs?.[endpoint]?.[rank]?.expect(row, arrivalAt + Math.trunc(config.queueDelay.baseMicros));
  }
  for (const engine of engines) {
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
  }
  for (let row = 0; row < count; row++) {
    const steps = rows[row]!.outputTokens - 1;
    if (steps > 0) outcome.tpotMicros[row] = (outcome.e2eMicros[row]! - outcome.ttftMicros[row]!) / steps;
  }
  return outcome;
}
