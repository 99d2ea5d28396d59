import { achievedBy, FIRST_TOKEN_DELAY, type Generation } from "#engine/achieved.ts";
import type { EngineConfig, QueueDelay } from "#engine/config.ts";
import { HARDWARE, type Hardware } from "#engine/hardware.ts";
import { modelledEngine } from "#engine/modelled-engine.ts";
import type { Achieved } from "#engine/step-time/kernel-roofline.ts";
import type { Form } from "./form.ts";
import { modelNamed } from "./models.ts";
import type { PublishedRun } from "./runs.ts";

/** Times are of an H100's order, before any run was looked at; shares what good kernels reach. */
const BELIEVED = {
  kvBandwidth: 0.7,
  stepMicros: 300,
  sequenceMicros: 12,
  expertLayerMicros: 50,
  latentLayerMicros: 100,
  eagerLayerMicros: 50,
  eagerExpertLayerMicros: 100,
  reduceMicros: 8,
} as const satisfies Partial<Achieved>;

type Shared = keyof typeof BELIEVED;

const SHARED = Object.keys(BELIEVED) as readonly Shared[];
const GENERATIONS: readonly Generation[] = ["hopper", "ampere", "ada", "cdna3"];
const BANDWIDTH = 0.85;

const NVIDIA = achievedBy("hopper");
const AMD = achievedBy("cdna3");
/** Name, what it is now, and what it is believed to be. */
const OTHERS: readonly (readonly [string, number, number])[] = [
  ["compute", NVIDIA.compute, 0.65],
  ["layerMicros", NVIDIA.layerMicros, 40],
  ["cdna3Compute", AMD.compute, 0.4],
  ["cdna3NarrowCompute", AMD.narrowCompute ?? AMD.compute, 0.3],
  ["cdna3LayerMicros", AMD.layerMicros, 60],
  ["firstToken", FIRST_TOKEN_DELAY.baseMicros, 6000],
];
/** Shares of a data sheet are within such a factor of what was believed, times hardly within theirs. */
const BANDWIDTH_SPREAD = 0.06;
const SHARE_SPREAD = 0.15;
const TIME_SPREAD = 0.7;

/** What `simulate --model-config` uses: src/engine/achieved.ts, 1 each is what the product has. */
export const KERNEL_ROOFLINE: Form = {
  name: "kernel-roofline",
  fitted: [
    ...SHARED.map((name) => [name, NVIDIA[name], BELIEVED[name]] as const),
    ...GENERATIONS.map((name) => [name, achievedBy(name).bandwidth, BANDWIDTH] as const),
    ...OTHERS,
  ].map(([name, now, believed]) => ({
    name,
    believed: believed / now,
    spread: spreadOf(name),
  })),
  engineFor: (run, factors) => {
    const factor = (name: string) => factors[KERNEL_ROOFLINE.fitted.findIndex((one) => one.name === name)] ?? 1;
    const { generation } = boardOf(run);
    const base = achievedBy(generation);
    const amd = generation === "cdna3";
    const achieved: Achieved = {
      ...base,
      ...(Object.fromEntries(SHARED.map((name) => [name, base[name] * factor(name)])) as Pick<Achieved, Shared>),
      bandwidth: base.bandwidth * factor(generation),
      compute: base.compute * factor(amd ? "cdna3Compute" : "compute"),
      layerMicros: base.layerMicros * factor(amd ? "cdna3LayerMicros" : "layerMicros"),
      ...(base.narrowCompute !== undefined && { narrowCompute: base.narrowCompute * factor("cdna3NarrowCompute") }),
    };
    return servedAs(run, {
      achieved,
      firstTokenDelay: { ...FIRST_TOKEN_DELAY, baseMicros: FIRST_TOKEN_DELAY.baseMicros * factor("firstToken") },
    });
  },
};

function spreadOf(name: string): number {
  if (/micros|firstToken/i.test(name)) return TIME_SPREAD;
  return GENERATIONS.includes(name as Generation) ? BANDWIDTH_SPREAD : SHARE_SPREAD;
}

/** The board that a run was on. */
export function boardOf(run: PublishedRun): Hardware {
  const board = HARDWARE[run.board];
  if (board === undefined) throw new Error(`${run.board}: expected one of ${Object.keys(HARDWARE).join(", ")}`);
  return board;
}

/** The engine as the run served it. */
export function servedAs(
  run: PublishedRun,
  speed: { readonly achieved?: Achieved; readonly firstTokenDelay?: QueueDelay },
): EngineConfig {
  const engine = modelledEngine(modelNamed(run.model), boardOf(run), {
    ...speed,
    tensorParallel: run.tp,
    utilization: 0.9,
    eager: run.eager,
    batchTokensMax: run.batchTokensMax,
    sequencesMax: 128,
  });
  // Runs without graphs are of a version before scheduling ahead became the default.
  return { ...engine, asyncScheduling: !run.eager };
}
