import type { Decision } from "../input/decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input/input.ts";
import type { Noter } from "../request/noted.ts";
import type { Random } from "../base/random.ts";
import type { RouteRequest } from "../request/request.ts";
import type { ParameterTable } from "../plugin/parameter.ts";
import { type Definition, type Plugin, plugin } from "../plugin/plugin.ts";

export interface Picker extends Noter {
  readonly name: string;
  /** Whether it picks among the best totals, so that scorers are the reason for its choice. */
  readonly followsTotals: boolean;
  /** Totals within it of the highest are equal to the picker, in [0, 1]. */
  readonly epsilon: number;
  /** Index of the chosen candidate. Candidates are in order of id and at least one; totals[i] is candidate i's. */
  pick(request: RouteRequest, candidates: readonly Snapshot[], totals: Float64Array, random: Random): number;
  /** Sees each decision of its own profile once it took effect; the only place where a picker changes state. */
  observe?(input: Input, decision: Decision): void;
}

/** A picker for the catalogue: `create` gets its parameters typed by their table, with defaults filled in. */
export function pickerPlugin<const P extends ParameterTable>(definition: Definition<Picker, P>): Plugin<Picker> {
  return plugin(definition);
}
