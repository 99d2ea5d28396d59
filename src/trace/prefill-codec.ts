import type { PrefillInput } from "#core/disaggregation/prefill-input.ts";
import { COLOCATE_REASONS } from "#core/disaggregation/colocate.ts";
import type { Breakdown, Routed } from "#core/decision.ts";
import { FAULTS } from "#core/endpoint/fault.ts";
import type { AttemptFailed } from "#core/input.ts";
import type { HedgeSettled } from "#core/hedge-input.ts";
import { HANDOFFS } from "#core/plugin/spec.ts";
import type { Micros } from "#core/units.ts";
import type { Fields } from "./fields.ts";
import { decodeSettled, encodeSettled } from "./hedge-codec.ts";

type AttemptInput = PrefillInput | AttemptFailed | HedgeSettled;

/** What an input about an attempt, the first of its two stages, or two attempts, has behind its request. */
export function encodeAttempt(input: AttemptInput): string {
  if (input.kind === "hedge-settled") return encodeSettled(input);
  if ("fault" in input) return `,"fault":"${input.fault}"`;
  if (input.kind === "transfer-failed" || input.cachedTokens === undefined) return "";
  return `,"cachedTokens":${input.cachedTokens}`;
}

export function decodeAttempt(kind: AttemptInput["kind"], at: Micros, fields: Fields): AttemptInput {
  if (kind === "hedge-settled") return decodeSettled(at, fields);
  const requestId = fields.string("requestId");
  if (kind === "prefill-finished")
    return { kind, at, requestId, cachedTokens: fields.optionalInteger("cachedTokens", 0) };
  if (kind === "transfer-failed") return { kind, at, requestId };
  return { kind, at, requestId, fault: fields.oneOf("fault", FAULTS) };
}

/** What a decision states of two stages; `breakdownOf` writes the prefill stage's. */
export function encodeStages(
  { prefill, colocated }: Pick<Routed, "prefill" | "colocated">,
  breakdownOf: (breakdown: Breakdown, chosen: string) => string,
): string {
  if (colocated !== undefined) return `,"colocated":"${colocated}"`;
  if (prefill === undefined) return "";
  const { endpoint, handoff, reason, hitTokens, heldTokens, prefixSource, breakdown } = prefill;
  let text = `"endpoint":${JSON.stringify(endpoint)},"handoff":"${handoff}","reason":${JSON.stringify(reason)}`;
  if (hitTokens !== 0) text += `,"hitTokens":${hitTokens}`;
  if (heldTokens !== undefined) text += `,"heldTokens":${heldTokens}`;
  if (prefixSource === "precise") text += `,"precise":true`;
  return `,"prefill":{${text},"breakdown":${breakdownOf(breakdown, endpoint)}}`;
}

export function decodeStages(
  fields: Fields,
  breakdownOf: (fields: Fields) => Breakdown,
): Pick<Routed, "prefill" | "colocated"> {
  if (fields.has("colocated")) return { colocated: fields.oneOf("colocated", COLOCATE_REASONS) };
  if (!fields.has("prefill")) return {};
  const prefill = fields.object("prefill");
  return {
    prefill: {
      endpoint: prefill.string("endpoint"),
      handoff: prefill.oneOf("handoff", HANDOFFS),
      reason: prefill.string("reason"),
      hitTokens: prefill.number("hitTokens", 0),
      ...(prefill.has("heldTokens") && { heldTokens: prefill.number("heldTokens") }),
      prefixSource: prefill.boolean("precise", false) ? "precise" : "approximate",
      breakdown: breakdownOf(prefill.object("breakdown")),
    },
  };
}
