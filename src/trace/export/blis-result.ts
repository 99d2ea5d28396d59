import type { TrafficRequest } from "../transform/traffic.ts";

/** One observed request as an element of BLIS's SimResult list, or the reason why it has none. Times in microseconds. */
export function blisResult({ id, request, observed }: TrafficRequest): string | { readonly refused: string } {
  if (observed === undefined) return { refused: "nothing was observed of it" };
  if (observed.outcome !== "ok") return { refused: `ended as ${observed.outcome}` };
  if (Number.isNaN(observed.ttftMicros)) return { refused: "its first token was not seen" };
  const { ttftMicros, e2eMicros } = observed;
  const gaps = request.outputTokens - 1;
  return JSON.stringify({
    request_id: id === "" ? `request_${request.index}` : id,
    ttft_us: ttftMicros,
    e2e_us: e2eMicros,
    input_tokens: request.promptTokens,
    output_tokens: request.outputTokens,
    slo_class: request.sloClass,
    model: request.model,
    itl_mean_us: gaps < 1 ? 0 : (e2eMicros - ttftMicros) / gaps,
  });
}
