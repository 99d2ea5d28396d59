import type { EngineConfig } from "#engine/config.ts";

/** What is fitted, in microseconds. `delay` is what a request and its answer spend outside the engine, together. */
export const PARAMETERS = [
  "delayMicros",
  "baseMicros",
  "perPrefillTokenMicros",
  "perDecodeMicros",
  "perPrefillMicros",
  "perDecodeContextTokenMicros",
  "perPrefillPairMicros",
] as const;
export type Parameter = (typeof PARAMETERS)[number];
export type Parameters = Readonly<Record<Parameter, number>>;

/** Kept only where a trace shows them: 0 is a fair guess for each. The others must be identified, or told. */
export const OPTIONAL: ReadonlySet<Parameter> = new Set([
  "perPrefillMicros",
  "perDecodeContextTokenMicros",
  "perPrefillPairMicros",
]);

export function parametersOf(values: (parameter: Parameter) => number): Parameters {
  return Object.fromEntries(PARAMETERS.map((parameter) => [parameter, values(parameter)])) as Record<Parameter, number>;
}

/**
 * The engine with these coefficients. The delay is the queue's, so that the engine's file says all: a trace cannot tell
 * the way there from the way back. Gaps between steps are part of the steps.
 */
export function engineWith(sizes: EngineConfig, { delayMicros, ...coefficients }: Parameters): EngineConfig {
  return {
    ...sizes,
    queueDelay: { baseMicros: delayMicros, perPromptTokenMicros: 0 },
    stepTime: { kind: "coefficients", ...coefficients },
    stepGap: { baseMicros: 0, afterPrefillMicros: 0, perDecodeMicros: 0 },
  };
}
