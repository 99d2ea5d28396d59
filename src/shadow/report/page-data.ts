import type { CandidateOutcome } from "../candidate/candidate.ts";
import type { Observed } from "../recorded/observed.ts";
import type { Divergence } from "./divergence.ts";

/** What a page shows beside the answer itself. Requests are in the workload's order everywhere. */
export interface PageData {
  /** Name of the trace, as people know it. */
  readonly trace: string;
  readonly engine: string;
  /** No evidence that the traffic's engines are like it. */
  readonly isEngineGuess?: boolean;
  /** Every candidate's requests, the profile in force first. */
  readonly outcomes: readonly CandidateOutcome[];
  readonly observed: readonly Observed[] | undefined;
  /** When each request really came; NaN where that is not known. */
  readonly observedArrivalMicros: Float64Array;
  readonly promptTokens: Float64Array;
  /** Names of the endpoints by the numbers that outcomes have. */
  readonly endpoints: readonly string[];
  readonly divergences: readonly Divergence[];
  /** What was left out of the simulation, a line each. */
  readonly notes: readonly string[];
}

/** One line or bar of a chart. */
export interface Series {
  readonly name: string;
  /** CSS class that gives it its colour. */
  readonly style: string;
}

/**
 * Endpoints by name, as people know them, and which of them each number in outcomes is: one that left and came back has
 * another number, and is the same.
 */
export function endpointsOf({ endpoints }: PageData): { readonly names: readonly string[]; readonly of: Int32Array } {
  const names = [...new Set(endpoints)];
  return { names, of: Int32Array.from(endpoints, (name) => names.indexOf(name)) };
}

/** Colours by place: what really happened has its own. */
export function seriesOf({ outcomes, observed }: PageData): readonly Series[] {
  const simulated = outcomes.map(({ name }, i) => ({ name, style: `s${i % SERIES_COLOURS}` }));
  return observed === undefined ? simulated : [{ name: OBSERVED, style: "live" }, ...simulated];
}

export const OBSERVED = "observed";
const SERIES_COLOURS = 8;
