import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Micros } from "#core/base/units.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/** What became of a request, as it was recorded. */
export interface Observation {
  /** Endpoint that answered last; "" where it is not known. */
  readonly endpoint: string;
  readonly outcome: Outcome;
  /** From the arrival until the first token was seen; NaN for never or not known. */
  readonly ttftMicros: Micros;
  /** From the arrival until the end. */
  readonly e2eMicros: Micros;
  /** Prompt tokens that the engine had in its cache; NaN where it did not report it. */
  readonly cachedTokens: number;
  /** Nobody counted the answer's tokens: the request's are none. */
  readonly isAnswerUnknown?: true;
}

/** A request of any trace. */
export interface TrafficRequest {
  /** As it was recorded; "" where the trace names none. */
  readonly id: string;
  readonly request: WorkloadRequest;
  /** Undefined for a workload that holds what was sent and not what came of it. */
  readonly observed: Observation | undefined;
}

/** The requests of a workload without anything observed. */
export async function* unobserved(requests: AsyncIterable<WorkloadRequest>): AsyncGenerator<TrafficRequest> {
  for await (const request of requests) yield { id: "", request, observed: undefined };
}
