import type { Fault } from "#core/endpoint/fault.ts";
import type { FaultEvent } from "./fault-log.ts";
import type { RequestSummary } from "./request-summary.ts";

/** Is notified of what became of requests, for metrics and logs. It must return at once and never throw. */
export interface RequestObserver {
  /** Once per inference request, refused ones included, when its answer is over. */
  finished(summary: RequestSummary): void;
  /** An attempt failed and the request goes to another endpoint. */
  retried(fault: Fault): void;
  /** The configured tokenizer did not answer for this model and the estimate stood in. */
  tokenizerFellBack(model: string): void;
  /** Something went wrong on the way of a request, for the log. */
  fault?(event: FaultEvent): void;
  /** A defect of the gateway met a request, which got an error; everything else goes on. */
  bug?(error: unknown): void;
}
