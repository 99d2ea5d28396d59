import { achievedBy, FIRST_TOKEN_DELAY, type Generation } from "#engine/achieved.ts";
import type { EngineConfig } from "#engine/config.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import type { Achieved } from "#engine/step-time/kernel-roofline.ts";
import { modelNamed } from "./models.ts";
import type { PublishedRun } from "./runs.ts";

type Shared = Exclude<keyof Achieved, "bandwidth" | "compute" | "linkBandwidth" | "expertBandwidth">;

const SHARED: readonly Shared[] = [
  "kvBandwidth",
  "stepMicros",
  "sequenceMicros",
  "layerMicros",
  "expertLayerMicros",
  "eagerLayerMicros",
  "eagerExpertLayerMicros",
  "reduceMicros",
];
const GENERATIONS: readonly Generation[] = ["hopper", "ampere", "ada", "cdna3"];

/** What is fitted, as factors of the values in src/engine/achieved.ts; 1 each is what the product has. */
export const FITTED: readonly string[] = [...SHARED, ...GENERATIONS, "compute", "cdna3Compute", "firstToken"];

/** How far from what they were believed to be constants may well be: a share of the unit interval, or a time. */
export function priorSpread(name: string): number {
  return /bandwidth|compute|hopper|ampere|ada/i.test(name) ? 0.15 : 0.7;
}

/** The engine that a run was on, with these factors. */
export function engineFor(run: PublishedRun, factors: readonly number[]): EngineConfig {
  const board = HARDWARE[run.board];
  if (board === undefined) throw new Error(`${run.board}: expected one of ${Object.keys(HARDWARE).join(", ")}`);
  const factor = (name: string) => factors[FITTED.indexOf(name)] ?? 1;
  const base = achievedBy(board.generation);
  const scaled = Object.fromEntries(SHARED.map((name) => [name, base[name] * factor(name)])) as Pick<Achieved, Shared>;
  const achieved = {
    ...base,
    ...scaled,
    bandwidth: base.bandwidth * factor(board.generation),
    compute: base.compute * factor(board.generation === "cdna3" ? "cdna3Compute" : "compute"),
  };
  const model = modelNamed(run.model);
  const engine = modelledEngine(model, board, {
    tensorParallel: run.tp,
    utilization: 0.9,
    eager: run.eager,
    achieved,
    firstTokenDelay: { ...FIRST_TOKEN_DELAY, baseMicros: FIRST_TOKEN_DELAY.baseMicros * factor("firstToken") },
    batchTokensMax: run.batchTokensMax,
    sequencesMax: 128,
  });
  // Runs without graphs are of a version before scheduling ahead became the default.
  return { ...engine, asyncScheduling: !run.eager };
}
