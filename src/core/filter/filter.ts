import type { Decision } from "../input/decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input/input.ts";
import type { Noter } from "../request/noted.ts";
import type { Random } from "../base/random.ts";
import type { RouteRequest } from "../request/request.ts";
import type { ParameterTable } from "../plugin/parameter.ts";
import { type Definition, type Plugin, plugin } from "../plugin/plugin.ts";

export interface Filter extends Noter {
  readonly name: string;
  /** What it removes it removes for what the endpoint is, not for how busy it is: waiting will not help. */
  readonly byKind?: true;
  /**
   * Writes 1 into keep[i] for each candidate that may serve and 0 for each that may not; keep arrives all 1. Candidates
   * are in order of id and at least one. Removing all refuses the request. Mutates nothing else.
   */
  filter(request: RouteRequest, candidates: readonly Snapshot[], keep: Uint8Array, random: Random): void;
  /**
   * Sees every input after it took effect, the decision it caused, and the request it is about; the only place where a
   * filter changes state.
   */
  observe?(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void;
}

/** A filter for the catalogue: `create` gets its parameters typed by their table, with defaults filled in. */
export function filterPlugin<const P extends ParameterTable>(definition: Definition<Filter, P>): Plugin<Filter> {
  return plugin(definition);
}
