import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { rankedCandidates } from "./result/decision-trace.ts";
import { Simulation } from "./simulation.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";

/** One counterfactual decision and its outcome: the whole run done again with it. Times in microseconds. */
export interface Alternative {
  readonly endpoint: string;
  readonly ttft: number;
  readonly e2e: number;
  /** Change of the mean end-to-end time over all requests that both runs completed. */
  readonly e2eMeanChange: number;
}

export interface Counterfactual {
  readonly requestId: string;
  readonly chosen: string;
  readonly ttft: number;
  readonly e2e: number;
  readonly alternatives: readonly Alternative[];
  /** What the request lost against the best alternative, by its end-to-end time; 0 when none was better. */
  readonly regretMicros: number;
  /** The same of all requests' mean. */
  readonly meanRegretMicros: number;
}

/**
 * Regret by outcome: counterfactual decisions, one at a time, and everything after them is simulated again on
 * the same arrivals, for the `k` best other candidates each. `create` gives the same options each time, with arrivals
 * from the start.
 */
export function counterfactuals(create: () => SimulationOptions, k: number, decisions: number): Counterfactual[] {
  const asMade = new Map<string, { readonly chosen: string; readonly others: readonly string[] }>();
  const watch = (_input: Input, decision: Decision | undefined) => {
    if (decision?.kind !== "routed" || decision.attempt > 1) return;
    const ranked = rankedCandidates(decision.breakdown).map(({ endpoint }) => endpoint);
    const others = ranked.filter((endpoint) => endpoint !== decision.endpoint).slice(0, k);
    asMade.set(decision.requestId, { chosen: decision.endpoint, others });
  };
  const base = new Simulation({ ...create(), observe: watch });
  base.run();
  const ids = [...asMade.keys()];
  const step = Math.max(1, Math.floor(ids.length / decisions));
  const picked = ids.filter((_, i) => i % step === 0).slice(0, decisions);
  return picked.map((requestId) => {
    const { chosen, others } = asMade.get(requestId)!;
    const row = base.outcomes.ids.indexOf(requestId);
    const e2e = base.outcomes.e2e[row]!;
    const alternatives = others.map((endpoint) => alternative(create(), base, requestId, endpoint));
    return {
      requestId,
      chosen,
      ttft: base.outcomes.ttft[row]!,
      e2e,
      alternatives,
      regretMicros: Math.max(0, ...alternatives.map((other) => e2e - other.e2e)),
      meanRegretMicros: Math.max(0, ...alternatives.map((other) => -other.e2eMeanChange)),
    };
  });
}

function alternative(options: SimulationOptions, base: Simulation, requestId: string, endpoint: string): Alternative {
  const other = new Simulation({ ...options, forced: new Map([[requestId, endpoint]]) });
  other.run();
  const rows = new Map(other.outcomes.ids.map((id, row) => [id, row]));
  let change = 0;
  let both = 0;
  base.outcomes.ids.forEach((id, row) => {
    const there = rows.get(id);
    if (there === undefined || !base.outcomes.isCompleted(row) || !other.outcomes.isCompleted(there)) return;
    change += other.outcomes.e2e[there]! - base.outcomes.e2e[row]!;
    both++;
  });
  const row = rows.get(requestId);
  return {
    endpoint,
    ttft: row === undefined ? NaN : other.outcomes.ttft[row]!,
    e2e: row === undefined ? NaN : other.outcomes.e2e[row]!,
    e2eMeanChange: both === 0 ? 0 : change / both,
  };
}
