import type { Micros } from "#core/base/units.ts";

/**
 * How a request ended. `aborted`: the driver closed it on purpose. `cancelled`: in flight when the run was over. All
 * others but `ok` are failures:
 * `connect` no connection, `no-response` closed before response headers, `http-N` a status other than 200,
 * `content-type` not what was asked for, `in-band-error` an error object in a 200, `engine-abort` finish_reason
 * "abort", `cut` closed before the end, `no-done` a stream that ended without [DONE], `garbage` not JSON, `empty`
 * complete without a token, `timeout` the driver's own limit.
 */
export type SentOutcome =
  | "ok"
  | "aborted"
  | "cancelled"
  | "connect"
  | "no-response"
  | `http-${number}`
  | "content-type"
  | "in-band-error"
  | "engine-abort"
  | "cut"
  | "no-done"
  | "garbage"
  | "empty"
  | "timeout";

/** Times are microseconds on the driver's clock; NaN where something did not happen or was not reported. */
export interface ExchangeResult {
  readonly outcome: SentOutcome;
  readonly status: number;
  /** Who served, as the gateway reports it; "" where it did not. */
  readonly endpoint: string;
  readonly sentMicros: Micros;
  readonly headersMicros: Micros;
  readonly firstTokenMicros: Micros;
  readonly lastTokenMicros: Micros;
  readonly endMicros: Micros;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Tokens of the prompt that the gateway expected in the endpoint's cache. */
  readonly gatewayHitTokens: number;
  readonly finishReason: string;
  /** What the server or the connection reported about a failure; "" when nothing. It may quote the request. */
  readonly errorMessage: string;
}

export function isFailure(outcome: SentOutcome): boolean {
  return outcome !== "ok" && outcome !== "aborted" && outcome !== "cancelled";
}
