import type { Dialect } from "../http/route.ts";
import { CANCELLED, COMPLETED, type FinishReasons, scanFinishReasons, type Usage, outerText } from "./answer-json.ts";

/**
 * Whether an answer that came in one piece, with status 200, is one that its engine aborted, as vLLM does when it shuts
 * down: cut short, or without a token and without an end.
 */
export function isAborted(dialect: Dialect, body: Buffer, usage: Usage | undefined): boolean {
  if (dialect === "messages") return outerText(body, "type") === "message" && isUnended(outerText(body, "stop_reason"));
  if (dialect === "responses") return isAbortedResponse(body, usage);
  const ends = scanFinishReasons(body, 0, body.length);
  return ends === "abort" || isUnbegun(dialect, ends, usage);
}

/** vLLM leaves out what it has no word for. */
function isUnended(stopReason: string | undefined): boolean {
  return stopReason === undefined || stopReason === "abort";
}

/** Whether an answer in one piece leaves open whether its engine aborted it, as that of a stream may. */
export function isUnproven(dialect: Dialect, body: Buffer): boolean {
  return dialect === "responses" && outerText(body, "status") === COMPLETED;
}

/**
 * vLLM states it for models of OpenAI's harmony format alone. For all others an aborted response is "completed", and only one
 * of which not even the end token was generated cannot be.
 */
function isAbortedResponse(body: Buffer, usage: Usage | undefined): boolean {
  const status = outerText(body, "status");
  return status === CANCELLED || (status === COMPLETED && usage?.outputTokens === 0);
}

/** No choice has a finish_reason, and no output is counted. */
function isUnbegun(dialect: Dialect, ends: FinishReasons, usage: Usage | undefined): boolean {
  if (dialect !== "chat" && dialect !== "completions") return false;
  return (ends === "no-choice" || ends === "unended") && usage?.outputTokens === 0;
}
