import type { Micros } from "#core/base/units.ts";

/**
 * What a step takes longer on each further board of an engine that hands blocks over or fetches them (a KV connector): its
 * executor needs the answers of all workers, not of the first one alone, to know whose blocks came (vLLM's
 * KVOutputAggregator). By so much published runs of decode engines on four boards exceed those of engines without a
 * connector, and on one board by nothing: `npm run bench -- published --handovers`.
 */
const FURTHER_BOARD_MICROS: Micros = 1520;

/** Of every step. An engine that composes steps ahead waits for nobody meanwhile. */
export function connectorMicros(tensorParallel: number, asyncScheduling: boolean): Micros {
  return asyncScheduling ? 0 : FURTHER_BOARD_MICROS * (tensorParallel - 1);
}
