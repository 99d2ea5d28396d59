import { type Slo, sloWith } from "#core/request/slo.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { RequestHeaders } from "../http/request-headers.ts";

/** Milliseconds above 0, at most 12 digits before the point. */
const MILLIS = /^\d{1,12}(?:\.\d{1,3})?$/;

/**
 * The targets that a client stated for its request, in milliseconds above 0; undefined where it stated none. Returns
 * what is wrong where a header is not that.
 */
export function sloOf(headers: RequestHeaders): Slo | undefined | string {
  const ttft = headers.get("x-gnomon-slo-ttft-ms").trim();
  const tpot = headers.get("x-gnomon-slo-tpot-ms").trim();
  if (ttft === "" && tpot === "") return undefined;
  const [ttftMicros, tpotMicros] = [microsOf(ttft), microsOf(tpot)];
  if (Number.isNaN(ttftMicros)) return `x-gnomon-slo-ttft-ms: ${EXPECTED}`;
  if (Number.isNaN(tpotMicros)) return `x-gnomon-slo-tpot-ms: ${EXPECTED}`;
  return sloWith(ttftMicros, tpotMicros);
}

const EXPECTED = "expected milliseconds above 0, such as 500 or 12.5";

/** NaN where it is none; undefined where there is nothing. */
function microsOf(text: string): number | undefined {
  if (text === "") return undefined;
  const micros = MILLIS.test(text) ? Math.round(Number(text) * MICROS_PER_MILLI) : NaN;
  return micros > 0 ? micros : NaN;
}
