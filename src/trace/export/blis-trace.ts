import { stringify } from "yaml";
import { BLIS_COLUMNS, BLIS_TRACE_VERSION } from "../import/blis-columns.ts";
import type { TrafficRequest } from "../transform/traffic.ts";

/** Columns that we write: all that are always there, and the think time of closed-loop rounds. */
const COLUMNS = [...BLIS_COLUMNS, "think_time_us"] as const;
type Column = (typeof COLUMNS)[number];

/** The YAML header that stands beside the CSV. */
export function blisHeader(mode: "real" | "generated"): string {
  return stringify({ trace_version: BLIS_TRACE_VERSION, time_unit: "microseconds", mode, warm_up_requests: 0 });
}

export const BLIS_CSV_HEADER = `${COLUMNS.join(",")}\n`;

/**
 * A request as a row of a BLIS TraceV2. The format knows a shared prefix only by the name of a group, so block identity
 * is lost: prompts are unrelated in it. Where nothing was observed the answer's times are 0, as BLIS writes them.
 */
export function blisRow({ id, request, observed }: TrafficRequest): string | { readonly refused: string } {
  if (request.thinkMicros !== undefined && request.arrivalMicros === 0)
    return { refused: "follow-up turn without an arrival time" };
  const arrival = request.arrivalMicros;
  const first = observed === undefined || Number.isNaN(observed.ttftMicros) ? 0 : arrival + observed.ttftMicros;
  const cells: Record<Column, string | number> = {
    request_id: id === "" ? `request_${request.index}` : id,
    client_id: request.tenant === "" ? "client" : request.tenant,
    tenant_id: request.tenant,
    slo_class: request.sloClass === "" ? "standard" : request.sloClass,
    session_id: request.session,
    round_index: request.turn,
    prefix_group: "",
    prefix_length: 0,
    streaming: "true",
    input_tokens: request.promptTokens,
    output_tokens: request.outputTokens,
    text_tokens: request.promptTokens,
    image_tokens: 0,
    audio_tokens: 0,
    video_tokens: 0,
    reason_ratio: 0,
    model: request.model,
    deadline_us: 0,
    server_input_tokens: observed === undefined ? 0 : request.promptTokens,
    arrival_time_us: arrival,
    send_time_us: arrival,
    first_chunk_time_us: first,
    last_chunk_time_us: observed === undefined ? 0 : arrival + observed.e2eMicros,
    num_chunks: observed === undefined ? 0 : request.outputTokens,
    status: observed === undefined || observed.outcome === "ok" ? "ok" : observed.outcome,
    error_message: "",
    finish_reason: observed?.outcome === "ok" ? "stop" : "",
    think_time_us: request.thinkMicros ?? "",
  };
  return `${COLUMNS.map((column) => cell(cells[column])).join(",")}\n`;
}

function cell(value: string | number): string {
  const text = String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""').replaceAll(/[\n\r]+/g, " ")}"` : text;
}
