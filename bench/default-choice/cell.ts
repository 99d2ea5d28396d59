import { signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { meetsTarget } from "#sim/result/slo.ts";
import type { SimulationResult } from "#sim/simulate.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { runCase } from "../profiles/run-case.ts";
import type { ChoiceCase, HalfName } from "./case.ts";
import { policyNamed } from "./policies.ts";

/** What is looked at of each policy in each case; of goodput more is better, of the others less. */
export const COLUMNS = ["e2eMean", "ttftMean", "e2eP99", "ttftP99", "goodput"] as const;
export type Column = (typeof COLUMNS)[number];

/** One policy on one seed's traffic of a case; times in milliseconds, goodput as a share of the requests. */
export interface Cell extends Readonly<Record<Column, number>> {
  readonly name: string;
  readonly half: HalfName;
  readonly seed: number;
  readonly policy: string;
  readonly requests: number;
}

/** A request is good whose first token comes within a second and whose others 50 ms apart on average. */
const GOOD = { ttftMicros: MICROS_PER_SECOND, tpotMicros: 50 * MICROS_PER_MILLI };

export function runCell(
  one: ChoiceCase,
  half: HalfName,
  seed: number,
  policy: string,
  requests: readonly WorkloadRequest[],
): Cell {
  const profile = policyNamed(policy);
  const scrapeMicros = Math.round((one.scrapeMillis ?? signalsOfProfile(profile).intervalMillis) * MICROS_PER_MILLI);
  const study = {
    seed,
    requestsMax: Infinity,
    half: "all",
    engines: one.engines,
    fleet: one.fleet,
    scrapeMicros,
  } as const;
  // Its pace is in the requests, for so many engines.
  const result = runCase({ rateScale: 8 / one.engines }, study, requests, profile, scrapeMicros);
  return { name: one.name, half, seed, policy, requests: requests.length, ...columnsOf(result) };
}

function columnsOf({ metrics, outcomes }: SimulationResult): Record<Column, number> {
  const [ttft, e2e] = [metrics.ttftMicros["all"], metrics.e2eMicros["all"]];
  let good = 0;
  for (let row = 0; row < outcomes.length; row++) if (meetsTarget(outcomes, row, GOOD)) good++;
  const millis = (micros: number | undefined): number => (micros ?? NaN) / MICROS_PER_MILLI;
  return {
    e2eMean: millis(e2e?.mean),
    ttftMean: millis(ttft?.mean),
    e2eP99: millis(e2e?.p99),
    ttftP99: millis(ttft?.p99),
    goodput: good / outcomes.length,
  };
}
