import type { Decision } from "../input/decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input/input.ts";
import type { Noter } from "../request/noted.ts";
import type { Forecast } from "../latency/forecast.ts";
import type { RouteRequest } from "../request/request.ts";
import type { ParameterTable } from "../plugin/parameter.ts";
import { type Definition, type Plugin, plugin } from "../plugin/plugin.ts";

/** No opinion: the candidate's total is the weighted mean of its other scores. */
export const ABSTAIN: number = -Infinity;

export interface Scorer extends Noter {
  readonly name: string;
  /**
   * Writes one score per candidate into scores[0..candidates.length): a number in [0, 1], 1 being best, or ABSTAIN where
   * the scorer knows nothing of the candidate. Mutates nothing else.
   */
  score(request: RouteRequest, candidates: readonly Snapshot[], scores: Float64Array): void;
  /** In place of its name, why its scores of the decision under way are as they are; undefined for its name. */
  readonly reason?: string | undefined;
  /** What the request's times would be at a candidate, for a scorer that predicts them. Changes nothing. */
  forecast?(request: RouteRequest, candidate: Snapshot): Forecast;
  /**
   * Sees every input after it took effect, the decision it caused, and the request it is about; the only place where a
   * scorer changes state.
   */
  observe?(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void;
}

/** A scorer for the catalogue: `create` gets its parameters typed by their table, with defaults filled in. */
export function scorerPlugin<const P extends ParameterTable>(definition: Definition<Scorer, P>): Plugin<Scorer> {
  return plugin(definition);
}
