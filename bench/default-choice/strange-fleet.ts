import { join } from "node:path";
import { readServingSimTables } from "#cli/calibrate/kernel-tables/serving-sim.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { engineDefaults } from "#engine/config.ts";
import type { Stalls, StepDrift } from "#engine/step-drift.ts";
import { normal } from "#shadow/figure/normal.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";

/** An RTX 4090's kernels of Llama 3.1 8B, so many times as fast that the fleet serves what the others do. */
const KERNELS = "vllm-runs/RTX4090_Llama-3.1-8B/kernels";
const LAYERS = 32;
const SCALE = 0.4;
const GRAPH_TOKENS_MAX = 512;
const KV_BLOCKS = 9_000;
/** What the router takes the cache for, over what there is. */
const STATED_SHARE = 2;
/** Standard deviation of the logarithm of step times, drawn anew for each window. */
const NOISE = 0.3;
const WINDOW_MICROS = 200 * MICROS_PER_MILLI;
const WINDOWS = 1_500;
const STALL_EVERY_MICROS = 20 * MICROS_PER_SECOND;
const STALL_MICROS = 700 * MICROS_PER_MILLI;

/** Engines whose steps are of no form that a router's model has, that stand still now and then, and that know little. */
export function strangeFleet(traces: string, engines: number, seed: number): EngineSpec[] {
  const { kernels } = readServingSimTables([join(traces, KERNELS)]);
  return Array.from({ length: engines }, (_, i): EngineSpec => {
    const config = engineDefaults({
      kvBlocks: KV_BLOCKS,
      batchTokensMax: 4_096,
      modelTokensMax: KV_BLOCKS * 16 - 16,
      asyncScheduling: true,
      stepTime: { ...kernels, layers: LAYERS, graphTokensMax: GRAPH_TOKENS_MAX, scale: SCALE, baseMicros: 1_500 },
      stepDrift: drift(seed, i),
    });
    return {
      config,
      endpoint: {
        id: `engine-${String(i).padStart(2, "0")}`,
        models: [],
        labels: {},
        kvCapacityTokens: STATED_SHARE * (config.kvBlocks - 1) * config.blockTokens,
        concurrencyMax: config.sequencesMax,
      },
    };
  });
}

function drift(seed: number, engine: number): StepDrift {
  const random = randomFor(seed, nameHash(`strange ${engine}`));
  const factors = Float64Array.from({ length: WINDOWS }, () => Math.exp(NOISE * normal(random)));
  return { windowMicros: WINDOW_MICROS, factors, stalls: stalls(() => random.next()) };
}

function stalls(next: () => number): Stalls {
  const at: number[] = [];
  const micros: number[] = [];
  let free = 0;
  for (;;) {
    free += -Math.log(1 - next()) * STALL_EVERY_MICROS;
    if (free >= WINDOWS * WINDOW_MICROS) return { at: Float64Array.from(at), micros: Float64Array.from(micros) };
    const lasts = Math.round((0.3 + 1.4 * next()) * STALL_MICROS);
    at.push(Math.round(free));
    micros.push(lasts);
    free += lasts;
  }
}
