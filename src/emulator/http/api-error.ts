/** vLLM's name for a class of errors, as in its `type` field. */
export type ErrorType =
  | "BadRequestError"
  | "Bad Request"
  | "NotFoundError"
  | "InvalidUserInput"
  | "NotImplementedError"
  | "PermissionDeniedError"
  | "InternalServerError"
  | "Service Unavailable";

/** An answer other than success: what vLLM puts into its `error` object. `code` is the HTTP status as well. */
export class ApiError extends Error {
  readonly code: number;
  readonly type: ErrorType;
  readonly param: string | null;

  constructor(code: number, type: ErrorType, message: string, param: string | null = null) {
    super(message);
    this.code = code;
    this.type = type;
    this.param = param;
  }

  /** The body, without spaces, as responses carry it. */
  get json(): string {
    const error = { message: this.message, type: this.type, param: this.param, code: this.code };
    return JSON.stringify({ error });
  }

  /** The same as an event of a stream that has begun: there vLLM writes spaces after colons and commas. */
  get event(): string {
    const text = (value: string | null) => JSON.stringify(value);
    const fields = `"message": ${text(this.message)}, "type": ${text(this.type)}, "param": ${text(this.param)}`;
    return `{"error": {${fields}, "code": ${this.code}}}`;
  }
}

/** A rejected value, with the parameter that caused it named the way vLLM names it. */
export function badRequest(message: string, parameter?: string, value?: string): ApiError {
  if (parameter === undefined) return new ApiError(400, "BadRequestError", message);
  const detail = value === undefined ? "" : `, value=${value}`;
  return new ApiError(400, "BadRequestError", `${message} (parameter=${parameter}${detail})`, parameter);
}

export const QUEUE_FULL = new ApiError(
  503,
  "Service Unavailable",
  "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.",
);

export const TOKEN_BACKLOG_FULL = new ApiError(
  503,
  "Service Unavailable",
  "The engine has reached its prefill token backlog limit. Please try again later or on a different instance.",
);

export const SHUTTING_DOWN = new ApiError(500, "InternalServerError", "cannot schedule new futures after shutdown");

export const ENGINE_DEAD = new ApiError(
  500,
  "InternalServerError",
  "EngineCore encountered an issue. See stack trace (above) for the root cause.",
);

/** vLLM's words for a request whose blocks did not come (kv_load_failure_policy: fail). */
export const KV_LOAD_FAILED = new ApiError(500, "InternalServerError", "Internal server error");

export const SCALE_OUT_DISABLED = new ApiError(
  403,
  "PermissionDeniedError",
  "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.",
);
