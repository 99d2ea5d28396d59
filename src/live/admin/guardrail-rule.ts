import type { GuardrailView } from "./rollout-view.ts";

/** What a figure may be at most, in words: one figure may have several guardrails, which differ by this alone. */
export function guardrailRule({ unit, absoluteMax, relativeMax, each }: GuardrailView): string {
  const limits = [
    ...(absoluteMax === null
      ? []
      : [unit === "share" ? `${shortest(100 * absoluteMax)} %` : `${shortest(absoluteMax)} ms`]),
    ...(relativeMax === null ? [] : [`${relativeMax} times the control's`]),
  ];
  return `${limits.join(" or ")}${each === null ? "" : `, for each ${each}`}`;
}

function shortest(value: number): string {
  return String(Number(value.toPrecision(3)));
}
