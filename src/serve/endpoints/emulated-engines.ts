import { engineParameters, loadEngine } from "#config/engine-file.ts";
import type { Config } from "#config/schema.ts";
import type { TraceEmulated } from "#trace/codec/record.ts";
import { namesSources } from "./source-catalogue.ts";

/** Longer parameters, such as large tables of measured steps, are not written into every segment of a trace. */
const PARAMETERS_CHARS_MAX = 65_536;

/**
 * The engines that the gateway starts itself where it is given none; undefined where it starts none, or where their time
 * runs at another speed than the clock that a trace is recorded by.
 */
export function emulatedEngines(config: Config): TraceEmulated | undefined {
  const { emulate } = config;
  if (namesSources(config) || emulate.timeScale !== 1) return undefined;
  const parameters = engineParameters(loadEngine(emulate.engine));
  if (JSON.stringify(parameters).length > PARAMETERS_CHARS_MAX) return undefined;
  return { engine: emulate.engine ?? "vLLM's defaults", parameters };
}
