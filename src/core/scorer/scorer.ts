import type { Decision } from "../decision.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { Input } from "../input.ts";
import type { RouteRequest } from "../request.ts";

export interface Scorer {
  readonly name: string;
  /** Writes one score in [0, 1] per candidate into scores[0..candidates.length), 1 being best. Mutates nothing else. */
  score(request: RouteRequest, candidates: readonly Snapshot[], scores: Float64Array): void;
  /** Sees every input after it took effect, and the decision it caused; the only place where a scorer changes state. */
  observe?(input: Input, decision: Decision | undefined): void;
}
