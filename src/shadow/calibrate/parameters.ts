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

/** Kept only where a trace shows them: 0 is a fair guess for each. The others must be identified, or given. */
export const OPTIONAL: ReadonlySet<Parameter> = new Set([
  "perPrefillMicros",
  "perDecodeContextTokenMicros",
  "perPrefillPairMicros",
]);

/** A value for each parameter. */
export function parametersOf(values: (parameter: Parameter) => number): Parameters {
  return Object.fromEntries(PARAMETERS.map((parameter) => [parameter, values(parameter)])) as Record<Parameter, number>;
}

/**
 * The engine with these coefficients. The delay is the queue's, so that the engine's file holds all: a trace cannot
 * separate the way there from the way back. Gaps between steps are part of the steps.
 */
export function engineWith(sizes: EngineConfig, { delayMicros, ...coefficients }: Parameters): EngineConfig {
  return {
    ...sizes,
    queueDelay: { baseMicros: delayMicros, perPromptTokenMicros: 0 },
    stepTime: { kind: "coefficients", ...coefficients },
    stepGap: { baseMicros: 0, afterPrefillMicros: 0, perDecodeMicros: 0 },
  };
}

/** The engine's parameters, as engineWith takes them; undefined where its step time is of another kind. */
export function parametersOfEngine({ stepTime, queueDelay, stepGap }: EngineConfig): Parameters | undefined {
  if (stepTime.kind !== "coefficients") return undefined;
  const { kind: _kind, ...coefficients } = stepTime;
  const given: Partial<Parameters> = {
    ...coefficients,
    delayMicros: queueDelay.baseMicros,
    baseMicros: coefficients.baseMicros + stepGap.baseMicros,
  };
  return parametersOf((name) => given[name] ?? 0);
}
