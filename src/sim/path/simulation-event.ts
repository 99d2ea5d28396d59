import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Micros } from "#core/base/units.ts";
import type { Flight } from "./flight.ts";
import type { Ending } from "../result/outcomes.ts";
import type { ScriptEvent } from "../setting/simulation-options.ts";

/** What waits for its time. Endings and first tokens are on their way from an engine to the router and the client. */
export type SimulationEvent =
  | { readonly kind: "fleet"; readonly change: ScriptEvent }
  | { readonly kind: "admit"; readonly flight: Flight }
  | { readonly kind: "route"; readonly flight: Flight }
  | { readonly kind: "deliver"; readonly flight: Flight; readonly engine: number }
  | { readonly kind: "signal"; readonly take: (at: Micros) => void }
  | { readonly kind: "first-token"; readonly flight: Flight; readonly engine: number }
  /** What one router did reaches the others. */
  | { readonly kind: "peer-news"; readonly take: (at: Micros) => void }
  /** There is as much of an answer as it is judged by. */
  | { readonly kind: "judged"; readonly take: (at: Micros) => void }
  /** Something of a stage of a request's path is due. */
  | { readonly kind: "stage"; readonly take: (at: Micros) => void }
  /** An autoscaler looks, or acts on what it saw; a replica that it ordered takes requests. */
  | { readonly kind: "scale-check" | "replica-ready"; readonly take: (at: Micros) => void }
  | { readonly kind: "progress"; readonly flight: Flight; readonly engine: number }
  | { readonly kind: "over"; readonly flight: Flight; readonly engine: number; readonly outcome: Outcome }
  /** `status` is how it ended, where that is not written down yet. */
  | {
      readonly kind: "ended";
      readonly flight: Flight;
      readonly engine: number;
      readonly outcome: Outcome;
      readonly status?: Ending;
    }
  /** The connection to its engine broke, or the engine turned it down. */
  | { readonly kind: "broke"; readonly flight: Flight; readonly engine: number; readonly fault: Fault }
  /** Its client gives up where its engine's clock is not ours. */
  | { readonly kind: "gave-up"; readonly flight: Flight; readonly engine: number }
  /** The router is asked whose turn it is among those that wait. */
  | { readonly kind: "queue-turn" }
  /** The client of a request that waits in the queue gives up. */
  | { readonly kind: "waited-out"; readonly flight: Flight }
  | { readonly kind: "sweep" }
  /** The judges of rollouts look. */
  | { readonly kind: "look" }
  /** A lost server is asked once more. */
  | { readonly kind: "return"; readonly engine: number; readonly attempt: number };

/** Order at one instant. What engines do at that instant comes after all of these. */
export const EVENT_PRIORITY = {
  fleet: 1,
  "replica-ready": 1,
  admit: 2,
  route: 3,
  deliver: 3,
  stage: 3,
  signal: 3,
  "peer-news": 3,
  progress: 3,
  "first-token": 5,
  over: 5,
  ended: 5,
  judged: 5,
  broke: 5,
  "gave-up": 5,
  "queue-turn": 4,
  "waited-out": 5,
  sweep: 3,
  look: 3,
  return: 3,
  "scale-check": 6,
} as const satisfies Record<SimulationEvent["kind"], number>;
