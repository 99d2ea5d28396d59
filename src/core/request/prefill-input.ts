import type { Fault } from "../endpoint/fault.ts";
import type { Micros } from "../base/units.ts";

/** What becomes of the first of two phases, of a request whose decision has a `prefill`. */
export type PrefillInput = PrefillFinished | PrefillFailed | TransferFailed;

/**
 * The prompt is computed: its charge at the prefill endpoint is released, and its blocks wait there to be fetched. Where
 * the phases follow one another, the request goes to the endpoint that answers now, and its time to first token there
 * counts from now. Comes once at most; a first token implies it.
 */
export interface PrefillFinished {
  readonly kind: "prefill-finished";
  readonly at: Micros;
  readonly requestId: string;
  /** Prompt tokens that the prefill engine found in its cache, by its own count; undefined where it reported none. */
  readonly cachedTokens: number | undefined;
}

/**
 * The prefill endpoint failed before the client got a byte. The charges at both endpoints are released, the blocks of both
 * withdrawn. `request-retried` then asks anew: the endpoint that was to answer may be chosen again, the other one not.
 */
export interface PrefillFailed {
  readonly kind: "prefill-failed";
  readonly at: Micros;
  readonly requestId: string;
  readonly fault: Fault;
}

/**
 * The blocks did not reach the endpoint that answers, and the client has no byte; this speaks against neither endpoint.
 * Both charges are released. `request-retried` then asks anew, and one endpoint does both.
 */
export interface TransferFailed {
  readonly kind: "transfer-failed";
  readonly at: Micros;
  readonly requestId: string;
}
