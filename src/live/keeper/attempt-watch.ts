import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { TimedKind, WaitKind } from "#core/endpoint/hang-judge.ts";
import type { Micros } from "#core/base/units.ts";
import type { SweepListener } from "../http/in-flight.ts";

/** Who judges endpoints by what attempts there find, and knows which of them hang. */
export interface AttemptWatch extends SweepListener {
  isHung(endpoint: EndpointId): boolean;
  /** It turned a request down as it leaves. */
  isDraining(endpoint: EndpointId): boolean;
  /** A byte of an answer came since the last sweep. */
  answered(endpoint: EndpointId, at: Micros): void;
  /** An answer's first byte came after so long, or all of one that comes in one piece. */
  took(endpoint: EndpointId, kind: TimedKind, micros: Micros): void;
  /** A request waits for a byte since then, the first one after so many tokens of its prompt are computed. */
  waits(endpoint: EndpointId, kind: WaitKind, since: Micros, promptTokens?: number): void;
  /** Until when this program last stood still (a stopped process, a paused machine), and saw nothing; 0 for never. */
  readonly stoodStillUntil: Micros;
}
