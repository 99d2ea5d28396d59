import type { Fault } from "#core/endpoint/fault.ts";

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
