import { type Candidate, type Setting, simulationOf } from "#shadow/candidate/candidate.ts";
import { Simulation } from "#sim/simulation.ts";
import type { CapacityOf } from "./engine-caches.ts";
import { TokenLedger } from "./token-ledger.ts";

/** The ledger of traffic that nobody recorded, as one profile would have routed it. */
export function simulatedLedger(
  setting: Setting,
  candidate: Candidate,
  capacityOf: CapacityOf,
  rowsMax: number,
): TokenLedger {
  const ledger = new TokenLedger(capacityOf, { first: rowsMax });
  const simulation = new Simulation({
    ...simulationOf(setting, candidate, 0),
    observe: (input, decision) => ledger.take(input, decision),
  });
  simulation.run();
  return ledger;
}
