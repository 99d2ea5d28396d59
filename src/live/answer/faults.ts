import type { Fault } from "#core/endpoint/fault.ts";
import { ERRORS, type ErrorReason, type Refusal, errorBody, refusal } from "../http/errors.ts";
import type { Dialect } from "../http/route.ts";

/** What the client gets when no endpoint could serve, and no endpoint's own error can be passed on. */
export function giveUpRefusal(fault: Fault): Refusal {
  switch (fault) {
    case "connect":
      return refusal(
        "upstream-broke",
        "No engine answered this request: it could not be reached, or it closed the connection.",
      );
    case "status":
      return refusal("upstream-broke", "The engine failed on this request.");
    case "saturated":
      return refusal("saturated", "All engines that serve this model are at their limit; try again later.");
    case "draining":
      return refusal("no-endpoint", "The engine is shutting down and no other could take this request.");
    case "cut":
      return refusal("upstream-broke", "The connection to the engine broke before it answered.");
    case "hung":
      return refusal("upstream-broke", "The engine hangs and no other could take this request.");
    case "asleep":
      return refusal("asleep", "The engine was put to sleep and no other could take this request.");
    case "timeout":
      return refusal("deadline", "No engine answered within the time that the request has.");
    case "garbage":
      return refusal("upstream-broke", "The engine answered with something that is not an answer.");
  }
}

/** What the client gets when an answer broke that had begun. */
export function cutRefusal(fault: Fault): Refusal {
  switch (fault) {
    case "timeout":
      return refusal("deadline", "The time for this answer, or between two parts of it, was over; it is incomplete.");
    case "draining":
      return refusal("upstream-broke", "The engine is shutting down and stopped this answer; it is incomplete.");
    case "hung":
      return refusal("upstream-broke", "The engine hangs and stopped this answer; it is incomplete.");
    case "asleep":
      return refusal("upstream-broke", "The engine was put to sleep and stopped this answer; it is incomplete.");
    case "connect":
      return refusal("upstream-broke", "The engine was lost and stopped this answer; it is incomplete.");
    case "status":
      return refusal("upstream-broke", "The engine failed on this request; the answer is incomplete.");
    case "saturated":
      return refusal("upstream-broke", "The engine is at its limit and stopped this answer; it is incomplete.");
    case "cut":
    case "garbage":
      return refusal("upstream-broke", "The connection to the engine broke; the answer is incomplete.");
  }
}

/** An error inside a stream that already began, in the words of its dialect. */
export function errorEvent(dialect: Dialect, refused: Refusal): Buffer {
  const { message, param, reason } = refused;
  switch (dialect) {
    case "chat":
    case "completions":
    case "other":
      return Buffer.from(`data: ${errorBody(refused)}\n\n`);
    case "messages": {
      return Buffer.from(`event: error\ndata: ${errorBody(refused, dialect)}\n\n`);
    }
    case "responses": {
      const data = { type: "error", code: String(ERRORS[reason].status), message, param };
      return Buffer.from(`event: error\ndata: ${JSON.stringify(data)}\n\n`);
    }
  }
}

/** The reason for the header when an endpoint's own error is passed on. */
export function reasonOf(fault: Fault): ErrorReason {
  return giveUpRefusal(fault).reason;
}

/** What a broken connection means for the endpoint; undefined when the request itself could not be sent at all. */
export function faultOfError(error: Error): Fault | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  switch (code) {
    case "UND_ERR_INVALID_ARG":
    case "UND_ERR_NOT_SUPPORTED":
    case "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH":
      return undefined;
    // This gateway can open no more connections, which speaks against no engine.
    case "EMFILE":
    case "ENFILE":
      return "saturated";
    case "UND_ERR_HEADERS_OVERFLOW":
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return "garbage";
    default:
      return error.name === "HTTPParserError" ? "garbage" : "connect";
  }
}

/**
 * Whether an answer of such a status is a failure of its engine, in which another one may do better; every other status is
 * an answer to the client.
 */
export function isFailedStatus(status: number): boolean {
  return status >= 500 && !PERMANENT.has(status);
}

/** The engine does not know the method or the protocol, nor does any other one. */
const PERMANENT: ReadonlySet<number> = new Set([501, 505]);

/** What an engine's error answer means for the engine; the texts are vLLM's. */
export function faultOfStatus(status: number, body: Buffer): Fault {
  if (status === 503 && ADMISSION_WORDS.some((words) => body.includes(words))) return "saturated";
  return body.includes(SHUTDOWN_WORDS) ? "draining" : "status";
}

/**
 * The same of an error that stands in a stream whose head was 200. An engine that took the request and then sends 503
 * turned it down for its load, whatever its text; one that fails sends 500.
 */
export function faultOfEvent(code: number, event: Buffer): Fault {
  const fault = faultOfStatus(code, event);
  return fault === "status" && code === 503 ? "saturated" : fault;
}

const ADMISSION_WORDS = ["currently busy and cannot accept", "prefill token backlog limit"];
const SHUTDOWN_WORDS = "cannot schedule new futures after shutdown";
