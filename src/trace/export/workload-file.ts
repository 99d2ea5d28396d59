import { WORKLOAD_FILE_FORMAT, WORKLOAD_FILE_VERSION } from "../import/workload-file.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/** First line of a workload file; `steps` state how it was made. */
export function workloadFileHeader(steps: readonly string[]): string {
  return `${JSON.stringify({ format: WORKLOAD_FILE_FORMAT, version: WORKLOAD_FILE_VERSION, steps })}\n`;
}

/**
 * A request as a line of a workload file: the fields of WorkloadRequest, without those at their usual value. Texts and
 * token ids are left out, so that the file holds no prompt; their blocks' identity stays.
 */
export function workloadLine(request: WorkloadRequest): string {
  const { session, turn, parent, joins, thinkMicros, blockIds, tenant, sloClass, model } = request;
  return `${JSON.stringify({
    arrivalMicros: request.arrivalMicros,
    promptTokens: request.promptTokens,
    outputTokens: request.outputTokens,
    sequences: request.sequences,
    tokensByPrompt: request.tokensByPrompt,
    session: session === "" ? undefined : session,
    turn: turn === 0 ? undefined : turn,
    parent,
    joins: joins.length === 0 ? undefined : joins,
    thinkMicros,
    tenant: tenant === "" ? undefined : tenant,
    sloClass: sloClass === "" ? undefined : sloClass,
    model: model === "" ? undefined : model,
    blockTokens: blockIds === undefined ? undefined : request.blockTokens,
    blockIds: blockIds === undefined ? undefined : [...blockIds],
  })}\n`;
}
