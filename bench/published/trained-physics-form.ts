import type { Form } from "./form.ts";
import { boardOf, servedAs } from "./kernel-roofline-form.ts";
import { modelNamed } from "./models.ts";

/**
 * BLIS's own coefficients (inference-sim, defaults.yaml), fitted by its authors to the H100 runs of blis-training. Where
 * they found 0, a fit begins at a tenth.
 */
const BLIS_BETA = [0.152128, 0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825, 481.8613888, 0, 1.94710771];
const BLIS_BEFORE_MICROS = 15_563.2;
const BLIS_PER_TOKEN_MICROS = 45.9;

const FITTED = ["prefill", "decode", "weights", "reduce", "layer", "sequence", "step", "mixed", "written", "read"];
const NARROW = new Set(["prefill", "weights", "read"]);

/** The same coefficients for all models and boards; none for latent attention. */
export const TRAINED_PHYSICS: Form = {
  name: "trained-physics",
  fitted: [...FITTED, "firstToken"].map((name) => ({ name, believed: 1, spread: NARROW.has(name) ? 0.3 : 0.7 })),
  engineFor: (run, factors) =>
    trainedEngine(
      run,
      BLIS_BETA.map((value, i) => (value || 0.1) * factors[i]!),
      BLIS_BEFORE_MICROS * factors.at(-1)!,
    ),
};

/** The same with BLIS's coefficients as they are. */
export const TRAINED_PHYSICS_BLIS: Form = {
  name: "trained-physics, BLIS's coefficients",
  fitted: [],
  engineFor: (run) => {
    const engine = trainedEngine(run, BLIS_BETA, BLIS_BEFORE_MICROS);
    // It passes between two tokens outside the engine.
    return engine && { ...engine, stepGap: { ...engine.stepGap, baseMicros: BLIS_PER_TOKEN_MICROS } };
  },
};

function trainedEngine(run: Parameters<Form["engineFor"]>[0], beta: readonly number[], baseMicros: number) {
  const { shape } = modelNamed(run.model);
  if (shape.latent !== undefined) return undefined;
  const { tflopsPeak, bandwidthTbs } = boardOf(run);
  return {
    ...servedAs(run, { firstTokenDelay: { baseMicros, perPromptTokenMicros: 0 } }),
    stepTime: {
      kind: "trained-physics" as const,
      model: shape,
      hardware: { tflopsPeak, bandwidthTbs },
      tensorParallel: run.tp,
      beta,
    },
  };
}
