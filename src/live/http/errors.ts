import type { RefusalReason } from "#core/admission/held.ts";
import type { Dialect } from "./route.ts";

/** Why the gateway itself answers with an error. */
export type ErrorReason =
  | RefusalReason
  | "bad-request"
  | "unauthorized"
  | "forbidden"
  | "unknown-path"
  | "unknown-model"
  | "unknown-response"
  | "wrong-method"
  | "slow-request"
  | "too-large"
  | "compressed"
  | "headers-too-large"
  | "saturated"
  | "internal"
  | "upstream-broke"
  | "no-endpoint"
  | "asleep"
  | "full"
  | "draining"
  | "deadline";

interface ErrorRow {
  readonly status: number;
  /** vLLM's word where it has one, which is also what its clients switch on. */
  readonly type: string;
  /** Seconds after which trying again may help. */
  readonly retryAfter: number | undefined;
}

/** One table for every error of the gateway's own. */
export const ERRORS: Readonly<Record<ErrorReason, ErrorRow>> = {
  "bad-request": { status: 400, type: "BadRequestError", retryAfter: undefined },
  unauthorized: { status: 401, type: "AuthenticationError", retryAfter: undefined },
  forbidden: { status: 403, type: "PermissionDeniedError", retryAfter: undefined },
  "unknown-path": { status: 404, type: "NotFoundError", retryAfter: undefined },
  "unknown-model": { status: 404, type: "NotFoundError", retryAfter: undefined },
  "unknown-response": { status: 404, type: "invalid_request_error", retryAfter: undefined },
  "wrong-method": { status: 405, type: "MethodNotAllowedError", retryAfter: undefined },
  "slow-request": { status: 408, type: "RequestTimeoutError", retryAfter: undefined },
  "too-large": { status: 413, type: "RequestTooLargeError", retryAfter: undefined },
  compressed: { status: 415, type: "UnsupportedMediaTypeError", retryAfter: undefined },
  "headers-too-large": { status: 431, type: "RequestTooLargeError", retryAfter: undefined },
  saturated: { status: 429, type: "RateLimitError", retryAfter: 1 },
  "bucket-empty": { status: 429, type: "RateLimitError", retryAfter: 1 },
  "rate-limit": { status: 429, type: "RateLimitError", retryAfter: 1 },
  "tenant-quota": { status: 429, type: "RateLimitError", retryAfter: 1 },
  "usage-quota": { status: 429, type: "RateLimitError", retryAfter: 1 },
  shed: { status: 429, type: "RateLimitError", retryAfter: 1 },
  "queue-full": { status: 429, type: "RateLimitError", retryAfter: 1 },
  "queue-evicted": { status: 429, type: "RateLimitError", retryAfter: 1 },
  "hard-cap": { status: 503, type: "ServiceUnavailableError", retryAfter: 1 },
  "model-cap": { status: 503, type: "ServiceUnavailableError", retryAfter: 1 },
  "queue-timeout": { status: 503, type: "ServiceUnavailableError", retryAfter: 1 },
  internal: { status: 500, type: "InternalServerError", retryAfter: undefined },
  "upstream-broke": { status: 502, type: "BadGatewayError", retryAfter: 1 },
  "no-endpoint": { status: 503, type: "ServiceUnavailableError", retryAfter: 2 },
  asleep: { status: 503, type: "ServiceUnavailableError", retryAfter: 5 },
  full: { status: 503, type: "ServiceUnavailableError", retryAfter: 1 },
  draining: { status: 503, type: "ServiceUnavailableError", retryAfter: 1 },
  deadline: { status: 504, type: "GatewayTimeoutError", retryAfter: undefined },
};

/** A request that the gateway will not serve. */
export interface Refusal {
  readonly reason: ErrorReason;
  /** For people; never holds a prompt or a key. */
  readonly message: string;
  /** The field at fault, as OpenAI names it. */
  readonly param: string | null;
  /** In place of the reason's own, where more is known. */
  readonly retryAfterSeconds?: number;
}

/** An error of the gateway's own; `param` names the field of the body that it is about, as OpenAI's errors do. */
export function refusal(reason: ErrorReason, message: string, param: string | null = null): Refusal {
  return { reason, message, param };
}

/** OpenAI's error object with vLLM's integer code; Anthropic's for the dialect "messages". */
export function errorBody({ reason, message, param }: Refusal, dialect: Dialect = "other"): string {
  const { status, type } = ERRORS[reason];
  if (dialect === "messages") return JSON.stringify(anthropicError(status, message));
  return JSON.stringify({ error: { message, type, param, code: status } });
}

/** Anthropic's error object; its type follows from the status. */
function anthropicError(status: number, message: string): object {
  return { type: "error", error: { type: ANTHROPIC_TYPES.get(status) ?? typeOfClass(status), message } };
}

const ANTHROPIC_TYPES: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
]);

function typeOfClass(status: number): string {
  return status < 500 ? "invalid_request_error" : "api_error";
}

/** Flat header list of an error answer, without those that every answer carries. `sendsOwn` adds the gateway's own. */
export function errorHeaders({ reason, retryAfterSeconds }: Refusal, bodyBytes: number, sendsOwn = true): string[] {
  const headers = ["content-type", "application/json", "content-length", String(bodyBytes)];
  if (sendsOwn) headers.push("x-gnomon-reason", reason);
  if (reason === "compressed") headers.push("accept-encoding", "identity");
  const retryAfter = retryAfterSeconds ?? ERRORS[reason].retryAfter;
  if (retryAfter !== undefined) headers.push("retry-after", String(retryAfter));
  return headers;
}
